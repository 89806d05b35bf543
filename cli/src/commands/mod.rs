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

use std::path::Path;
use std::process;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::options::{help, man, version};
use crate::output::failure::{FAILURE, Failure, Outcome, Result};
use crate::output::message::shell_word;
use crate::system::probe;
use crate::top;

/// Record what an OpenMP program does, and see where its parallel time goes
#[derive(Debug, Parser)]
#[command(
    name = "omptrace",
    version = version::text(),
    max_term_width = 100,
    subcommand_required = true,
    after_help = concat!("\
Examples:
  omptrace record -o app.omptrace ./app     run a program and see where its time goes
  omptrace stats app.omptrace               the answer again, in more detail
  omptrace report app.omptrace              the same as a web page
  omptrace view app.omptrace                the timeline, in Perfetto
  omptrace help load_imbalance              what a finding means (omptrace help findings lists all)
  omptrace help tutorial                    the documentation (omptrace help pages lists all)

Exit status: 0 on success, 1 if a command found problems, 2 on error; `record` returns the program's status.
Documentation: ", env!("CARGO_PKG_HOMEPAGE"), "/README.md")
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The names of all commands that are shown, and `help`.
pub(crate) fn names() -> Vec<String> {
    let command = Arguments::command();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).chain(["help".to_owned()]).collect()
}

impl Arguments {
    /// The command line of this process. What it asks for by `--help`, and what is wrong with it, is printed, and the process ends.
    pub(crate) fn of_this_process() -> Arguments {
        let matches = help::definition(Arguments::command()).try_get_matches().unwrap_or_else(|mut error| {
            // Its advice, to put `--` before a mistyped option, would make a file's name of it.
            error.remove(ContextKind::Suggested);
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
                && is_program(word)
            {
                let failure = Failure::new(format!("no command is called {}", shell_word(word.as_ref())));
                failure
                    .hint(format!("to record this program: omptrace record {}", shell_word(word.as_ref())))
                    .report();
                process::exit(FAILURE.into());
            }
            without_far_suggestions(&mut error);
            error.exit()
        });
        Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Whether somebody who put this in place of a command wants to run it.
fn is_program(word: &str) -> bool {
    word.contains('/') && Path::new(word).is_file()
}

/// Removes suggestions of hidden commands, and of names that are unlike what was typed.
fn without_far_suggestions(error: &mut clap::Error) {
    /// From 0, nothing in common, to 1, equal.
    const MIN_LIKENESS: f64 = 0.6;

    let shown = names();
    let kinds = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
    ];
    for (typed, suggested) in kinds {
        let is_like = |name: &str| match error.get(typed) {
            Some(ContextValue::String(typed)) => {
                let is_shown = name.starts_with('-') || shown.iter().any(|shown| shown == name);
                let name = name.trim_start_matches('-');
                let typed = typed.trim_start_matches('-');
                is_shown && strsim::normalized_damerau_levenshtein(name, typed) >= MIN_LIKENESS
            }
            _ => true,
        };
        let left = match error.get(suggested) {
            Some(ContextValue::String(name)) if !is_like(name) => Vec::new(),
            Some(ContextValue::Strings(names)) => {
                names.iter().filter(|name| is_like(name)).cloned().collect()
            }
            _ => continue,
        };
        error.remove(suggested);
        if !left.is_empty() {
            error.insert(suggested, ContextValue::Strings(left));
        }
    }
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
    /// Print environment variables for tracing without `record`, for example in job scripts
    Env: env::run;
    /// Finish traces that are incomplete after a crash or were recorded without `record`
    Recover: recover::run;
    /// Look up the functions and source lines of code addresses, and store the names and lines in the traces
    Symbolize: symbolize::run;
    /// Convert traces for other viewers, or to text
    Convert: convert::run;
    /// Open traces in Perfetto's UI, in a browser
    View: view::run;
    /// Show where the time went: causes of lost time, source locations, efficiencies, findings
    Stats: stats::run;
    /// Write a self-contained HTML report
    Report: report::run;
    /// Watch where a running program's time goes
    Top: top::run;
    /// Compare two sets of runs and report statistically significant differences
    Diff: diff::run;
    /// Show how a program scales, from runs with different numbers of threads or processes
    Scaling: scaling::run;
    /// Show what was traced, where and when, how the program ended, and which data was lost
    Info: info::run;
    /// Print every event as it was recorded
    Dump: dump::run;
    /// Check traces for damage, lost data and contradictions
    Check: check::run;
    /// Check which OpenMP runtimes and programs on this machine can be traced
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
        man::page(help::definition(Arguments::command()))
    }

    pub(super) fn completions(arguments: &Completions) -> Result<Outcome> {
        man::completions(arguments, Arguments::command())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
        help::definition(Arguments::command()).debug_assert();
    }

    #[test]
    fn no_command_is_hidden_by_a_page() {
        for name in names() {
            assert!(
                help::of_pages(&[OsString::from(&name)], &[], None).is_some_and(|page| page.is_err()),
                "{name}"
            );
        }
    }
}
