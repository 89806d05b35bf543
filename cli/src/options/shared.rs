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
    /// Flight-recorder mode: keep only the last SIZE of events per thread, as in 64M, and write them at the end
    /// [OMPTRACE_MODE, OMPTRACE_BUFFER]
    #[arg(long, value_name = "SIZE", value_parser = flight_size, conflicts_with_all = ["buffer", "on-full", "compress"])]
    pub(crate) flight: Option<String>,
    /// The tracer's library [default: libomptrace.so beside this program, or in ../lib]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool: Option<PathBuf>,
    /// Always preload the tracer, e.g. for a runtime older than OpenMP 5.0 that the program loads late or that a script's
    /// program uses [LD_PRELOAD]
    #[arg(long)]
    pub(crate) preload: bool,
}

/// How programs built by GCC run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Programs built by GCC")]
pub(crate) struct Libgomp {
    /// How to trace programs built by GCC. Its runtime libgomp has no tools interface: `observe` adds one with
    /// `libomptgomp.so`, and the program still runs on libgomp. `replace` runs it on LLVM's runtime instead, which has its own
    /// scheduling. `keep` does neither. `auto` observes if the program or one of its libraries needs libgomp, and for Python, R
    /// and Octave. It replaces libgomp if the program also uses LLVM's or Intel's runtime, because only one can be traced
    #[arg(long, value_name = "WHEN", default_value_t, value_enum)]
    pub(crate) libgomp: WhenLibgomp,
    /// Also trace libraries loaded with RTLD_DEEPBIND, and libgomp functions found by dlsym. The loader then asks
    /// libomptgomp.so about each binding [LD_AUDIT]
    #[arg(long)]
    pub(crate) audit: bool,
    /// Path of the LLVM or Intel runtime to use instead of libgomp [default: the program's own, or else the newest installed]
    #[arg(long, value_name = "PATH", env = "OMPTRACE_LIBOMP", hide_env_values = true)]
    pub(crate) libomp: Option<PathBuf>,
}

/// The treatment of libgomp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenLibgomp {
    /// Observed if it is needed.
    #[default]
    Auto,
    /// Always observed, even in launchers and scripts, whose programs cannot be seen.
    Observe,
    /// Replaced by LLVM's or Intel's runtime.
    Replace,
    /// Neither observed nor replaced.
    Keep,
}

/// Where names are looked up.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DebugDirs {
    /// Directory with debug files or with the traced programs, as `.build-id/12/345678.debug` or under their own names. Can be
    /// repeated [default: beside each program, and /usr/lib/debug]
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
#[command(next_help_heading = "Less of a large trace")]
pub(crate) struct Part {
    /// Only this part of the time, as in 2.0s..2.5s, ..10ms or 2s..; longer slices are cut
    #[arg(long, value_name = "FROM..TO", value_parser = units::window, allow_hyphen_values = true)]
    pub(crate) window: Option<(Ns, Ns)>,
    /// Only these threads: a number (0 is the first of a process), the operating system's id, or part of the name, as in
    /// 'worker 3'. Can be repeated
    #[arg(long = "thread", value_name = "THREAD")]
    pub(crate) threads: Vec<String>,
    /// Hide slices shorter than this, as in 10us; instants are kept
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds)]
    pub(crate) min_duration: Option<u64>,
    /// Details to store with each slice
    #[arg(long = "args", value_name = "WHICH", default_value = "all", value_parser = argument_choice())]
    pub(crate) arguments: ArgumentChoice,
}

/// Which details, by their words.
fn argument_choice() -> impl TypedValueParser<Value = ArgumentChoice> {
    const CHOICES: [(&str, &str, ArgumentChoice); 3] = [
        ("none", "none", ArgumentChoice::None),
        ("ids", "which task, region or lock it is", ArgumentChoice::Ids),
        ("all", "all", ArgumentChoice::All),
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
