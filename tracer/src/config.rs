//! The `OMPTRACE_*` variables: one table gives name, meaning, default, and how a value is read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::dialects::dialect::every_callback;
use crate::dialects::thread_state;
use crate::os::log::{self, Level, warning};

/// What a thread does when its chunk is full and no other is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFull {
    /// Writes its chunk itself: nothing is lost.
    Write,
    /// Drops events until there is a free chunk, and counts them.
    Drop,
}

/// Who packs chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compress {
    /// The writer thread, at this level of zstd, with processor time that nobody else wants.
    Level(i32),
    /// Nobody: threads write their own chunks as they are.
    Off,
}

/// What is kept of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Every event.
    All,
    /// The newest events of each thread, as many as its memory holds: a flight recorder.
    Newest,
}

/// The settings in force.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The output's name, with `%` patterns.
    pub(crate) output: OsString,
    /// Names of the callbacks to register.
    pub(crate) events: Vec<&'static str>,
    /// Those of them that the user named one by one: recorded although a runtime is known to do harm there.
    pub(crate) insisted: Vec<&'static str>,
    /// Whether SIGUSR2 makes a flight recorder write what it keeps.
    pub(crate) flush_on_signal: bool,
    /// What is kept.
    pub(crate) keep: Keep,
    /// Bytes of chunks per thread.
    pub(crate) buffer_bytes: usize,
    /// Bytes of a device's trace buffer.
    pub(crate) device_buffer_bytes: usize,
    /// What to do without a free chunk.
    pub(crate) on_full: OnFull,
    /// Who packs.
    pub(crate) compress: Compress,
    /// The folder of the spool, where it is not that of the output.
    pub(crate) spool: Option<PathBuf>,
    /// The folder in which each session notes its file for `omptrace record`.
    pub(crate) registry: Option<PathBuf>,
    /// False where the user switched tracing off.
    pub(crate) enabled: bool,
}

/// The variable by which `omptrace record` names its registry.
pub(crate) const REGISTRY: &str = "OMPTRACE_REGISTRY";

/// Bytes of a chunk, its header included.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// One variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value where it is not set, as a user would write it.
    pub default: &'static str,
    /// What values are allowed.
    pub allowed: &'static str,
    /// What it does.
    pub meaning: &'static str,
    set: Set,
}

/// How a value is taken; `None` where it is not allowed.
enum Set {
    Word(fn(&mut Config, &str) -> Option<()>),
    /// A name of the file system: any bytes.
    Path(fn(&mut Config, &OsStr) -> Option<()>),
}

impl Set {
    fn apply(&self, config: &mut Config, value: &OsStr) -> Option<()> {
        match self {
            Set::Word(set) => set(config, value.to_str()?),
            Set::Path(set) => set(config, value),
        }
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

/// All variables that the tracer reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "OMPTRACE_OUTPUT",
        default: "%e.%p.omptrace",
        allowed: "a file name; %e program, %h host, %p process id, %r MPI rank, %t start time, %% a percent sign",
        meaning: "The trace file. A name that is taken gets `.2` and so on before its extension.",
        set: Set::Path(|config, value| {
            config.output = value.into();
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_EVENTS",
        default: "default",
        allowed: "a list, separated by commas, of `default`, `all`, groups, callbacks and `state`; `-` in front takes away",
        meaning: "What is recorded. `default` is all but `flush` and `state`. `state` records what threads do and wait for when implicit tasks and waits for mutexes begin and end.",
        set: Set::Word(|config, value| {
            (config.events, config.insisted) = parse_events(value)?;
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_MODE",
        default: "record",
        allowed: "record, flight",
        meaning: "`flight` keeps the newest events of each thread, as many as `OMPTRACE_BUFFER` holds, which is 512K or more then, and writes them at the end.",
        set: Set::Word(|config, value| {
            config.keep = match value {
                "record" => Keep::All,
                "flight" => Keep::Newest,
                _ => return None,
            };
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_FLUSH_ON",
        default: "",
        allowed: "SIGUSR2",
        meaning: "A signal at which a flight recorder writes what it keeps, and goes on.",
        set: Set::Word(|config, value| {
            config.flush_on_signal = match value {
                "SIGUSR2" => true,
                _ => return None,
            };
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_BUFFER",
        default: "1M",
        allowed: "bytes, with K, M or G; at least 256K, at most 1G",
        meaning: "Memory for events, per thread.",
        set: Set::Word(|config, value| {
            let bytes = parse_bytes(value)?;
            (CHUNK_BYTES..=1 << 30)
                .contains(&bytes)
                .then(|| config.buffer_bytes = bytes)
        }),
    },
    Variable {
        name: "OMPTRACE_DEVICE_BUFFER",
        default: "64K",
        allowed: "bytes, with K, M or G; at least 4K, at most 64M",
        meaning: "Size of the buffers that devices write their records to; up to 64M of them. The last ones are smaller.",
        set: Set::Word(|config, value| {
            let bytes = parse_bytes(value)?;
            (4 << 10..=64 << 20)
                .contains(&bytes)
                .then(|| config.device_buffer_bytes = bytes)
        }),
    },
    Variable {
        name: "OMPTRACE_ON_FULL",
        default: "write",
        allowed: "write, drop",
        meaning: "When a thread's memory is full: it writes events itself, or drops and counts them.",
        set: Set::Word(|config, value| {
            config.on_full = match value {
                "write" => OnFull::Write,
                "drop" => OnFull::Drop,
                _ => return None,
            };
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_COMPRESS",
        default: "auto",
        allowed: "auto, off, 1 to 19",
        meaning: "Packing while the program runs, with processor time that nobody else wants, at a level of zstd (auto: 1).",
        set: Set::Word(|config, value| {
            config.compress = match value {
                "auto" => Compress::Level(1),
                "off" => Compress::Off,
                level => Compress::Level(
                    level
                        .parse()
                        .ok()
                        .filter(|level| (1..=19).contains(level))?,
                ),
            };
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_SPOOL",
        default: "",
        allowed: "a folder",
        meaning: "Where the memory's file lies while the program runs, for example /dev/shm; else beside the trace.",
        set: Set::Path(|config, value| {
            config.spool = Some(value.into());
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_LOG",
        default: "warn",
        allowed: "quiet, warn, info",
        meaning: "What is said on stderr.",
        set: Set::Word(|_, value| {
            log::set_level(match value {
                "quiet" => Level::Quiet,
                "warn" => Level::Warn,
                "info" => Level::Info,
                _ => return None,
            });
            Some(())
        }),
    },
    Variable {
        name: "OMPTRACE_DISABLED",
        default: "0",
        allowed: "0, 1",
        meaning: "1 switches tracing off.",
        set: Set::Word(|config, value| {
            config.enabled = match value {
                "0" => true,
                "1" => false,
                _ => return None,
            };
            Some(())
        }),
    },
    Variable {
        name: REGISTRY,
        default: "",
        allowed: "a folder",
        meaning: "Where each session notes the path of its trace; `omptrace record` sets it.",
        set: Set::Path(|config, value| {
            config.registry = Some(value.into());
            Some(())
        }),
    },
];

impl Config {
    /// The settings of this process's environment. A wrong value is reported on stderr and leaves the default.
    pub(crate) fn from_environment() -> Config {
        Config::from_values(|name| std::env::var_os(name))
    }

    fn from_values(value_of: impl Fn(&str) -> Option<OsString>) -> Config {
        let mut config = Config {
            output: OsString::new(),
            events: Vec::new(),
            insisted: Vec::new(),
            flush_on_signal: false,
            keep: Keep::All,
            buffer_bytes: 0,
            device_buffer_bytes: 0,
            on_full: OnFull::Write,
            compress: Compress::Off,
            spool: None,
            registry: None,
            enabled: true,
        };
        for variable in VARIABLES {
            if !variable.default.is_empty() {
                let default = variable.set.apply(&mut config, variable.default.as_ref());
                default.expect("a default is allowed");
            }
            // An empty value is none: that of a job script's variable that was never set.
            let Some(value) = value_of(variable.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            if variable.set.apply(&mut config, &value).is_none() {
                warning!(
                    "{}={}: not allowed; using \"{}\". Allowed: {}",
                    variable.name,
                    value.to_string_lossy(),
                    variable.default,
                    variable.allowed
                );
            }
        }
        config
    }

    /// The settings for the trace's metadata.
    pub(crate) fn describe(&self) -> BTreeMap<String, String> {
        let compress = match self.compress {
            Compress::Level(level) => level.to_string(),
            Compress::Off => "off".into(),
        };
        let events: Vec<&str> = recordable()
            .map(|(name, _)| name)
            .filter(|name| self.events.contains(name))
            .collect();
        BTreeMap::from([
            (
                "OMPTRACE_OUTPUT".into(),
                self.output.to_string_lossy().into_owned(),
            ),
            ("OMPTRACE_EVENTS".into(), events.join(",")),
            (
                "OMPTRACE_MODE".into(),
                match self.keep {
                    Keep::All => "record".into(),
                    Keep::Newest => "flight".into(),
                },
            ),
            ("OMPTRACE_BUFFER".into(), self.buffer_bytes.to_string()),
            (
                "OMPTRACE_DEVICE_BUFFER".into(),
                self.device_buffer_bytes.to_string(),
            ),
            (
                "OMPTRACE_ON_FULL".into(),
                match self.on_full {
                    OnFull::Write => "write".into(),
                    OnFull::Drop => "drop".into(),
                },
            ),
            ("OMPTRACE_COMPRESS".into(), compress),
        ])
    }
}

/// A size like `256K`.
fn parse_bytes(text: &str) -> Option<usize> {
    let shift = match text.bytes().last()?.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// What a list can name, each with its group.
fn recordable() -> impl Iterator<Item = (&'static str, &'static str)> {
    let callbacks = every_callback().map(|callback| (callback.name, callback.group));
    callbacks.chain([(thread_state::NAME, thread_state::NAME)])
}

/// What is meant by a list like `parallel,task,-flush`, and what it names by its own name. A list that begins by taking away
/// takes from `default`.
fn parse_events(list: &str) -> Option<(Vec<&'static str>, Vec<&'static str>)> {
    let mut chosen: Vec<&'static str> = Vec::new();
    let mut insisted: Vec<&'static str> = Vec::new();
    for (index, item) in list
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .enumerate()
    {
        let (adds, name) = item
            .strip_prefix('-')
            .map_or((true, item), |name| (false, name));
        if index == 0 && !adds {
            (chosen, _) = parse_events("default")?;
        }
        let matches = |(own, group): &(&str, &str)| match name {
            "all" => true,
            "default" => !["flush", thread_state::NAME].contains(own),
            name => *group == name || *own == name,
        };
        let names: Vec<&str> = recordable().filter(matches).map(|(name, _)| name).collect();
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
    use super::*;

    fn names(list: &str) -> Option<Vec<&'static str>> {
        let (chosen, _) = parse_events(list)?;
        let all = recordable().map(|(name, _)| name);
        Some(all.filter(|name| chosen.contains(name)).collect())
    }

    #[test]
    fn default_is_all_but_flush_and_states() {
        assert_eq!(names("all").unwrap().len(), 39);
        assert_eq!(names("default").unwrap().len(), 37);
        assert!(!names("default").unwrap().contains(&"flush"));
        assert!(names("default,state").unwrap().contains(&"state"));
        assert!(names("default,flush").unwrap().contains(&"flush"));
    }

    #[test]
    fn lists_add_and_take_away() {
        assert_eq!(
            names("lock_init,lock_destroy,-lock_init").unwrap(),
            ["lock_destroy"]
        );
        assert_eq!(
            names("-mutex").unwrap().len(),
            37 - names("mutex").unwrap().len()
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
    fn sizes_have_units() {
        assert_eq!(parse_bytes("256K"), Some(256 << 10));
        assert_eq!(parse_bytes("3m"), Some(3 << 20));
        assert_eq!(parse_bytes("17"), Some(17));
        assert_eq!(parse_bytes("many"), None);
        assert_eq!(parse_bytes(""), None);
    }

    #[test]
    fn a_wrong_value_leaves_the_default() {
        let config = Config::from_values(|name| match name {
            "OMPTRACE_BUFFER" => Some("1K".into()),
            "OMPTRACE_COMPRESS" => Some("off".into()),
            "OMPTRACE_EVENTS" => Some("".into()),
            _ => None,
        });
        assert_eq!(config.buffer_bytes, 1 << 20);
        assert_eq!(config.compress, Compress::Off);
        assert_eq!(Some((config.events, Vec::new())), parse_events("default"));
    }
}
