//! Adds summaries, which contain the results of `stats`, to completed traces.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use omptrace_analysis::Stats;
use omptrace_analysis::summary::{NewSummary, NoSummary, Summary, WriteError};
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::Reader;

use crate::output::progress::{self, Work};
use crate::output::quoted_path::typed;
use crate::output::{message, signals};
use crate::seal::sealing::SealedTrace;

/// Whether traces get summaries.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct SummaryOptions {
    /// Do not store the results of the analysis in the trace; `stats`, `report`, `diff` and `scaling` then read all events
    #[arg(long)]
    pub(crate) no_summary: bool,
}

/// The result of adding summaries.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// The statistics of a single trace.
    pub(crate) stats: Option<Stats>,
    /// The time ran out before all traces were analysed.
    pub(crate) is_late: bool,
    /// If so, the statistics of a part of a single trace.
    pub(crate) part: Option<Box<Stats>>,
}

/// The statistics of a part of a trace with about this many bytes of events: of windows all over the run if possible,
/// otherwise of its first part.
fn of_part(reader: &Reader, bytes: u64) -> Option<Box<Stats>> {
    Stats::of_sample(reader, bytes).or_else(|| Stats::of_beginning(reader, bytes)).map(Box::new)
}

/// Bytes of events that can be analysed in about 0.3 seconds, without a replay.
const FIRST_BYTES: u64 = 8 << 20;
/// Maximum ratio of the time for the complete analysis to the time for one pass.
const WHOLE_PER_PASS: f64 = 2.0;
/// How long the analysis of a part may take.
const PART_TIME: Duration = Duration::from_millis(1200);
/// Share of the remaining time that analysing a larger part may take, because its speed is estimated from a smaller
/// part.
const SAFE: f64 = 0.7;
/// Time between checks whether the user is still waiting.
const MOMENT: Duration = Duration::from_millis(50);

/// How long `record` waits for summaries of a program that ran for `ran`: 1.5 seconds plus a tenth of that, but at most
/// a minute.
pub(crate) fn patience(ran: Duration) -> Duration {
    let most = Duration::from_secs(60);
    (Duration::from_millis(1500) + ran / 10).min(most)
}

/// The bar for completing traces, and for analysing them afterwards if they are analysed.
pub(crate) fn completing(and_analysed: bool) -> Work {
    match and_analysed {
        true => Work::first_step("completing", 20),
        false => Work::one_step("completing"),
    }
}

/// The traces that were completed.
pub(crate) fn completed(done: &[SealedTrace]) -> Vec<PathBuf> {
    let sealed = done.iter().filter(|done| done.result.is_ok());
    sealed.map(|done| done.trace.clone()).collect()
}

/// Adds a summary to each trace without one, until the time runs out. If requested, reports traces that did not get
/// one, except for traces that cannot have one.
pub(crate) fn add(traces: &[PathBuf], patience: Option<Duration>, is_talkative: bool, work: Work) -> Added {
    let until = patience.map(|patience| Instant::now() + patience);
    let lacking: Vec<PathBuf> =
        traces.iter().filter(|trace| !matches!(Summary::read(trace), Ok(Some(_)))).cloned().collect();
    let alone = traces.len() == 1;
    let all = lacking.len();
    let mut missing = all;
    let (sender, receiver) = mpsc::channel();
    let analysis = move || {
        in_parallel(lacking, |trace| {
            let analysed = analyse(&trace, alone);
            // The receiver may have stopped waiting.
            let _unheard = sender.send((trace, analysed));
        });
    };
    // Without a separate thread, the time would be unlimited.
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
        work.set((all - missing) as u64, all as u64);
        let Some((reader, analysed)) = analysed else {
            continue;
        };
        match analysed.and_then(|mut new| new.write(&reader).map(|()| new)) {
            Ok(new) => stats = Some(new.stats).filter(|_| alone),
            Err(why) => note_lack(&trace, why, is_talkative, &mut too_large),
        }
    }
    work.finish();
    // If the time is limited, `record` reports the rest, with the command to continue.
    let unfinished = if patience.is_some() { 0 } else { missing };
    if is_talkative {
        report(unfinished, traces, &too_large);
    }
    Added { stats, is_late: missing > 0, part: None }
}

/// A result of analysing a single trace.
enum Found {
    Part(Box<Stats>),
    Whole(Box<Result<NewSummary, NoSummary>>),
}

/// Like [`add`], for a single trace. After `patience`, if given, or if the user has pressed Ctrl-C, returns the
/// statistics of a part of it instead. The summary is stored in the trace only if `is_kept`.
pub(crate) fn add_in_time(
    trace: &Path,
    patience: Option<Duration>,
    is_kept: bool,
    is_talkative: bool,
    work: Work,
) -> Added {
    let begun = Instant::now();
    let until = patience.map(|patience| begun + patience);
    let Ok(reader) = Reader::open(trace).map(Arc::new) else {
        return Added::default();
    };
    let (sender, receiver) = mpsc::channel();
    let analysed = Arc::clone(&reader);
    // If nothing is printed, no partial result is needed.
    let first = if is_talkative { FIRST_BYTES } else { u64::MAX };
    // The receiver may have stopped waiting.
    let analysis = move || analyse_in_time(&analysed, first, until, |found| drop(sender.send(found)));
    // Without a separate thread, the time would be unlimited.
    if thread::Builder::new().spawn(analysis).is_err() {
        return Added::default();
    }
    // If the handler cannot be installed, the signal ends this program as usual.
    let _interrupts = signals::note_interrupts();
    let mut added = Added::default();
    let mut too_large = Vec::new();
    loop {
        match receiver.recv_timeout(MOMENT) {
            Ok(Found::Part(part)) => added.part = Some(part),
            Ok(Found::Whole(new)) => {
                added = Added::default();
                let kept = new.and_then(|mut new| {
                    let written = if is_kept { new.write(&reader) } else { Ok(()) };
                    added.stats = Some(new.stats);
                    written
                });
                if let Err(why) = kept {
                    note_lack(trace, why, is_talkative, &mut too_large);
                }
                break;
            }
            Err(RecvTimeoutError::Timeout)
                if until.is_none_or(|until| Instant::now() < until)
                    // A first answer is there within a moment.
                    && !(signals::is_interrupted() && (added.part.is_some() || !is_talkative)) =>
            {
                let (read, all) = progress::read_of(&[&reader]);
                work.set(read, all);
                if let Some(patience) = patience {
                    work.set(begun.elapsed().as_millis() as u64, patience.as_millis() as u64);
                }
            }
            Err(_) => {
                added.is_late = true;
                break;
            }
        }
    }
    work.finish();
    if is_talkative {
        report(0, &[], &too_large);
    }
    added
}

/// Reports why a trace has no summary, unless that is expected. Traces that are too large are reported together.
fn note_lack(trace: &Path, why: NoSummary, is_talkative: bool, too_large: &mut Vec<PathBuf>) {
    match why {
        NoSummary::Write(WriteError::TooLarge) => too_large.push(trace.to_owned()),
        // If names are looked up later, events are read then.
        NoSummary::NamesLookedUpLater | NoSummary::Running => {}
        _ if !is_talkative => {}
        why => message::note(&format!("{}: no summary was stored: {why}", message::near(trace).display())),
    }
}

/// Analyses the whole trace, if this is possible before `until`. If the trace has more than `first` bytes of events,
/// first analyses a part of this size. If there is no time for the whole, a larger part follows.
fn analyse_in_time(reader: &Reader, first: u64, until: Option<Instant>, mut give: impl FnMut(Found)) {
    let all = reader.summary().event_bytes;
    let begun = Instant::now();
    if all > first
        && let Some(part) = of_part(reader, first)
    {
        give(Found::Part(part));
        let seconds_per_byte = begun.elapsed().as_secs_f64() / first as f64;
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let for_whole = seconds_per_byte * WHOLE_PER_PASS * all as f64;
        if let Some(left) = left.filter(|left| for_whole > left.as_secs_f64()) {
            larger_part(reader, first, begun, left).into_iter().for_each(|part| give(Found::Part(part)));
            return;
        }
    }
    give(Found::Whole(Box::new(NewSummary::of(reader, true))));
}

/// The statistics of a part of a trace that can be analysed in about a second; `None` if that is enough for all of it.
pub(crate) fn estimate(reader: &Reader) -> Option<Box<Stats>> {
    let begun = Instant::now();
    let part =
        (reader.summary().event_bytes > FIRST_BYTES).then(|| of_part(reader, FIRST_BYTES)).flatten()?;
    Some(larger_part(reader, FIRST_BYTES, begun, PART_TIME).unwrap_or(part))
}

/// The statistics of a larger part than `first` bytes, whose analysis began at `begun`, if it can be analysed within
/// `left` and [`PART_TIME`].
fn larger_part(reader: &Reader, first: u64, begun: Instant, left: Duration) -> Option<Box<Stats>> {
    let seconds_per_byte = begun.elapsed().as_secs_f64() / first as f64;
    let left = left.min(PART_TIME.saturating_sub(begun.elapsed()));
    let more = (left.as_secs_f64() * SAFE / seconds_per_byte) as u64;
    (more > first).then(|| of_part(reader, more.min(reader.summary().event_bytes))).flatten()
}

/// The summary of a trace, if the trace is readable.
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
            "the analysis of {} was not completed; to complete it, run: omptrace recover {name}",
            message::counted(missing as u64, "trace")
        ));
    }
    if let Some(first) = too_large.first() {
        message::note(&format!(
            "no summary was stored in {}, because the summary would exceed 64 KiB (first: {}); omptrace stats reads the events instead",
            message::counted(too_large.len() as u64, "trace"),
            message::near(first).display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of a recorded trace for which results are returned, and whether the whole is among them.
    fn found(patience: Option<Duration>) -> (Vec<f64>, bool) {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../viewer-export/tests/devices/amd_async.omptrace");
        let reader = Reader::open(trace.as_ref()).expect("a trace");
        let first = reader.summary().event_bytes / 2;
        let (mut parts, mut is_whole) = (Vec::new(), false);
        analyse_in_time(&reader, first, patience.map(|patience| Instant::now() + patience), |found| {
            match found {
                Found::Part(part) => parts.push(part.based_on.expect("a part").share),
                Found::Whole(_) => is_whole = true,
            }
        });
        (parts, is_whole)
    }

    #[test]
    fn who_has_no_time_gets_a_part_and_who_has_gets_all() {
        let (parts, is_whole) = found(Some(Duration::ZERO));
        assert!(parts.len() == 1 && (0.4..=0.5).contains(&parts[0]) && !is_whole, "{parts:?} {is_whole}");
        for patience in [Some(Duration::from_secs(3600)), None] {
            let (parts, is_whole) = found(patience);
            assert!(parts.len() == 1 && is_whole, "{parts:?} {is_whole}");
        }
    }
}
