//! `omptrace symbolize`: stores functions and source lines in traces.

use std::path::PathBuf;

use clap::Args;
use omptrace_symbols::{Quality, Table};
use omptrace_trace_format::{InDoubt, Reader};
use serde_json::json;

use crate::input::inputs;
use crate::options::shared::DebugDirs;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::message;
use crate::seal::sealing::{self, Job};
use crate::seal::summaries::{self, SummaryOptions};

/// `omptrace symbolize`.
#[derive(Args, Debug)]
#[command(after_help = "\
Names are read from the program, its libraries and their debug files. A file is used only if it has the same build id as during the run or, if it has no build id, the same size and modification time. If a file no longer exists, the names from this file that are already stored in the trace are kept.

Exit status: 0 if the source lines of all code were found, 1 if some were not found (the output lists this code), 2 on error.

Examples:
  omptrace symbolize app.omptrace
  omptrace symbolize traces/ --debug-dir /nfs/symbols")]
pub(crate) struct Symbolize {
    /// Traces or directories of traces
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where debug files lie.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Summaries.
    #[command(flatten)]
    pub(crate) summary: SummaryOptions,
}

/// Names the code of every input, and lists what has no names, and what was wrong with the traces.
///
/// # Errors
/// An input cannot be read, or not be written.
pub(crate) fn run(arguments: &Symbolize) -> Result<Outcome> {
    let options = arguments.debug_dirs.symbols();
    let jobs = inputs::traces(&arguments.inputs)?
        .into_iter()
        .map(|trace| Job {
            trace,
            additions: json!({}),
            symbols: Some(options.clone()),
            in_doubt: InDoubt::Refuse,
        })
        .collect();
    let mut outcome = Outcome::Success;
    let work = summaries::completing(!arguments.summary.no_summary);
    let done = sealing::seal_all(jobs, &work);
    if !arguments.summary.no_summary {
        // With other names, it is another one.
        summaries::add(&summaries::completed(&done), None, true, work.next_step("analysing"));
    } else {
        work.finish();
    }
    for done in done {
        let trace = message::near(&done.trace).display().to_string();
        let cannot = |error| Failure::new(format!("cannot resolve the code addresses in {trace}: {error}"));
        let sealed = done.result.map_err(cannot)?;
        let is_damaged = sealing::report_diagnostics(&done.trace, &sealed);
        let reader = inputs::open(&done.trace)?;
        if report(&trace, &reader) || is_damaged {
            outcome = Outcome::Findings;
        }
    }
    Ok(outcome)
}

/// Says how much of a trace's code has names; true where some has no source line.
fn report(trace: &str, reader: &Reader) -> bool {
    let table = Table::from_metadata(reader.metadata()).unwrap_or_default();
    let counts = table.counts();
    let all = counts.iter().sum::<usize>();
    message::note(&format!(
        "{trace}: {} of {} have source lines",
        counts[Quality::Line as usize],
        message::counted(all as u64, "code location")
    ));
    let mut found = false;
    for (module, problem) in table.problems() {
        message::warning(&format!("{}: {problem}", module.path));
        found = true;
    }
    found
}
