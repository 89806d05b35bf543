//! Options that several commands have. Each command has its own beside it.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use omptrace_settings::value::{Bytes, Value};
use omptrace_symbols as symbols;
use omptrace_timeline::filter::ArgumentChoice;
use omptrace_timeline::model::Ns;

use crate::options::settings::SettingOptions;
use crate::options::units;

/// How the tracer works: its settings, and what `record` and `env` do with it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct Tracer {
    /// Its variables.
    #[command(flatten)]
    pub(crate) settings: SettingOptions,
    /// Keep only the last SIZE bytes of each thread's events, for example 64M; the tracer writes these events to the
    /// trace when the program ends (flight-recorder mode) [OMPTRACE_MODE, OMPTRACE_BUFFER]
    #[arg(long, value_name = "SIZE", value_parser = flight_size, conflicts_with_all = ["buffer", "on-full", "compress"])]
    pub(crate) flight: Option<String>,
    /// Do not store the texts of annotations, except the names of domains and categories [OMPTRACE_ANNOTATION_TEXT]
    #[arg(long)]
    pub(crate) no_annotation_text: bool,
    /// The tracer's library [default: libomptrace.so in the directory of the omptrace command, or in ../lib relative to
    /// that directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool: Option<PathBuf>,
    /// Always preload the tracer. This option is needed, for example, if the program loads a runtime older than OpenMP
    /// 5.0 with dlopen, or if a script starts a program that uses such a runtime [LD_PRELOAD]
    #[arg(long)]
    pub(crate) preload: bool,
}

/// How programs built by GCC run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Programs built by GCC")]
pub(crate) struct Libgomp {
    /// How to trace programs built by GCC. GCC's runtime, libgomp, has no tools interface. `observe` adds such an
    /// interface with `libomptgomp.so`; the program still runs on libgomp. `replace` runs the program on LLVM's runtime
    /// instead, which schedules work differently. `keep` does neither. `auto` observes libgomp if the program or one of
    /// its libraries needs libgomp, or if the program is Python, R or Octave. If the program also uses LLVM's or
    /// Intel's runtime, `auto` replaces libgomp, because only one runtime can be traced
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) libgomp: WhenLibgomp,
    /// Also trace libraries loaded with RTLD_DEEPBIND, and libgomp functions looked up with dlsym. The dynamic loader
    /// then calls libomptgomp.so for each symbol that it binds [LD_AUDIT]
    #[arg(long)]
    pub(crate) audit: bool,
    /// Path of the LLVM or Intel runtime to use instead of libgomp [default: the runtime that the program needs or, if
    /// it needs none, the newest one installed]
    #[arg(long, value_name = "PATH", env = "OMPTRACE_LIBOMP", hide_env_values = true)]
    pub(crate) libomp: Option<PathBuf>,
}

/// The treatment of libgomp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenLibgomp {
    /// Observe libgomp if the program may need libgomp.
    #[default]
    Auto,
    /// Always observe libgomp, even for launchers and scripts, whose programs are not known in advance.
    Observe,
    /// Replace libgomp with LLVM's or Intel's runtime.
    Replace,
    /// Neither observe nor replace libgomp.
    Keep,
}

/// Where names are looked up.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DebugDirs {
    /// Directory in which to look for debug files and the traced programs; the files can be stored as
    /// `.build-id/12/345678.debug` or under their own names. Can be repeated [default: the directory of each program,
    /// and /usr/lib/debug]
    #[arg(long, value_name = "DIR")]
    pub(crate) debug_dir: Vec<PathBuf>,
}

impl DebugDirs {
    /// Whether names may be others than those that traces have.
    pub(crate) fn is_any(&self) -> bool {
        !self.debug_dir.is_empty()
    }

    /// How names are looked up.
    pub(crate) fn symbols(&self) -> symbols::Options {
        symbols::Options { debug_dirs: self.debug_dir.clone(), ..symbols::Options::default() }
    }
}

/// The selected part of a timeline.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selecting part of a trace")]
pub(crate) struct Part {
    /// Select only this time window, for example 2.0s..2.5s, ..10ms or 2s..; slices that extend beyond the window are
    /// cut
    #[arg(long, value_name = "FROM..TO", value_parser = units::window, allow_hyphen_values = true)]
    pub(crate) window: Option<(Ns, Ns)>,
    /// Select only matching threads: a number (0 is the first thread of a process), an operating-system thread id, or
    /// part of a name, for example 'worker 3'. Can be repeated
    #[arg(long = "thread", value_name = "THREAD")]
    pub(crate) threads: Vec<String>,
    /// Hide slices shorter than TIME, for example 10us; instants (events without a duration) are kept
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds)]
    pub(crate) min_duration: Option<u64>,
    /// Details to store with each slice
    #[arg(long = "args", value_name = "WHICH", default_value = "all", value_parser = argument_choice())]
    pub(crate) arguments: ArgumentChoice,
}

/// Which details, by their words.
fn argument_choice() -> impl TypedValueParser<Value = ArgumentChoice> {
    const CHOICES: [(&str, &str, ArgumentChoice); 3] = [
        ("none", "no details", ArgumentChoice::None),
        ("ids", "only the ids of the task, region or lock", ArgumentChoice::Ids),
        ("all", "all details", ArgumentChoice::All),
    ];
    let values = CHOICES.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(|name| {
        let choice = CHOICES.into_iter().find(|choice| choice.0 == name);
        choice.map_or(ArgumentChoice::All, |(_, _, choice)| choice)
    })
}

/// The memory of a flight recorder, which has old events while there are new ones.
fn flight_size(text: &str) -> Result<String, String> {
    type FlightSize = Bytes<{ 512 << 10 }, { 1 << 30 }>;
    match FlightSize::parse(text.as_ref()) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("allowed: {}", FlightSize::allowed())),
    }
}
