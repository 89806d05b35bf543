//! The sentences of `record` on where the time went, when its program has ended.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use omptrace_analysis::Stats;
use omptrace_symbols as symbols;

use crate::input::input_choice::{ReadFrom, Sources, Wanted};
use crate::output::message;
use crate::output::quoted_path::typed;

/// Nobody waits longer for it.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Findings that are shown.
const MAX_FINDINGS: usize = 3;

/// Says it for a single trace that was analysed.
pub(crate) fn of(stats: &Stats) {
    lines(stats).iter().for_each(|line| message::note(line));
}

/// Says how to get it.
pub(crate) fn later(traces: &[PathBuf]) {
    let name = match traces {
        [one] => typed(one),
        _ => "TRACE...".to_owned(),
    };
    message::note(&format!("where the time went: omptrace stats {name}"));
}

/// Says it for all traces together; where that takes longer than [`MAX_WAIT`], says how to get it.
pub(crate) fn report(traces: &[PathBuf]) {
    let analysed = traces.to_vec();
    let (sender, receiver) = mpsc::channel();
    let analysis = move || {
        // Nobody may wait for them any more.
        let _unheard = sender.send(lines(&analyse(&analysed)));
    };
    // Without another thread nothing would bound the time.
    if thread::Builder::new().spawn(analysis).is_err() {
        return;
    }
    match receiver.recv_timeout(MAX_WAIT) {
        Ok(lines) => lines.iter().for_each(|line| message::note(line)),
        Err(RecvTimeoutError::Timeout) => later(traces),
        Err(RecvTimeoutError::Disconnected) => {}
    }
}

/// The numbers of traces; none where one cannot be read.
fn analyse(traces: &[PathBuf]) -> Stats {
    let sources = Sources::open(traces, ReadFrom::Auto, Wanted::Replay);
    let stats = sources.ok().and_then(|sources| {
        let inputs = sources.inputs();
        Stats::of_inputs(&inputs, &symbols::Options::default()).ok()
    });
    stats.map(|(stats, _)| stats).unwrap_or_default()
}

/// The headline and the first findings; none where there is no time.
fn lines(stats: &Stats) -> Vec<String> {
    let headline = stats.answers.headline();
    let mut lines: Vec<String> = headline.into_iter().collect();
    if !lines.is_empty() {
        lines.extend(stats.answers.first_findings(MAX_FINDINGS));
    }
    lines
}
