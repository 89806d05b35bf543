//! The program `omptrace`, which is the command line around the libraries.
//!
//! ```text
//! arguments   options that several commands have, with the tracer's settings (settings); version, and man: the man page and the
//!             completions of the command line, which is defined here
//! record      runs a program (process) with the tracer (find_tracer), finds its traces (recorded_traces, unnoted),
//!             completes them (sealing) with what it has seen itself (seen), with names of code, also of files that are gone (module_files), and with summaries
//!             (summarise); reports what was not traced (apart), and where the time went (headline)
//! preload     what the loader loads into programs before their own libraries
//! env         the same variables for job scripts
//! libgomp     whether LLVM's runtime takes the place of GCC's: only where it has all that is called (entries)
//! doctor      what can be traced here; asks each runtime (probe)
//! diagnosis   whether a program can be traced, from its file (program, elf), its libraries (loader) and their
//!             runtimes (runtime)
//! convert     makes an export (output_path, or replace_folder) with the format's options (format_flags), less of it where asked for (units); view hands one to
//!             Perfetto's UI (serve)
//! message     texts for people: width, folding, quoting
//! streams     stdout and stderr, behind what keeps names from driving a terminal
//! temp_files  what goes away when a signal ends the program (signals)
//! top         what a running program does now, from its trace and spool
//! report      a page of the answers, with the program's sources (source_files); the crate `report` lays it out
//! diff, scaling
//!             compare runs, which are traces or answers (runs)
//! recover, symbolize, stats, info, dump, check
//!             one library call each
//! sources     what answers are made of: events, or the summaries in traces
//! answer, csv JSON for programs, cut to what was asked for and to a size that they read
//! problems    findings for editors and code hosts
//! ```
//!
//! stdout carries data, stderr carries words. Exit status: 0 all is well, 1 findings, 2 failure; `record` passes on that
//! of its program.

mod advice;
mod answer;
mod apart;
mod arguments;
mod beside;
mod check;
mod closed;
mod command_words;
mod conversion;
mod convert;
mod csv;
mod descriptors;
mod diagnosis;
mod diff;
mod disk;
mod doctor;
mod dump;
mod elf;
mod energy;
mod entries;
mod env;
mod failure;
mod find_tracer;
mod folders;
mod format_flags;
mod gaps;
mod headline;
mod highlights;
mod info;
mod inputs;
mod installed_runtimes;
mod killed;
mod libgomp;
mod loader;
mod man;
mod message;
mod module_files;
mod offloading;
mod output_path;
mod packages;
mod preload;
mod probe;
mod problems;
mod process;
mod program;
mod progress;
mod quoted_path;
mod record;
mod recorded_traces;
mod recover;
mod replace_folder;
mod replaced;
mod report;
mod runs;
mod runtime;
mod scaling;
mod sealing;
mod seen;
mod selection;
pub mod serve;
mod settings;
mod signals;
mod source_files;
mod sources;
mod stats;
mod streams;
mod summarise;
mod symbolize;
mod temp_files;
mod top;
mod units;
mod unnoted;
mod version;
mod view;
mod windows;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::{Outcome, Result};

/// What is said where nothing was asked for.
pub(crate) const FIRST_STEPS: &str = "\
omptrace record ./app   run a program and record its OpenMP events
omptrace stats FILE     see where the time went, and what a change would gain
omptrace --help         all commands; `omptrace doctor ./app` checks a program
";

/// Record what an OpenMP program does, and see where its parallel time goes
#[derive(Debug, Parser)]
#[command(
    name = "omptrace",
    version = version::text(),
    max_term_width = 100,
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

/// Makes of each row `/// help  Name: module::function;` a command: its options are `module::Name`, and `module::function`
/// runs it.
macro_rules! commands {
    ($($(#[$attribute:meta])* $Name:ident: $module:ident::$run:ident;)*) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$attribute])* $Name($module::$Name),)*
        }

        impl Command {
            fn run(&self) -> Result<Outcome> {
                match self {
                    $(Command::$Name(arguments) => $module::$run(arguments),)*
                }
            }
        }
    };
}

commands! {
    /// Run a program and record what its OpenMP runtime does
    Record: record::run;
    /// Print the variables that trace a program without `record`, for job scripts
    Env: env::run;
    /// Complete the traces that `record` did not: of a killed job, or of a program run by hand
    Recover: recover::run;
    /// Name the code of traces: functions and source lines, stored in the traces
    Symbolize: symbolize::run;
    /// Convert traces to a format that a viewer reads, or to text
    Convert: convert::run;
    /// Open traces in Perfetto's UI, in a browser
    View: view::run;
    /// Show where the time went, in numbers: per construct, per thread
    Stats: stats::run;
    /// Make a page of where the time went and why, to hand on
    Report: report::run;
    /// Watch a running program: where its time goes now
    Top: top::run;
    /// Compare two sets of runs: what takes longer or shorter than chance explains
    Diff: diff::run;
    /// Show how a program scales, from runs with different numbers of threads or processes
    Scaling: scaling::run;
    /// Show what was traced, where, when, how it ended, and what was lost
    Info: info::run;
    /// Print every event as it was recorded
    Dump: dump::run;
    /// Look for damage, loss and contradictions
    Check: check::run;
    /// Find OpenMP runtimes and what each lets a tool see; say whether a program can be traced
    Doctor: doctor::run;
    /// Print the man page
    #[command(hide = true)]
    Man: definition::page;
    /// Print the completions for a shell
    #[command(hide = true)]
    Completions: definition::completions;
    /// Start an OpenMP runtime in this process, with whatever tool the environment names
    #[command(hide = true)]
    DoctorProbe: probe::start;
}

/// The commands that print the command line's definition.
mod definition {
    use super::*;
    pub(crate) use man::{Completions, Man};

    pub(super) fn page(_: &Man) -> Result<Outcome> {
        man::page(Arguments::command())
    }

    pub(super) fn completions(arguments: &Completions) -> Result<Outcome> {
        man::completions(arguments, Arguments::command())
    }
}

/// Parses the command line, runs the command, reports what went wrong. Without a command it says what can be done. The exit
/// status is as in the module's documentation.
pub fn main() -> ExitCode {
    if std::env::args_os().len() <= 1 {
        // A closed stderr is no failure.
        let _ = streams::stderr().write_all(FIRST_STEPS.as_bytes());
        return ExitCode::from(failure::FAILURE);
    }
    let result = Arguments::parse().command.run();
    temp_files::settle();
    let status = match result {
        Ok(outcome) => outcome.status(),
        Err(failure) => failure.report(),
    };
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
