//! What a reader of a timeline should see first: the time steps, the critical path, and the top finding where it cost the most.

use omptrace_analysis::answers::{self, Finding, Moment};
use omptrace_analysis::summary::Summary;
use omptrace_analysis::{Input, Options, Stats};
use omptrace_symbols as symbols;
use omptrace_timeline::filter::{ExtraInterval, ExtraTrack};
use omptrace_timeline::model::{Category, LinkKind, Ns, ProcessId};
use omptrace_trace_format::{Metadata, Reader};

use crate::options::units;
use crate::output::view_steps;
use crate::serve::Start;

/// The track's name.
const TOP_FINDING: &str = "top finding";
/// The track's name.
const CRITICAL_PATH: &str = "critical path";

/// Tracks for the timeline, and how the viewer opens it.
#[derive(Debug, Default)]
pub(crate) struct Highlights {
    pub(crate) tracks: Vec<ExtraTrack>,
    pub(crate) start: Start,
    /// Words about the place in sight; `None` where all is.
    pub(crate) place: Option<String>,
}

impl Highlights {
    /// Only tracks, all of which are pinned.
    fn of_tracks(tracks: Vec<ExtraTrack>) -> Highlights {
        let start = Start { pinned: pinned(&tracks), ..Start::default() };
        Highlights { tracks, start, place: None }
    }
}

/// The names of the tracks, from the top.
fn pinned(tracks: &[ExtraTrack]) -> Vec<String> {
    tracks.iter().map(|track| track.name.clone()).collect()
}

/// The critical path of each process as a track.
pub(crate) fn critical_paths(inputs: &[&Reader], symbols: &symbols::Options) -> Vec<ExtraTrack> {
    let paths = answers::critical_paths(inputs, symbols).into_iter();
    let tracks = paths.zip(0..).map(|(intervals, process)| ExtraTrack {
        process: ProcessId(process),
        name: CRITICAL_PATH.to_owned(),
        category: Category::Work,
        intervals,
        arrows: Some(LinkKind::CriticalPath),
    });
    tracks.collect()
}

/// The highlights of a trace.
pub(crate) fn of(reader: &Reader, symbols: &symbols::Options) -> Highlights {
    let (stats, _) = Stats::of(&[reader], symbols);
    let mut tracks = view_steps::rows(stats.steps.as_ref(), (Ns::MIN, Ns::MAX));
    let paths = critical_paths(&[reader], symbols);
    let pieces = paths.iter().flat_map(|path| path.intervals.iter());
    let (Some(first), Some(last)) = (pieces.clone().next(), pieces.last()) else {
        return Highlights::of_tracks(tracks);
    };
    // The timeline begins at 0. The critical path begins earlier, with the process.
    let whole = (first.begin.max(0), last.end);
    tracks.extend(paths);
    let answers = &stats.answers;
    let finding = answers.findings.first();
    let worst = finding.and_then(|finding| finding.instances.first());
    let (Some(finding), Some(worst)) = (finding, worst) else {
        return Highlights::of_tracks(tracks);
    };
    let words = omptrace_report::finding_line(answers, finding);
    tracks.push(of_finding(finding, &words));
    let visible = around(worst, whole);
    let place = format!("{}..{}: {words}", units::seconds(visible.0), units::seconds(visible.1));
    let number = |ns: i64| ns.max(0).cast_unsigned();
    Highlights {
        start: Start {
            pinned: pinned(&tracks),
            visible: Some((number(visible.0), number(visible.1))),
            selected: Some((number(worst.begin_ns), number(worst.end_ns - worst.begin_ns))),
        },
        tracks,
        place: Some(place),
    }
}

/// The top finding of traces that are more than a viewer takes, and the window around it that has about this `share` of their time.
/// Where a trace has no summary, the finding is that of the run's first part of that length: all of it would take longer than the user
/// waits.
pub(crate) fn in_window(
    readers: &[Reader],
    symbols: &symbols::Options,
    share: f64,
) -> (Highlights, (Ns, Ns)) {
    let summaries: Option<Vec<Summary>> =
        readers.iter().map(|reader| Summary::read(reader.path()).ok().flatten()).collect();
    let all = readers.iter().filter_map(known_duration).max();
    let length = |all: u64| ((all as f64 * share) as i64).max(1);
    let stats = match (&summaries, all) {
        (Some(summaries), _) => {
            let inputs: Vec<Input<'_>> =
                summaries.iter().map(|summary| Input { trace: None, summary: Some(summary) }).collect();
            Stats::of_inputs(&inputs, symbols).ok()
        }
        (None, Some(all)) => {
            let inputs: Vec<Input<'_>> =
                readers.iter().map(|reader| Input { trace: Some(reader), summary: None }).collect();
            let window = Some((0, length(all)));
            let options = Options { symbols: symbols.clone(), window, ..Options::default() };
            Stats::of_sources(&inputs, &options).ok()
        }
        (None, None) => Some(Stats::of(&readers.iter().collect::<Vec<_>>(), symbols)),
    };
    let stats = stats.map(|(stats, _)| stats).unwrap_or_default();
    let all = match summaries {
        Some(_) => stats.answers.duration_ns,
        None => all.unwrap_or(stats.answers.duration_ns),
    };
    let answers = &stats.answers;
    let finding = answers.findings.iter().find(|finding| !finding.instances.is_empty());
    let Some((finding, worst)) = finding.and_then(|finding| Some((finding, finding.instances.first()?)))
    else {
        let window = (0, length(all));
        return (Highlights::of_tracks(view_steps::rows(stats.steps.as_ref(), window)), window);
    };
    let window = window_at(worst, length(all));
    let words = omptrace_report::finding_line(answers, finding);
    let shown = Finding {
        instances: finding.instances.iter().filter(|moment| is_within(moment, window)).cloned().collect(),
        ..finding.clone()
    };
    let visible = around(worst, window);
    let number = |ns: i64| ns.max(0).cast_unsigned();
    let mut tracks = view_steps::rows(stats.steps.as_ref(), window);
    tracks.push(of_finding(&shown, &words));
    let highlights = Highlights {
        start: Start {
            pinned: pinned(&tracks),
            visible: Some((number(visible.0), number(visible.1))),
            selected: is_within(worst, window)
                .then(|| (number(worst.begin_ns), number(worst.end_ns - worst.begin_ns))),
        },
        tracks,
        place: Some(format!("{}..{}: {words}", units::seconds(visible.0), units::seconds(visible.1))),
    };
    (highlights, window)
}

/// How long a process ran until its tracing ended, as the trace says it.
fn known_duration(reader: &Reader) -> Option<u64> {
    duration_of(reader.metadata())
}

fn duration_of(metadata: &Metadata) -> Option<u64> {
    let by_record = metadata.record.as_ref().and_then(|record| record.started_raw_ns);
    let by_tracer = metadata.process.as_ref().and_then(|process| process.started_raw_ns);
    let started = by_record.or_else(|| u64::try_from(by_tracer?).ok())?;
    let end = metadata.end.as_ref()?;
    // What the tracer writes when the program has ended is no part of the run.
    let ended = end.began_raw_ns.or(end.raw_ns)?;
    ended.checked_sub(started).filter(|ns| *ns > 0)
}

/// A window of this length around a moment; from its begin on where it is longer.
fn window_at(moment: &Moment, length: i64) -> (Ns, Ns) {
    let own = moment.end_ns.saturating_sub(moment.begin_ns).max(0);
    let before = (length.saturating_sub(own) / 2).max(0);
    let begin = moment.begin_ns.saturating_sub(before).max(0);
    (begin, begin.saturating_add(length.max(1)))
}

fn is_within(moment: &Moment, window: (Ns, Ns)) -> bool {
    window.0 <= moment.begin_ns && moment.end_ns <= window.1
}

/// When the finding was seen. Of instances that overlap, the one that cost the most shows.
fn of_finding(finding: &Finding, words: &str) -> ExtraTrack {
    let mut intervals: Vec<ExtraInterval> = Vec::new();
    for moment in &finding.instances {
        let (begin, end) = (moment.begin_ns, moment.end_ns);
        if intervals.iter().all(|known| end <= known.begin || known.end <= begin) {
            intervals.push(ExtraInterval {
                name: words.into(),
                thread: Some((*moment.thread).into()),
                location: None,
                begin,
                end,
            });
        }
    }
    intervals.sort_by_key(|interval| interval.begin);
    ExtraTrack {
        process: ProcessId(0),
        name: TOP_FINDING.to_owned(),
        category: Category::Wait,
        intervals: intervals.into(),
        arrows: None,
    }
}

/// The time around a moment, twice as long as itself on both sides, within `whole`: what the UI makes of a selection.
fn around(moment: &Moment, whole: (i64, i64)) -> (i64, i64) {
    let ns = (moment.end_ns - moment.begin_ns).max(1).saturating_mul(2);
    let begin = moment.begin_ns.saturating_sub(ns).max(whole.0);
    let end = moment.end_ns.saturating_add(ns).min(whole.1);
    (begin, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(begin_ns: i64, end_ns: i64) -> Moment {
        Moment { begin_ns, end_ns, process: "app".to_owned(), thread: "main".to_owned() }
    }

    #[test]
    fn a_moment_is_shown_with_what_is_around_it() {
        assert_eq!(around(&moment(200, 250), (0, 1000)), (100, 350));
        assert_eq!(around(&moment(10, 60), (5, 80)), (5, 80));
    }

    #[test]
    fn a_run_is_as_long_as_the_trace_says() {
        use omptrace_trace_format::metadata::{End, Process, Record};

        let end = |raw_ns, began_raw_ns| Some(End { raw_ns, began_raw_ns, ..End::default() });
        let process = Some(Process { started_raw_ns: Some(1_000), ..Process::default() });
        let mut metadata = Metadata { process, end: end(Some(9_000), Some(8_000)), ..Metadata::default() };
        assert_eq!(duration_of(&metadata), Some(7_000));
        metadata.record = Some(Record { started_raw_ns: Some(2_000), ..Record::default() });
        assert_eq!(duration_of(&metadata), Some(6_000));
        metadata.end = end(Some(9_000), None);
        assert_eq!(duration_of(&metadata), Some(7_000));
        metadata.end = end(None, None);
        assert_eq!(duration_of(&metadata), None);
    }

    #[test]
    fn a_window_is_around_the_moment_and_not_before_the_start() {
        assert_eq!(window_at(&moment(1000, 1100), 300), (900, 1200));
        assert_eq!(window_at(&moment(10, 20), 300), (0, 300));
        assert_eq!(window_at(&moment(1000, 2000), 300), (1000, 1300));
        assert!(is_within(&moment(1000, 1100), (900, 1200)) && !is_within(&moment(1000, 2000), (1000, 1300)));
    }

    #[test]
    fn instances_do_not_overlap_on_their_track() {
        let finding = Finding {
            id: "imbalance".to_owned(),
            place: answers::Place::default(),
            gain_ns: 1,
            text: String::new(),
            evidence: serde_json::Map::new(),
            instances: vec![moment(50, 60), moment(55, 70), moment(10, 50)],
        };
        let track = of_finding(&finding, "why");
        let shown: Vec<_> = track.intervals.iter().map(|interval| (interval.begin, interval.end)).collect();
        assert_eq!(shown, [(10, 50), (50, 60)]);
    }
}
