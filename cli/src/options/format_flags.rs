//! Flags for the options that only one format has, made of what the formats declare.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use omptrace_viewer_export::{FORMATS, Format, FormatOption, FormatOptions};

/// The options of formats that the command line sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormatFlags(pub(crate) FormatOptions);

/// All options, each with its format.
fn options() -> impl Iterator<Item = (&'static Format, &'static FormatOption)> {
    FORMATS.iter().flat_map(|format| format.options.iter().map(move |option| (format, option)))
}

impl Args for FormatFlags {
    fn augment_args(command: Command) -> Command {
        options().fold(command, |command, (format, option)| {
            let flag =
                Arg::new(option.name).long(option.name).help(format!("For {}, {}", format.name, option.help));
            let values = option.values.iter().map(|(value, help)| PossibleValue::new(value).help(help));
            command.arg(match option.values {
                [] if option.value_name.is_empty() => flag.action(ArgAction::SetTrue),
                [] => flag.value_name(option.value_name),
                _ => flag
                    .value_name(option.value_name)
                    .value_parser(PossibleValuesParser::new(values))
                    .default_value(option.default),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        FormatFlags::augment_args(command)
    }
}

impl FromArgMatches for FormatFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut set = FormatOptions::default();
        for (_, option) in options() {
            if option.value_name.is_empty() {
                if matches.get_flag(option.name) {
                    set.switch_on(option);
                }
            } else if let Some(value) = matches.get_one::<String>(option.name) {
                set.set(option, value);
            }
        }
        Ok(FormatFlags(set))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = FormatFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
