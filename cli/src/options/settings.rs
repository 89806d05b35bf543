//! Options for the tracer's settings, made of the table in `omptrace-settings`: an option sets the variable of its row.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use ompt_sys::ompt_callbacks_t;
use omptrace_settings::value::Kind;
use omptrace_settings::{CommandLineOption, SETTINGS, Setting};

/// The settings that the command line gives, each with its value.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingOptions(pub(crate) Vec<(&'static Setting, OsString)>);

/// The settings that have an option.
fn with_options() -> impl Iterator<Item = (&'static Setting, CommandLineOption)> {
    SETTINGS.iter().filter_map(|setting| Some((setting, setting.option?)))
}

impl Args for SettingOptions {
    fn augment_args(command: Command) -> Command {
        with_options().fold(command, |command, (setting, option)| command.arg(argument(setting, option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingOptions::augment_args(command)
    }
}

impl FromArgMatches for SettingOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut settings = Vec::new();
        for (setting, option) in with_options() {
            let given = match setting.kind {
                Kind::Pattern | Kind::Folder => {
                    matches.get_one::<PathBuf>(option.long).map(|path| path.clone().into_os_string())
                }
                Kind::Text | Kind::Choice(_) | Kind::Events | Kind::Patterns => {
                    matches.get_one::<String>(option.long).map(OsString::from)
                }
            };
            settings.extend(given.map(|value| (setting, value)));
        }
        Ok(SettingOptions(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = SettingOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The option, as the command line's definition has it.
fn argument(setting: &'static Setting, option: CommandLineOption) -> Arg {
    let mut help = option.help.to_owned();
    if !setting.default.is_empty() {
        help.push_str(&format!(" [default: {}]", setting.default));
    }
    help.push_str(&format!(" [{}]", setting.variable));
    let parser: ValueParser = match setting.kind {
        Kind::Pattern | Kind::Folder => value_parser!(PathBuf),
        Kind::Choice(words) => {
            let words = words.iter().map(|(word, help)| PossibleValue::new(word).help(help.trim()));
            PossibleValuesParser::new(words).into()
        }
        Kind::Events => EventNames.into(),
        Kind::Text | Kind::Patterns => {
            ValueParser::from(move |text: &str| match setting.allows(text.as_ref()) {
                true => Ok(text.to_owned()),
                false => Err(format!("allowed: {}", (setting.allowed)())),
            })
        }
    };
    let argument = Arg::new(option.long)
        .long(option.long)
        .value_name(option.value_name)
        .value_parser(parser)
        .allow_hyphen_values(matches!(setting.kind, Kind::Events | Kind::Patterns))
        .hide_possible_values(setting.kind == Kind::Events)
        .help(help);
    let argument = match option.bare {
        // What follows is the program.
        Some(bare) => argument.num_args(0..=1).require_equals(true).default_missing_value(bare),
        None => argument,
    };
    match option.short {
        Some(short) => argument.short(short),
        None => argument,
    }
}

/// The groups of callbacks by which a list can name them.
const GROUPS: [&str; 11] =
    ["thread", "parallel", "work", "sync", "task", "mutex", "flush", "cancel", "tool", "target", "device"];

/// Takes a list of events, and gives shells the names that such a list can have.
#[derive(Clone)]
struct EventNames;

impl TypedValueParser for EventNames {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        clap::builder::StringValueParser::new()
            .try_map(|list| events(&list))
            .parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(event_names().map(PossibleValue::new)))
    }
}

/// What a list of events can have, in the order in which people ask: words, groups, callbacks.
pub(crate) fn event_names() -> impl Iterator<Item = &'static str> {
    let callbacks = ompt_callbacks_t::VALUES
        .iter()
        .map(|(name, _)| name.trim_start_matches("ompt_callback_"))
        // Groups have these names, too.
        .filter(|name| !GROUPS.contains(name));
    let words = ["default", "all", "state", "idle"].into_iter();
    words.chain(GROUPS).chain(callbacks)
}

/// A list of events as the tracer reads it: each item is one that it knows.
fn events(list: &str) -> Result<String, String> {
    let mut items = list.split(',').map(str::trim);
    let unknown = items.find(|item| {
        let name = item.strip_prefix('-').unwrap_or(item);
        !item.is_empty() && !event_names().any(|known| known == name)
    });
    match unknown {
        None => Ok(list.to_owned()),
        Some(unknown) => Err(format!(
            "\"{unknown}\" is neither `default`, `all` or `state`, nor a group of callbacks ({}), nor a callback such as task_create",
            GROUPS.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn every_event_that_the_tracer_knows_can_be_named() {
        for callback in omptrace::callbacks::CALLBACKS {
            for name in [callback.name, callback.group] {
                assert_eq!(events(&format!("-{name}")), Ok(format!("-{name}")));
            }
        }
        let is_one = |group: &&str| {
            let mut callbacks = omptrace::callbacks::CALLBACKS.iter();
            callbacks.any(|callback| callback.group == *group)
        };
        assert!(GROUPS.iter().all(is_one));
        assert!(events("default, state,-mutex,").is_ok());
        assert!(events("default,bogus").unwrap_err().contains("\"bogus\""));
    }

    #[test]
    fn options_set_their_variables() {
        let command = SettingOptions::augment_args(Command::new("test"));
        let arguments = ["test", "-o", "a", "--buffer", "4M", "--on-full", "drop", "--events", "-mutex"];
        let matches = command.get_matches_from(arguments);
        let settings = SettingOptions::from_arg_matches(&matches).unwrap().0;
        let given: Vec<_> = settings
            .iter()
            .map(|(setting, value)| format!("{}={}", setting.variable, value.display()))
            .collect();
        assert_eq!(
            given,
            ["OMPTRACE_OUTPUT=a", "OMPTRACE_EVENTS=-mutex", "OMPTRACE_BUFFER=4M", "OMPTRACE_ON_FULL=drop"]
        );
    }

    #[test]
    fn an_option_alone_leaves_the_next_word_to_the_program() {
        let command = SettingOptions::augment_args(Command::new("test"))
            .arg(Arg::new("program").num_args(1..).trailing_var_arg(true));
        let sample = |option: &str| {
            let matches = command.clone().get_matches_from(["test", option, "./app", "--sample=x"]);
            let settings = SettingOptions::from_arg_matches(&matches).unwrap().0;
            settings[0].1.to_string_lossy().into_owned()
        };
        assert_eq!(sample("--sample"), "cpu");
        assert_eq!(sample("--sample=cpu:250"), "cpu:250");
    }

    #[test]
    fn values_are_those_that_the_tracer_takes() {
        let takes = |option: &str, value: &str| {
            let command = SettingOptions::augment_args(Command::new("test"));
            let refused = command.try_get_matches_from(["test", option, value]);
            refused.map(|_| ()).map_err(|error| error.kind())
        };
        assert_eq!(takes("--buffer", "256k"), Ok(()));
        assert_eq!(takes("--buffer", "255K"), Err(ErrorKind::ValueValidation));
        assert_eq!(takes("--compress", "20"), Err(ErrorKind::ValueValidation));
        assert_eq!(takes("--on-full", "wait"), Err(ErrorKind::InvalidValue));
    }
}
