//! The notes about the recording in the summary of `record`.

use std::collections::BTreeSet;
use std::path::Path;

use omptrace_analysis::calls_hidden_by;
use omptrace_symbols as symbols;
use omptrace_timeline::Reports;
use omptrace_trace_format::Reader;

use crate::seal::sealing::SealedTrace;
use crate::seal::summaries;
use crate::system::recording_clock::RecordingClock;

/// The notes, in the order of display. `hidden`: what the adapter for libgomp does not see.
pub(crate) fn of(output: &Path, done: &[SealedTrace], hidden: Option<String>) -> Vec<String> {
    let notes = renamed(output, done).into_iter().chain(hidden).chain(left_out(done));
    notes.chain(mpi_hidden(done)).chain(without_lines(done)).chain(clock_of(done)).collect()
}

/// Words about types of events that the user did not want, of the first trace.
fn left_out(done: &[SealedTrace]) -> Option<String> {
    let traces = summaries::completed(done);
    let reader = Reader::open(traces.first()?).ok()?;
    let wanted = Reports::of(reader.metadata()).requested;
    (!wanted.is_everything()).then(|| {
        "--events left out some types of events: the time of the waits that only these events show counts as useful time"
            .to_owned()
    })
}

/// Words about a trace that has another name than requested, because that file exists; traces are never overwritten.
fn renamed(output: &Path, done: &[SealedTrace]) -> Option<String> {
    let traces = summaries::completed(done);
    let name = output.file_name()?.to_str().filter(|name| !name.contains('%'))?;
    let [trace] = &traces[..] else { return None };
    let is_other = trace.parent() == output.parent() && trace.file_name()? != name;
    (is_other && output.is_file()).then(|| format!("{name} exists already and was not overwritten"))
}

/// The clock and what an event costs, in words: those of the first trace, for all are of this machine.
fn clock_of(done: &[SealedTrace]) -> Option<String> {
    let traces = summaries::completed(done);
    let clock = RecordingClock::of(Reader::open(traces.first()?).ok()?.metadata())?;
    Some(clock.line())
}

/// Words about calls of MPI that another file hides, of the first trace that knows it.
fn mpi_hidden(done: &[SealedTrace]) -> Option<String> {
    summaries::completed(done).iter().take(4).find_map(|trace| {
        let reader = Reader::open(trace).ok()?;
        reader.metadata().mpi.as_ref()?.hidden_by.as_deref().map(calls_hidden_by)
    })
}

/// Words about modules of which the answers have no source lines, as they were compiled without `-g`.
fn without_lines(done: &[SealedTrace]) -> Option<String> {
    let modules: BTreeSet<&String> = done.iter().flat_map(|done| &done.missing.without_lines).collect();
    let name = Path::new(modules.first()?).file_name()?.display();
    let more = match modules.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{name}{more}: {}", symbols::Problem::NoDebugInfo))
}
