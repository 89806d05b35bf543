//! Flags for the options that only some formats have, made of what the formats declare.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use omptrace_viewer_export::{FORMATS, FormatOption, FormatOptions};

/// The options of formats that the command line sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormatFlags(pub(crate) FormatOptions);

/// All options, each with the names of its formats.
fn options() -> Vec<(String, &'static FormatOption)> {
    let mut options: Vec<(String, &FormatOption)> = Vec::new();
    for format in FORMATS {
        for option in format.options {
            match options.iter_mut().find(|(_, known)| known.name == option.name) {
                Some((formats, _)) => *formats += &format!(" and {}", format.name),
                None => options.push((format.name.to_owned(), option)),
            }
        }
    }
    options
}

impl Args for FormatFlags {
    fn augment_args(command: Command) -> Command {
        options().into_iter().fold(command, |command, (formats, option)| {
            let flag =
                Arg::new(option.name).long(option.name).help(format!("For {formats}, {}", option.help));
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
