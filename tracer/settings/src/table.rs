//! The table of settings. A new setting is a row here. The tracer obeys it where `config.FIELD` is read in `tracer/src`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::setting::{CommandLineOption, REGISTRY, Setting};
use crate::value::{
    AnnotationList, Bytes, Compress, CounterList, Cupti, DomainList, EventList, FlushSignal, Folder, Keep,
    Library, LogLevel, OnFull, Pattern, RankList, Sample, Switch, Value,
};

impl Setting {
    /// The setting of this variable.
    pub fn of(variable: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.variable == variable)
    }
}

/// Turns each row into a field of [`Settings`] and an element of [`SETTINGS`]. `recorded` tells whether the setting is
/// in the trace's metadata.
macro_rules! settings {
    ($($field:ident: $type:ty {
        variable: $variable:expr,
        default: $default:literal,
        recorded: $recorded:literal,
        meaning: $meaning:literal,
        option: $option:expr,
    })*) => {
        /// The settings in force.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(
                #[doc = $meaning]
                pub $field: $type,
            )*
        }

        /// All settings.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            variable: $variable,
            default: $default,
            meaning: $meaning,
            option: $option,
            kind: <$type as Value>::KIND,
            allowed: <$type as Value>::allowed,
            check: |value| <$type as Value>::parse(value).is_some(),
        }),*];

        impl Settings {
            /// Reads the settings, with `value_of` returning the value of a variable. A variable without an allowed
            /// value gets its default; for a value that is not allowed, `refuse` is called.
            pub fn from_values(
                value_of: impl Fn(&str) -> Option<OsString>,
                refuse: &mut dyn FnMut(&Setting, &OsStr),
            ) -> Settings {
                let mut rows = SETTINGS.iter();
                Settings {
                    $($field: read(rows.next().expect("a row per field"), &value_of, refuse),)*
                }
            }

            /// The settings for the trace's metadata, by variable name.
            pub fn describe(&self) -> BTreeMap<String, String> {
                let mut described = BTreeMap::new();
                $(if $recorded {
                    described.insert($variable.to_owned(), self.$field.describe());
                })*
                described
            }
        }
    };
}

fn read<T: Value>(
    setting: &Setting,
    value_of: &impl Fn(&str) -> Option<OsString>,
    refuse: &mut dyn FnMut(&Setting, &OsStr),
) -> T {
    // An empty value counts as unset: it may come from a job script's variable that was never set.
    if let Some(value) = value_of(setting.variable).filter(|value| !value.is_empty()) {
        match T::parse(&value) {
            Some(parsed) => return parsed,
            None => refuse(setting, &value),
        }
    }
    T::parse(OsStr::new(setting.default)).expect("a default is allowed")
}

settings! {
    output: Pattern {
        variable: "OMPTRACE_OUTPUT",
        default: "%e.%p.omptrace",
        recorded: true,
        meaning: "The name of the trace file. If this file already exists, the new trace is named with `.2`, `.3` and so on before the extension, as in `app.2.omptrace`.",
        option: Some(CommandLineOption {
            long: "output",
            short: Some('o'),
            value_name: "FILE",
            bare: None,
            help: "Name of each process's trace file: %e is the program, %h the host, %p the process id, %r the MPI rank, %t the start time. If FILE is an existing directory or ends in `/`, traces are written into this directory under the default name. Missing directories are created. Existing files are never overwritten: the new trace is named with `.2`, `.3` and so on before the extension",
        }),
    }
    events: EventList {
        variable: "OMPTRACE_EVENTS",
        default: "default",
        recorded: true,
        meaning: "The events to record. `default` is everything except `flush` and `state`. `state` records the state of each thread at the start and end of implicit tasks and of waits for mutexes.",
        option: Some(CommandLineOption {
            long: "events",
            short: None,
            value_name: "LIST",
            bare: None,
            help: "Events to record: a list of callbacks, groups of callbacks, `default` (all except flush and state) and `all`, for example `default,flush` or `-mutex`; a leading `-` excludes a callback or group",
        }),
    }
    sample: Sample {
        variable: "OMPTRACE_SAMPLE",
        default: "off",
        recorded: true,
        meaning: "Samples the call stack of each thread at regular intervals of the CPU time that the thread uses. With `cpu:RATE`, RATE is the maximum number of samples per second of a thread's CPU time; the kernel takes at most one sample per clock tick. `perf` and `perf:RATE` take the samples with perf_event_open, if the system allows this, and do not sample time in the kernel. If `,tasks` is appended, each thread also records its call stack when it creates a task.",
        option: Some(CommandLineOption {
            long: "sample",
            short: None,
            value_name: "CLOCK",
            bare: Some("cpu"),
            help: "Also sample call stacks. `cpu` requests one sample per millisecond of each thread's CPU time; `cpu:RATE` requests RATE samples per second of CPU time. `perf:RATE` can take more than one sample per clock tick of the kernel, but only of code in user mode. Append `,tasks` to any of these values to also record where tasks are created. `--sample` without a value means `cpu`",
        }),
    }
    counters: Option<CounterList> {
        variable: "OMPTRACE_COUNTERS",
        default: "",
        recorded: true,
        meaning: "Counters that each thread reads when regions, implicit tasks, worksharing constructs, tasks and waits start and end: `task-clock`, `context-switches`, `preemptions`, `page-faults`, and hardware counters such as `cycles` and `instructions`.",
        option: Some(CommandLineOption {
            long: "counters",
            short: None,
            value_name: "LIST",
            bare: None,
            help: "Counters to record for each thread, for example `instructions,cycles`, `task-clock` or `page-faults`",
        }),
    }
    cpu_time: Switch {
        variable: "OMPTRACE_CPU_TIME",
        default: "0",
        recorded: true,
        meaning: "Set to 1 to measure the time in which threads are preempted, which then does not count as useful time. This uses the counters `task-clock`, `context-switches` and `preemptions`.",
        option: Some(CommandLineOption {
            long: "cpu-time",
            short: None,
            value_name: "SWITCH",
            bare: Some("1"),
            help: "Measure the time lost to preemption: 1 turns this on, 0 off; `--cpu-time` without a value means 1. The tracer then reads counters at the start and end of each construct, which takes about 0.7 us each time",
        }),
    }
    annotations: AnnotationList {
        variable: "OMPTRACE_ANNOTATIONS",
        default: "all",
        recorded: true,
        meaning: "The interfaces whose annotations are recorded: `all`, `none`, or a list of `nvtx`, `itt`, `kokkos`, `openacc`, `roctx` and `omptrace`.",
        option: Some(CommandLineOption {
            long: "annotations",
            short: None,
            value_name: "LIST",
            bare: None,
            help: "Record the annotations that the program makes through these interfaces: all, none, or a list of nvtx, itt, kokkos, openacc, roctx and omptrace",
        }),
    }
    annotation_domains: Option<DomainList> {
        variable: "OMPTRACE_ANNOTATION_DOMAINS",
        default: "",
        recorded: true,
        meaning: "Patterns of the domains whose annotations are recorded. The last pattern that matches a domain decides whether the domain is recorded; a pattern with a leading `-` excludes domains.",
        option: Some(CommandLineOption {
            long: "annotation-domains",
            short: None,
            value_name: "PATTERNS",
            bare: None,
            help: "Record only annotations of domains that match these patterns, for example `solver*,-*.detail`; a pattern with a leading `-` excludes domains",
        }),
    }
    annotation_text: Switch {
        variable: "OMPTRACE_ANNOTATION_TEXT",
        default: "1",
        recorded: true,
        meaning: "Set to 0 to leave out the texts of annotations, except names of domains and categories.",
        option: None,
    }
    mode: Keep {
        variable: "OMPTRACE_MODE",
        default: "record",
        recorded: true,
        meaning: "`flight` keeps only the newest events of each thread, as many as fit into `OMPTRACE_BUFFER`, and writes them when the program ends. In this mode, the buffer size is at least 512 KiB.",
        option: None,
    }
    flush_on: Option<FlushSignal> {
        variable: "OMPTRACE_FLUSH_ON",
        default: "",
        recorded: false,
        meaning: "The signal that makes the flight recorder write its events and continue to record.",
        option: None,
    }
    buffer: Bytes<{ 256 << 10 }, { 1 << 30 }> {
        variable: "OMPTRACE_BUFFER",
        default: "1M",
        recorded: true,
        meaning: "Size of the event buffer of each thread.",
        option: Some(CommandLineOption {
            long: "buffer",
            short: None,
            value_name: "SIZE",
            bare: None,
            help: "Size of each thread's event buffer, from 256K to 1G, for example 4M",
        }),
    }
    device_buffer: Bytes<{ 4 << 10 }, { 64 << 20 }> {
        variable: "OMPTRACE_DEVICE_BUFFER",
        default: "64K",
        recorded: true,
        meaning: "Size of each buffer for device records. All buffers together take at most 64M. A new buffer takes at most an eighth of what is left of these 64M.",
        option: None,
    }
    cupti: Cupti {
        variable: "OMPTRACE_CUPTI",
        default: "auto",
        recorded: true,
        meaning: "NVIDIA's CUPTI library, which traces NVIDIA devices if the OpenMP runtime does not trace them. In processes that use CUDA, `auto` loads the version of CUPTI that fits the driver.",
        option: None,
    }
    on_full: OnFull {
        variable: "OMPTRACE_ON_FULL",
        default: "write",
        recorded: true,
        meaning: "What to do if a thread's buffer is full: the thread writes the events itself, or drops and counts the events.",
        option: Some(CommandLineOption {
            long: "on-full",
            short: None,
            value_name: "ACTION",
            bare: None,
            help: "What to do if a thread's buffer is full and the disk cannot keep up: the thread writes the events itself, or drops and counts the events",
        }),
    }
    compress: Compress {
        variable: "OMPTRACE_COMPRESS",
        default: "auto",
        recorded: true,
        meaning: "The zstd level for compressing the trace while the program runs. The tracer compresses at idle priority. `auto` means level 1.",
        option: Some(CommandLineOption {
            long: "compress",
            short: None,
            value_name: "LEVEL",
            bare: None,
            help: "Compress while recording, at idle priority: auto, off, or a zstd level from 1 to 19",
        }),
    }
    spool: Option<Folder> {
        variable: "OMPTRACE_SPOOL",
        default: "",
        recorded: false,
        meaning: "Directory of the spool (the file that stores events while the program runs), for example /dev/shm. The default is the directory of the trace or, if this directory is on a network file system, `$TMPDIR` (`/tmp` if `TMPDIR` is not set).",
        option: Some(CommandLineOption {
            long: "spool",
            short: None,
            value_name: "DIR",
            bare: None,
            help: "Directory for the spool, for example /dev/shm. The spool is the file that holds the event buffers while the program runs [default: the directory of the trace]",
        }),
    }
    ranks: Option<RankList> {
        variable: "OMPTRACE_RANKS",
        default: "",
        recorded: true,
        meaning: "The ranks of an MPI job to record, for example `0,1,100-107`. Other ranks run without the tracer. The default is all ranks. Processes to which the launcher gives no rank are always recorded.",
        option: Some(CommandLineOption {
            long: "ranks",
            short: None,
            value_name: "LIST",
            bare: None,
            help: "Record only these ranks of an MPI job, for example 0,1,100-107; other ranks run without the tracer. Waits for other ranks can be recognised only if all ranks are recorded [default: all]",
        }),
    }
    mpi_clocks: Switch {
        variable: "OMPTRACE_MPI_CLOCKS",
        default: "0",
        recorded: true,
        meaning: "Set to 1 to compare the clocks of an MPI job's hosts at the end of `MPI_Init` and at the start of `MPI_Finalize`. All ranks of the job must be recorded, because a rank that runs without omptrace would block the other ranks in `MPI_Init`. The comparison is left out if all ranks run on one host or if `OMPTRACE_RANKS` is set.",
        option: Some(CommandLineOption {
            long: "mpi-clocks",
            short: None,
            value_name: "SWITCH",
            bare: Some("1"),
            help: "Compare the clocks of an MPI job's hosts in MPI_Init and MPI_Finalize: 1 turns this on, 0 off; `--mpi-clocks` without a value means 1. All ranks of the job must be recorded, because a rank without omptrace would block the other ranks",
        }),
    }
    log: LogLevel {
        variable: "OMPTRACE_LOG",
        default: "warn",
        recorded: false,
        meaning: "The messages that the tracer prints on stderr.",
        option: None,
    }
    disabled: Switch {
        variable: "OMPTRACE_DISABLED",
        default: "0",
        recorded: false,
        meaning: "Set to 1 to switch tracing off.",
        option: None,
    }
    chain: Switch {
        variable: "OMPTRACE_CHAIN",
        default: "1",
        recorded: false,
        meaning: "Set to 0 to prevent the tracer from starting another OMPT tool.",
        option: None,
    }
    next_tool: Option<Library> {
        variable: "OMPTRACE_NEXT_TOOL",
        default: "",
        recorded: true,
        meaning: "The OMPT tool to which the tracer passes events. The default is the first tool after the tracer in `OMP_TOOL_LIBRARIES` that accepts the runtime or, if there is none, the next tool in the program.",
        option: None,
    }
    registry: Option<Folder> {
        variable: REGISTRY,
        default: "",
        recorded: false,
        meaning: "Directory in which each traced process registers the path of its trace; set by `omptrace record`.",
        option: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_leaves_the_default() {
        let mut refused = Vec::new();
        let settings = Settings::from_values(
            |name| match name {
                "OMPTRACE_BUFFER" => Some("1K".into()),
                "OMPTRACE_COMPRESS" => Some("off".into()),
                "OMPTRACE_EVENTS" => Some("".into()),
                _ => None,
            },
            &mut |setting, value| refused.push(setting.refusal(value)),
        );
        assert_eq!(settings.buffer.0, 1 << 20);
        assert_eq!(settings.compress, Compress::Off);
        assert_eq!(settings.events.0, "default");
        assert_eq!(
            refused,
            [
                "OMPTRACE_BUFFER=1K is not allowed; using \"1M\" instead. Allowed values: a number of bytes from 256K to 1G, with an optional suffix K, M or G"
            ]
        );
    }

    #[test]
    fn metadata_have_what_changes_the_trace() {
        let settings = Settings::from_values(|_| None, &mut |_, _| unreachable!("no value is set"));
        let described = settings.describe();
        let of = |variable: &str| described.get(variable).map(String::as_str);
        assert_eq!(of("OMPTRACE_BUFFER"), Some("1048576"));
        assert_eq!(of("OMPTRACE_COMPRESS"), Some("1"));
        assert_eq!(of("OMPTRACE_MODE"), Some("record"));
        assert_eq!(of("OMPTRACE_LOG"), None);
    }
}
