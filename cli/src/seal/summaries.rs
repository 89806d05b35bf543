//! Summaries for traces that are complete: what `stats` finds, kept in them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use omptrace_analysis::Stats;
use omptrace_analysis::summary::{NewSummary, NoSummary, Summary, WriteError};
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::Reader;

use crate::output::message;
use crate::output::quoted_path::typed;
use crate::seal::sealing::Done;

/// Whether traces get summaries.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct SummaryOptions {
    /// Do not store the analysis in the trace; `stats`, `report`, `diff` and `scaling` then read all events
    #[arg(long)]
    pub(crate) no_summary: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// The numbers of a single trace.
    pub(crate) stats: Option<Stats>,
    /// The time was up before all traces were analysed.
    pub(crate) is_late: bool,
}

/// How long `record` waits for summaries of a program that ran for `ran`: two seconds and a tenth of that, a minute at most.
pub(crate) fn patience(ran: Duration) -> Duration {
    let most = Duration::from_secs(60);
    (Duration::from_secs(2) + ran / 10).min(most)
}

/// The traces that were completed.
pub(crate) fn completed(done: &[Done]) -> Vec<PathBuf> {
    let sealed = done.iter().filter(|done| done.result.is_ok());
    sealed.map(|done| done.trace.clone()).collect()
}

/// Puts a summary into each trace that has none, until the time is up. Those that got none are reported where that is
/// asked for, but for those that cannot have one.
pub(crate) fn add(traces: &[PathBuf], patience: Option<Duration>, is_talkative: bool) -> Added {
    let until = patience.map(|patience| Instant::now() + patience);
    let lacking: Vec<PathBuf> =
        traces.iter().filter(|trace| !matches!(Summary::read(trace), Ok(Some(_)))).cloned().collect();
    let alone = traces.len() == 1;
    let mut missing = lacking.len();
    let (sender, receiver) = mpsc::channel();
    let analysis = move || {
        in_parallel(lacking, |trace| {
            let analysed = analyse(&trace, alone);
            // Nobody may wait for it any more.
            let _unheard = sender.send((trace, analysed));
        });
    };
    // Without another thread nothing would bound the time.
    if thread::Builder::new().spawn(analysis).is_err() {
        return Added::default();
    }
    let mut stats = None;
    let mut too_large = Vec::new();
    while missing > 0 {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let next = match left {
            Some(left) => receiver.recv_timeout(left),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok((trace, analysed)) = next else {
            break;
        };
        missing -= 1;
        let Some((reader, analysed)) = analysed else {
            continue;
        };
        match analysed.and_then(|mut new| new.write(&reader).map(|()| new)) {
            Ok(new) => stats = Some(new.stats).filter(|_| alone),
            Err(NoSummary::Write(WriteError::TooLarge)) => too_large.push(trace),
            // Who asks for names later reads events.
            Err(NoSummary::NamesLookedUpLater | NoSummary::Running) => {}
            Err(_) if !is_talkative => {}
            Err(error) => message::note(&format!("{}: no summary: {error}", message::near(&trace).display())),
        }
    }
    // Who is not waited for is told of by `record`, with the command that does.
    let unfinished = if patience.is_some() { 0 } else { missing };
    if is_talkative {
        report(unfinished, traces, &too_large);
    }
    Added { stats, is_late: missing > 0 }
}

/// The summary of a trace that can be read.
fn analyse(trace: &Path, alone: bool) -> Option<(Reader, Result<NewSummary, NoSummary>)> {
    let reader = Reader::open(trace).ok()?;
    let summary = NewSummary::of(&reader, alone);
    Some((reader, summary))
}

fn report(missing: usize, traces: &[PathBuf], too_large: &[PathBuf]) {
    if missing > 0 {
        let name = match traces {
            [one] => typed(one),
            _ => "TRACE...".to_owned(),
        };
        message::note(&format!(
            "analysis of {} not finished; to finish it: omptrace recover {name}",
            message::counted(missing as u64, "trace")
        ));
    }
    if let Some(first) = too_large.first() {
        message::note(&format!(
            "{} without a summary, because it would take more than 64 KiB (first: {}); stats reads the events",
            message::counted(too_large.len() as u64, "trace"),
            message::near(first).display()
        ));
    }
}
