//! `omptrace scaling`: how a program scales.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use omptrace_analysis::compare;

use crate::input::compared_runs;
use crate::input::input_choice::SourceOptions;
use crate::options::shared::DebugDirs;
use crate::output::failure::{Outcome, Result};
use crate::output::json_output::AnswerOptions;
use crate::output::{message, streams};

/// `omptrace scaling`.
#[derive(Args, Debug)]
#[command(after_help = "\
Each run is given as a trace, as a directory with all traces of the run, or as a file with the output of `omptrace stats --json`. Traces of several ranks of one MPI job count as one run. All runs with the same numbers of threads and processes are shown in one column, as the mean of these runs. The first column shows the runs with the fewest threads; the other columns are compared with the first column. The efficiencies are those of POP: global = parallel x computation scalability, parallel = load balance x \
communication, communication = serialisation x transfer.

Examples:
  OMP_NUM_THREADS=1 omptrace record -o 1.omptrace -- ./app
  OMP_NUM_THREADS=8 omptrace record -o 8.omptrace -- ./app
  omptrace scaling 1.omptrace 8.omptrace")]
pub(crate) struct Scaling {
    /// Runs with different numbers of threads or processes
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Assume weak scaling: the work grows with the number of threads [default: all runs do the same work]
    #[arg(long)]
    pub(crate) weak: bool,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Where numbers come from.
    #[command(flatten)]
    pub(crate) source: SourceOptions,
    /// Print Markdown, for tickets and CI job summaries
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    /// How much of the answer.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Prints POP's table.
///
/// # Errors
/// A run cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Scaling) -> Result<Outcome> {
    let runs = compared_runs::read(&arguments.runs, &arguments.debug_dirs, arguments.source.from)?;
    let scaling = compare::Scaling::of(&runs, arguments.weak);
    if arguments.answer.is_json() {
        arguments.answer.print(&scaling)?;
    } else {
        let mut stdout = streams::text();
        let layout = message::layout(None, arguments.md);
        write!(stdout, "{}", omptrace_report::scaling_text(&scaling, layout))?;
        stdout.flush()?;
    }
    Ok(Outcome::Success)
}
