//! The table of the commands, from which help, man page and completions are made, too. Each command has its options in its own file. What
//! several need lies in the other folders: no command uses another.

mod check;
mod convert;
mod diff;
mod doctor;
mod dump;
mod env;
mod info;
mod record;
mod recover;
mod report;
mod scaling;
mod stats;
mod symbolize;
mod view;

use clap::{CommandFactory, Parser, Subcommand};

use crate::options::{man, version};
use crate::output::failure::{Outcome, Result};
use crate::system::probe;
use crate::top;

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
            pub(crate) fn run(&self) -> Result<Outcome> {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
