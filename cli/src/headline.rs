//! The sentences of `record` on where the time went, when its program has ended.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use omptrace_analysis::Stats;
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::message;
use crate::sealing::{Done, typed};

/// Nobody waits longer for it.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Findings that are shown.
const MAX_FINDINGS: usize = 3;

/// Says it for all traces together; where that takes longer than [`MAX_WAIT`], says how to get it.
pub(crate) fn report(done: &[Done]) {
    let sealed = done.iter().filter(|done| done.result.is_ok());
    let traces: Vec<PathBuf> = sealed.map(|done| done.trace.clone()).collect();
    let Some(first) = traces.first() else {
        return;
    };
    let name = match traces.len() {
        1 => typed(first),
        _ => "TRACE...".to_owned(),
    };
    let (sender, receiver) = mpsc::channel();
    let analysis = move || {
        // Nobody may wait for them any more.
        let _unheard = sender.send(lines(&traces));
    };
    // Without another thread nothing would bound the time.
    if thread::Builder::new().spawn(analysis).is_err() {
        return;
    }
    match receiver.recv_timeout(MAX_WAIT) {
        Ok(lines) => lines.iter().for_each(|line| message::note(line)),
        Err(RecvTimeoutError::Timeout) => {
            message::note(&format!("where the time went: omptrace stats {name}"));
        }
        Err(RecvTimeoutError::Disconnected) => {}
    }
}

/// The headline and the first findings of traces; none of those that cannot be read or have no time.
fn lines(traces: &[PathBuf]) -> Vec<String> {
    let readers = traces.iter().filter_map(|trace| Reader::open(trace).ok());
    let readers: Vec<Reader> = readers.collect();
    let inputs: Vec<&Reader> = readers.iter().collect();
    let (stats, _) = Stats::of(&inputs, &symbols::Options::default());
    let headline = stats.answers.headline();
    let mut lines: Vec<String> = headline.into_iter().collect();
    if !lines.is_empty() {
        lines.extend(stats.answers.first_findings(MAX_FINDINGS));
    }
    lines
}
