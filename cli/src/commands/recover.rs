//! `omptrace recover`: completes the traces that `record` did not.

use std::path::PathBuf;

use clap::Args;
use omptrace_trace_format::InDoubt;
use serde_json::json;

use crate::input::inputs;
use crate::output::failure::{Failure, Outcome, Result};
use crate::seal::sealing::{self, Job};
use crate::seal::summaries::{self, SummaryOptions};

/// `omptrace recover`.
#[derive(Args, Debug)]
#[command(after_help = "\
Adds the events that a killed program left in its spool (the file that holds the event buffers), compresses the trace, and adds an index and a summary. You can stop the command at any time and run it again.

Examples:
  omptrace recover app.omptrace
  omptrace recover traces/")]
pub(crate) struct Recover {
    /// Finish traces even if it is not known whether their processes have ended
    ///
    /// If a process runs on another host or in another container, the lock on its trace may be the only sign that the
    /// process is still running. On some file systems, this lock is not visible on other hosts or in other containers.
    /// Use this option only when you know that the processes have ended. If a process is still running, everything that
    /// it records after this command is lost.
    #[arg(long)]
    pub(crate) force: bool,
    /// Summaries.
    #[command(flatten)]
    pub(crate) summary: SummaryOptions,
    /// Traces or directories of traces
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// Completes every input, and says what each holds.
///
/// # Errors
/// None of the inputs could be completed.
pub(crate) fn run(arguments: &Recover) -> Result<Outcome> {
    let jobs = inputs::traces(&arguments.inputs)?
        .into_iter()
        .map(|trace| Job {
            trace,
            additions: json!({}),
            symbols: None,
            in_doubt: match arguments.force {
                true => InDoubt::Seal,
                false => InDoubt::Refuse,
            },
        })
        .collect();
    let work = summaries::completing(!arguments.summary.no_summary);
    let done = sealing::seal_all(jobs, &work);
    if !arguments.summary.no_summary {
        summaries::add(&summaries::completed(&done), None, true, work.next_step("analysing"));
    } else {
        work.finish();
    }
    sealing::report(&done);
    sealing::report_problems(&done);
    if done.iter().any(|done| done.result.is_err()) {
        return Err(Failure::new("some traces could not be finished"));
    }
    Ok(Outcome::Success)
}
