//! The notes about the recording in the summary of `record`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use omptrace_analysis::calls_hidden_by;
use omptrace_symbols as symbols;
use omptrace_timeline::Reports;
use omptrace_trace_format::{Metadata, Reader};

use crate::seal::sealing::SealedTrace;
use crate::seal::summaries;
use crate::system::recording_clock::RecordingClock;

/// The notes, in the order of display. `hidden`: what the adapter for libgomp does not see.
pub(crate) fn of(output: &Path, done: &[SealedTrace], hidden: Option<String>) -> Vec<String> {
    /// One of the first traces knows what all do.
    const MOST: usize = 4;

    let traces = summaries::completed(done);
    let readers: Vec<Reader> =
        traces.iter().take(MOST).filter_map(|trace| Reader::open(trace).ok()).collect();
    let all: Vec<&Metadata> = readers.iter().map(Reader::metadata).collect();
    let first = all.first().copied();
    let notes = renamed(output, &traces).into_iter().chain(hidden).chain(first.and_then(left_out));
    notes.chain(mpi_hidden(&all)).chain(without_lines(done)).chain(first.and_then(clock_of)).collect()
}

/// Words about types of events that the user did not want.
fn left_out(metadata: &Metadata) -> Option<String> {
    let wanted = Reports::of(metadata).requested;
    (!wanted.is_everything()).then(|| {
        "--events left out some types of events; the time of waits that are visible only in these events counts as useful time"
            .to_owned()
    })
}

/// Words about a trace that has another name than requested, because that file exists; traces are never overwritten.
fn renamed(output: &Path, traces: &[PathBuf]) -> Option<String> {
    let name = output.file_name()?.to_str().filter(|name| !name.contains('%'))?;
    let [trace] = traces else { return None };
    let is_other = trace.parent() == output.parent() && trace.file_name()? != name;
    (is_other && output.is_file()).then(|| format!("{name} exists already and was not overwritten"))
}

/// The clock and what an event costs, in words: the same for all traces of this machine.
fn clock_of(metadata: &Metadata) -> Option<String> {
    Some(RecordingClock::of(metadata)?.line())
}

/// Words about calls of MPI that another file hides, of the first trace that knows it.
fn mpi_hidden(all: &[&Metadata]) -> Option<String> {
    all.iter().find_map(|metadata| metadata.mpi.as_ref()?.hidden_by.as_deref().map(calls_hidden_by))
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
