//! `omptrace symbolize`: stores functions and source lines in traces.

use omptrace_symbols::{self as symbols, Quality, Table};
use omptrace_trace_format::{InDoubt, Reader};
use serde_json::json;

use crate::arguments::Symbolize;
use crate::failure::{Failure, Outcome, Result};
use crate::inputs;
use crate::message;
use crate::sealing::{self, Job};

/// Names the code of every input, and lists what has no names, and what was wrong with the traces.
///
/// # Errors
/// An input cannot be read, or not be written.
pub(crate) fn run(arguments: &Symbolize) -> Result<Outcome> {
    let options = symbols::Options {
        debug_dirs: arguments.debug_dirs.debug_dir.clone(),
        ..symbols::Options::default()
    };
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
    for done in sealing::seal_all(jobs) {
        let trace = message::near(&done.trace).display().to_string();
        let cannot = |error| Failure::new(format!("cannot name the code of {trace}: {error}"));
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
        "{trace}: {} of {} with source lines",
        counts[Quality::Line as usize],
        message::counted(all as u64, "place")
    ));
    let mut found = false;
    for (module, problem) in table.problems() {
        message::warning(&format!("{}: {problem}", module.path));
        found = true;
    }
    found
}
