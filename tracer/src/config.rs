//! The settings in force: those of the table in `omptrace-settings`, with the list of events expanded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;

use omptrace_settings::value::{LogLevel, RankList, Switch};
use omptrace_settings::{Setting, Settings};

use crate::launched_rank;
use crate::os::log::{self, Level, warning};

/// Bytes of a chunk, its header included.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// The name that enables recording thread states in `OMPTRACE_EVENTS`.
pub(crate) const STATE: &str = "state";

/// An event that a list can name: its own name, and the name of its group.
pub(crate) type Recordable = (&'static str, &'static str);

/// The variable whose value only the tracer can check.
const EVENTS: &str = "OMPTRACE_EVENTS";

/// The settings in force.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    settings: Settings,
    recordable: Vec<Recordable>,
    /// Names of the callbacks to register.
    pub(crate) events: Vec<&'static str>,
    /// Callbacks that the user named explicitly: they are recorded even if a runtime is known to do harm with them.
    pub(crate) insisted: Vec<&'static str>,
}

impl Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Config {
    /// Reads the settings from the environment; `recordable` are the events that can be recorded. An invalid value is
    /// reported on stderr, and the default is used instead.
    pub(crate) fn from_environment(recordable: Vec<Recordable>) -> Config {
        Config::from_values(recordable, |name| std::env::var_os(name))
    }

    fn from_values(recordable: Vec<Recordable>, value_of: impl Fn(&str) -> Option<OsString>) -> Config {
        let mut refuse = |setting: &Setting, value: &OsStr| warning!("{}", setting.refusal(value));
        let settings = Settings::from_values(value_of, &mut refuse);
        log::set_level(match settings.log {
            LogLevel::Quiet => Level::Quiet,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info => Level::Info,
        });
        let list = &settings.events.0;
        let (events, insisted) = parse_events(&recordable, list).unwrap_or_else(|| {
            let setting = Setting::of(EVENTS).expect("a row of the table");
            refuse(setting, list.as_ref());
            parse_events(&recordable, setting.default).expect("a default is allowed")
        });
        Config { settings, recordable, events, insisted }
    }

    /// Whether the program should be traced.
    pub(crate) fn is_enabled(&self) -> bool {
        let is_one = |ranks: &RankList| launched_rank::rank().is_none_or(|rank| ranks.has(rank));
        self.disabled == Switch::Off && self.ranks.as_ref().is_none_or(is_one)
    }

    /// The settings for the trace's metadata.
    pub(crate) fn describe(&self) -> BTreeMap<String, String> {
        let events: Vec<&str> =
            self.recordable.iter().map(|(name, _)| *name).filter(|name| self.events.contains(name)).collect();
        let mut described = self.settings.describe();
        described.insert(EVENTS.to_owned(), events.join(","));
        described
    }
}

/// The events selected by a list such as `parallel,task,-flush`, and the events that the list names explicitly. A list
/// that starts with a minus modifies `default`.
fn parse_events(recordable: &[Recordable], list: &str) -> Option<(Vec<&'static str>, Vec<&'static str>)> {
    let mut chosen: Vec<&'static str> = Vec::new();
    let mut insisted: Vec<&'static str> = Vec::new();
    for (index, item) in list.split(',').map(str::trim).filter(|item| !item.is_empty()).enumerate() {
        let (adds, name) = item.strip_prefix('-').map_or((true, item), |name| (false, name));
        if index == 0 && !adds {
            (chosen, _) = parse_events(recordable, "default")?;
        }
        let matches = |(own, group): &(&str, &str)| match name {
            "all" => true,
            "default" => !["flush", STATE].contains(own),
            name => *group == name || *own == name,
        };
        let names: Vec<&str> = recordable.iter().copied().filter(matches).map(|(name, _)| name).collect();
        if names.is_empty() {
            return None;
        }
        chosen.retain(|name| !names.contains(name));
        insisted.retain(|name| !names.contains(name));
        if adds {
            insisted.extend(names.iter().filter(|own| **own == name));
            chosen.extend(names);
        }
    }
    Some((chosen, insisted))
}

#[cfg(test)]
mod tests {
    use ompt_sys::ompt_callbacks_t;

    use super::*;
    use crate::dialects::dialect::recordable;

    fn parse_events(list: &str) -> Option<(Vec<&'static str>, Vec<&'static str>)> {
        super::parse_events(&recordable(), list)
    }

    fn names(list: &str) -> Option<Vec<&'static str>> {
        let (chosen, _) = parse_events(list)?;
        let all = recordable().into_iter().map(|(name, _)| name);
        Some(all.filter(|name| chosen.contains(name)).collect())
    }

    #[test]
    fn default_is_all_but_flush_and_states() {
        // The current callbacks, `idle` of the drafts, and `state`.
        let all = ompt_callbacks_t::VALUES.len() + 2;
        assert_eq!(names("all").unwrap().len(), all);
        assert_eq!(names("default").unwrap().len(), all - 2);
        assert!(!names("default").unwrap().contains(&"flush"));
        assert!(names("default,state").unwrap().contains(&"state"));
        assert!(names("default,flush").unwrap().contains(&"flush"));
    }

    #[test]
    fn lists_add_and_take_away() {
        assert_eq!(names("lock_init,lock_destroy,-lock_init").unwrap(), ["lock_destroy"]);
        assert_eq!(
            names("-mutex").unwrap().len(),
            names("default").unwrap().len() - names("mutex").unwrap().len()
        );
        assert_eq!(names("parallel,nonsense"), None);
    }

    #[test]
    fn what_is_named_by_its_own_name_is_insisted_on() {
        let insisted = |list| parse_events(list).unwrap().1;
        assert_eq!(insisted("default,task"), [""; 0]);
        assert_eq!(insisted("default,dependences"), ["dependences"]);
        assert_eq!(insisted("dependences,-task"), [""; 0]);
    }

    #[test]
    fn a_list_that_names_nothing_leaves_the_default() {
        let events = |list: &str| {
            let list = Some(list.into());
            Config::from_values(recordable(), |name| list.clone().filter(|_| name == "OMPTRACE_EVENTS"))
                .events
        };
        assert_eq!(events("parallel,nonsense"), events("default"));
        assert_ne!(events("parallel"), events("default"));
    }
}
