//! Windows of a trace, read in each way: all of it, no more than they need, and from checkpoints. They show the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use omptrace_analysis::{Options, Stats};
use omptrace_symbols::parallel;
use omptrace_timeline::filter::Selection;
use omptrace_timeline::model::{Arguments, Awaited, Item, Ns, Point, Sink, Wants};
use omptrace_timeline::null_sink::NullSink;
use omptrace_timeline::{Boundary, FromSegment, Manner, Report, Segments, Timeline, replay_with};
use omptrace_trace_format::checkpoint::Checkpoint;
use omptrace_trace_format::{Reader, summary};
use omptrace_viewer_export::{ConvertOptions, Format, convert};
use serde_json::Value;

use crate::trace::difference;

/// Checkpoints of a trace, about.
const CHECKPOINTS: u64 = 20;
/// Events between two checkpoints, at least.
pub const DISTANCE: u64 = 20;

/// How lines begin that are about a counter, and how far its changes are apart.
const COUNT: &str = "counter ";
const RESOLUTION_NS: Ns = 1_000;

/// What windows there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    /// The trace's checkpoints.
    pub checkpoints: usize,
    /// Windows that begin after one.
    pub windows: usize,
    /// Segments that were exported apart.
    pub segments: usize,
    /// Segments that were analysed apart.
    pub analysed: usize,
}

/// What a window shows, in words: numbers that only distinguish things are left out.
#[derive(Clone, Default)]
struct Words {
    locations: Vec<String>,
    regions: Vec<String>,
    counters: Vec<String>,
    /// Links that viewers do not show are left out: they may lead from before a segment.
    is_of_viewers: bool,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Words {
    fn at(&self, at: Point) -> String {
        format!("{} {}", self.locations[at.location.0 as usize], at.time)
    }

    fn line(&self, line: String) {
        self.lines.lock().expect("nobody panics").push(line);
    }
}

fn awaited(awaited: Option<Awaited>) -> String {
    match awaited {
        // Acquisitions are counted from where reading began.
        Some(Awaited::Mutex { lock, held }) => format!("mutex {lock:?} {}", held.is_some()),
        other => format!("{other:?}"),
    }
}

fn arguments(arguments: Arguments<'_>) -> String {
    format!("{arguments:?}")
}

impl Sink for Words {
    fn wants(&self) -> Wants {
        match self.is_of_viewers {
            true => Wants::COUNTS.and(Wants::ARROWS).and(Wants::SAMPLES),
            false => Wants::ALL,
        }
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Location(location) => self.locations.push(location.name.clone()),
            Item::Region(region) => self.regions.push(region.name.clone()),
            Item::Counter(counter) => self.counters.push(counter.name.clone()),
            Item::Count(count) => {
                let name = &self.counters[count.counter.0 as usize];
                self.line(format!("{COUNT}{name} {} {}", count.time, count.value));
            }
            Item::Enter(enter) => self.line(format!(
                "{} enter {} {:?} {} {}",
                self.at(enter.at),
                self.regions[enter.region.0 as usize],
                enter.part,
                awaited(enter.awaited),
                arguments(enter.arguments)
            )),
            Item::Leave(leave) => {
                self.line(format!("{} leave {}", self.at(leave.at), arguments(leave.arguments)))
            }
            Item::Instant(instant) => self.line(format!(
                "{} instant {} {}",
                self.at(instant.at),
                self.regions[instant.region.0 as usize],
                arguments(instant.arguments)
            )),
            Item::Interval(interval) => self.line(format!(
                "{} {} {} to {}",
                self.locations[interval.track.0 as usize], interval.name, interval.begin, interval.end
            )),
            Item::Link(link) => self.line(format!(
                "{:?} {} {:?} to {} {:?}",
                link.kind,
                self.at(link.from),
                link.cause,
                self.at(link.to),
                link.effect
            )),
            Item::Segment => self.line("segment".to_owned()),
            Item::Counted(counted) => self.line(format!("{} counted", self.at(counted.at))),
            Item::Sample(sample) => self.line(format!("{} sample", self.at(sample.at))),
            _ => {}
        }
    }
}

/// What `window` of the trace shows. A counter that is 0 from its begin on need not be said to be. Its changes within a
/// microsecond are one, of which the window's ends may show a part.
fn shown(reader: &Reader, window: (Ns, Ns), manner: Manner) -> Vec<String> {
    let words = Words::default();
    let selection = Selection { window: Some(window), ..Selection::default() };
    let mut sink = selection.of(Box::new(words.clone()));
    replay_with(&[reader], &omptrace_symbols::Table::stored, manner, &mut *sink, &mut |_| {});
    sink.finish().expect("nothing is written");
    let mut lines = std::mem::take(&mut *words.lines.lock().expect("nobody panics"));
    let counts: Vec<(String, Ns, i64)> = lines.iter().filter_map(|line| count(line)).collect();
    lines.retain(|line| count(line).is_none());
    let mut at_begin = BTreeMap::new();
    for (name, time, value) in counts {
        if time < window.0 + RESOLUTION_NS {
            at_begin.insert(name, value);
        } else if time < window.1 - RESOLUTION_NS {
            lines.push(format!("{COUNT}{name} {time} {value}"));
        }
    }
    let at_begin = at_begin.iter().filter(|(_, value)| **value != 0);
    lines.extend(at_begin.map(|(name, value)| format!("{COUNT}{name} at first {value}")));
    lines.sort();
    lines
}

/// Name, time and value of a line about a counter.
fn count(line: &str) -> Option<(String, Ns, i64)> {
    let (rest, value) = line.strip_prefix(COUNT)?.rsplit_once(' ')?;
    let (name, time) = rest.rsplit_once(' ')?;
    Some((name.to_owned(), time.parse().ok()?, value.parse().ok()?))
}

/// What depends on the longest chain of work. Of several that are as long when a window begins, another one may be followed, which
/// makes some nanoseconds.
const OF_CHAINS: [&str; 5] = ["critical_path", "efficiency", "findings", "replay_error_ns", "what_if"];

/// The numbers of `window`, but for [`OF_CHAINS`]; none where nothing is in it.
fn numbers(reader: &Reader, window: (Ns, Ns)) -> Vec<String> {
    let options = Options { window: Some(window), ..Options::default() };
    let Ok((stats, _)) = Stats::with(&[reader], &options) else {
        return Vec::new();
    };
    let mut value = serde_json::to_value(&stats).expect("JSON");
    for region in value["regions"].as_array_mut().into_iter().flatten() {
        region["efficiency"].take();
    }
    for name in OF_CHAINS {
        value[name].take();
    }
    let mut lines = Vec::new();
    flatten("", &value, &mut lines);
    lines
}

/// A copy of the sealed trace at `path` in `folder`, with checkpoints that are at least `distance` events apart; how many these are, and
/// when the trace ends.
pub fn with_checkpoints(path: &Path, folder: &Path, distance: u64) -> (PathBuf, usize, Ns) {
    let copy = folder.join(path.file_name().expect("the name of a file"));
    fs::copy(path, &copy).expect("a copy");
    let plain = Reader::open(path).expect("a trace");
    let replayed = |checkpoints| {
        let manner = Manner { checkpoints, ..Manner::default() };
        let names = omptrace_symbols::Table::stored;
        replay_with(&[&plain], &names, manner, &mut NullSink, &mut |_| {})
    };
    let all = replayed(None);
    let distance = (all.processes[0].events / CHECKPOINTS).max(distance);
    let report = replayed(Some(distance));
    let checkpoints = &report.processes[0].checkpoints;
    // An empty summary is none.
    let _too_large = summary::write(&Reader::open(&copy).expect("a trace"), b"", checkpoints);
    (copy, checkpoints.len(), all.end)
}

/// Events of a segment, at least.
const MIN_SEGMENT: u64 = 1;

/// Compares what each segment shows, one after the other and each by itself, and their exports. Gives how many there are.
fn segments_agree(reader: &Reader) -> Result<usize, String> {
    let Some(segments) = Segments::of(reader, MIN_SEGMENT) else {
        return Ok(0);
    };
    let timeline = Timeline::of(&[reader]);
    let shown = |wanted: Range<usize>, chunks: bool| {
        let mut words = Words { is_of_viewers: true, ..Words::default() };
        let lines = Arc::clone(&words.lines);
        let names = omptrace_symbols::Table::stored;
        let mut sink = FromSegment::of(wanted.start, &mut words);
        let manner = Manner { chunks, ..Manner::default() };
        timeline.replay_segments(&segments, wanted, &names, manner, &mut sink, &mut |_| {});
        std::mem::take(&mut *lines.lock().expect("nobody panics"))
    };
    let fault = |what: &str, expected: &[String], found: &[String]| {
        let difference = difference(expected, found);
        Err(format!("{}: {what}:\n{difference}", reader.path().display()))
    };
    for chunks in [false, true] {
        let all = shown(0..segments.count(), chunks);
        let each: Vec<String> =
            (0..segments.count()).flat_map(|number| shown(number..number + 1, chunks)).collect();
        if each != all {
            return fault("segments by themselves", &all, &each);
        }
    }
    let export = |threads| {
        let (bytes, mut report) = perfetto(reader, MIN_SEGMENT, threads);
        (bytes, format!("{:?}", report.processes.pop()))
    };
    let one_thread = export(1);
    for threads in [2, 5] {
        if export(threads) != one_thread {
            return Err(format!("{}: the export by {threads} threads is another", reader.path().display()));
        }
    }
    Ok(segments.count())
}

/// Adds each value with its path.
fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                flatten(&format!("{path}.{key}"), value, lines);
            }
        }
        Value::Array(members) => {
            for (number, value) in members.iter().enumerate() {
                let name = value["name"].as_str().map_or(number.to_string(), str::to_owned);
                flatten(&format!("{path}.{name}"), value, lines);
            }
        }
        value => lines.push(format!("{path} = {value}")),
    }
}

/// Threads that analyse a process in segments, at most.
const ANALYSTS: NonZero<usize> = NonZero::new(5).expect("more than none");

/// What `stats` and `report` say of a part of a run, line by line.
fn answers(reader: &Reader, options: &Options) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok((stats, report)) = Stats::with(&[reader], options) else {
        return lines;
    };
    flatten("", &serde_json::to_value(&stats).expect("JSON"), &mut lines);
    lines.push(format!("{:?}", report.processes));
    if options.window.is_none() && options.selected.is_empty() && options.phase.is_none() {
        let (stats, overview, _) = Stats::with_overview(&[reader], options);
        flatten("overview", &serde_json::to_value(&stats).expect("JSON"), &mut lines);
        lines.extend(format!("{overview:#?}").lines().map(str::to_owned));
    }
    lines
}

/// Segments that were analysed apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Divided {
    /// Of whole processes.
    pub whole: usize,
    /// Of windows.
    pub windows: usize,
}

/// Compares the numbers of a process that is analysed in segments, each of one event or more, and in one go: those of all of it, of
/// a window, of a thread, and of each phase. Gives how many segments there are.
///
/// # Errors
/// The numbers differ.
pub fn numbers_agree(reader: &Reader) -> Result<Divided, String> {
    parallel::limit_threads(ANALYSTS);
    let divided = |window: Option<(Ns, Ns)>| {
        let is_wanted =
            |at: Boundary| window.is_none_or(|(begin, end)| begin < at.region_began && at.time < end);
        let segments = Segments::between_regions(reader, Vec::new(), ANALYSTS.get(), MIN_SEGMENT, is_wanted);
        segments.map_or(0, |segments| segments.count())
    };
    if divided(None) == 0 {
        return Ok(Divided::default());
    }
    let (stats, report) = Stats::with(&[reader], &Options::default()).expect("nothing is selected");
    let end = report.end.max(5);
    let windows = [(end / 5, end - end / 5), (end / 3, Ns::MAX), (Ns::MIN, end / 2)].map(Some);
    let of_windows = windows.map(|window| Options { window, ..Options::default() });
    let threads = stats.threads.iter().take(2).map(|thread| vec![thread.tid.to_string()]);
    let of_threads = threads.map(|selected| Options { selected, ..Options::default() });
    let phases = stats.phases.iter().map(|phase| Some(phase.name.clone()));
    let of_phases = phases.map(|phase| Options { phase, ..Options::default() });
    let parts = of_windows.into_iter().chain(of_threads).chain(of_phases);
    for options in [Options::default()].into_iter().chain(parts) {
        let numbers = |min_segment_events| {
            let min_segment_events = Some(min_segment_events);
            answers(reader, &Options { min_segment_events, ..options.clone() })
        };
        let (expected, found) = (numbers(u64::MAX), numbers(MIN_SEGMENT));
        if expected != found {
            return Err(format!(
                "{}: numbers of segments with {options:?}:\n{}",
                reader.path().display(),
                difference(&expected, &found)
            ));
        }
    }
    Ok(Divided { whole: divided(None), windows: windows.map(divided).iter().sum() })
}

/// Compares the numbers of a trace without checkpoints that is analysed in segments, for which checkpoints are made, and in one go.
fn numbers_without_checkpoints_agree(reader: &Reader) -> Result<(), String> {
    parallel::limit_threads(ANALYSTS);
    let numbers = |min_segment_events| {
        let options = Options { min_segment_events: Some(min_segment_events), ..Options::default() };
        answers(reader, &options)
    };
    let (expected, found) = (numbers(u64::MAX), numbers(MIN_SEGMENT));
    match expected == found {
        true => Ok(()),
        false => Err(format!(
            "{}: numbers of segments without checkpoints:\n{}",
            reader.path().display(),
            difference(&expected, &found)
        )),
    }
}

/// Exports a trace to Perfetto's format by that many threads, in segments of `min_segment_events` or more.
pub fn perfetto(reader: &Reader, min_segment_events: u64, threads: usize) -> (Vec<u8>, Report) {
    let format = Format::by_name("perfetto").expect("a format");
    let bytes = Bytes::default();
    let options = ConvertOptions {
        threads: NonZero::new(threads),
        min_segment_events: Some(min_segment_events),
        ..ConvertOptions::default()
    };
    let out = Box::new(bytes.clone());
    let report = convert(&[reader], format, &options, out, &mut |_| {});
    let written = std::mem::take(&mut *bytes.0.lock().expect("nobody panics"));
    (written, report.expect("nothing fails"))
}

/// Bytes that were written.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A number below another, the next of a series.
fn random(state: &mut u64, below: i64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as i64 % below.max(1)
}

/// Compares `count` windows of the sealed trace at `path`, chosen by `seed`.
///
/// # Errors
/// A window shows something else where it is read in another way.
pub fn agree(path: &Path, seed: u64, count: usize) -> Result<Tried, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = Reader::open(path).expect("a trace");
    let (copy, checkpoints, end) = with_checkpoints(path, folder.path(), DISTANCE);
    let with = Reader::open(&copy).expect("a trace");
    if with.checkpoint_ticks().count() != checkpoints {
        return Err("not all checkpoints were written".to_owned());
    }
    let first = with.checkpoint_ticks().next().map(|ticks| with.clock().ns(ticks));
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    numbers_without_checkpoints_agree(&plain)?;
    let mut tried = Tried {
        checkpoints,
        windows: 0,
        segments: segments_agree(&with)?,
        analysed: numbers_agree(&with)?.whole,
    };
    for number in 0..count {
        let begin = random(&mut state, end);
        let length = 1 + random(&mut state, end / [4, 20, 100][number % 3]);
        let window = (begin, begin + length);
        tried.windows += usize::from(first.is_some_and(|first| first <= begin));
        for chunks in [false, true] {
            let whole = Manner { chunks, ..Manner::default() };
            let part = Manner { window: Some(window), ..whole };
            let expected = shown(&plain, window, whole);
            for (way, found) in [
                ("what it needs", shown(&plain, window, part)),
                ("from a checkpoint", shown(&with, window, part)),
            ] {
                if found != expected {
                    return Err(format!(
                        "{}: window {window:?} read {way}:\n{}",
                        path.display(),
                        difference(&expected, &found)
                    ));
                }
            }
        }
        let (expected, found) = (numbers(&plain, window), numbers(&with, window));
        if expected != found {
            return Err(format!(
                "{}: numbers of window {window:?} read from a checkpoint:\n{}",
                path.display(),
                difference(&expected, &found)
            ));
        }
    }
    Ok(tried)
}

/// Reads windows of the sealed trace at `path` from checkpoints that nobody made, `count` times. These have other numbers.
/// Events are missing, come twice or are of another thread. Gives how many windows were read.
pub fn read_crafted(path: &Path, seed: u64, count: usize) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, _, end) = with_checkpoints(path, folder.path(), DISTANCE);
    let sound = fs::read(&copy).expect("a file");
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut read = 0;
    for _ in 0..count {
        fs::write(&copy, &sound).expect("a file");
        let reader = Reader::open(&copy).expect("a trace");
        let checkpoints = reader.checkpoint_ticks().filter_map(|ticks| reader.checkpoint(ticks));
        let crafted: Vec<_> =
            checkpoints.filter_map(|checkpoint| crafted(checkpoint, &mut state).pack()).collect();
        let _too_large = summary::write(&reader, b"", &crafted);
        let reader = Reader::open(&copy).expect("a trace");
        for _ in 0..4 {
            let begin = random(&mut state, end);
            let window = (begin, begin + 1 + random(&mut state, end / 4));
            let manner = Manner { window: Some(window), ..Manner::default() };
            shown(&reader, window, manner);
            let _nonsense = numbers_agree(&reader);
            numbers(&reader, window);
            read += 1;
        }
    }
    read
}

/// Numbers at which sums and shifts go wrong.
const EXTREMES: &[&str] =
    &["0", "1", "4294967296", "9223372036854775807", "18446744073709551615", "-1", "null"];

fn crafted(checkpoint: Checkpoint, state: &mut u64) -> Checkpoint {
    let words = String::from_utf8(checkpoint.words).expect("JSON is UTF-8");
    // The version stays.
    let (version, rest) = words.split_once(',').expect("several members");
    let mut changed = version.to_owned();
    for part in rest.split_inclusive(|letter: char| !letter.is_ascii_digit()) {
        let is_number = part.starts_with(|letter: char| letter.is_ascii_digit());
        let sign = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        match is_number && random(state, 20) == 0 {
            true => {
                let extreme = random(state, EXTREMES.len() as i64) as usize;
                changed = format!("{changed}{}{sign}", EXTREMES[extreme]);
            }
            false => changed.push_str(part),
        }
    }
    let words = changed.replacen(version, &format!("{version},"), 1);
    let mut events = Vec::new();
    let streams: Vec<u32> = checkpoint.events.iter().map(|(stream, _)| *stream).collect();
    for (stream, record) in checkpoint.events {
        match random(state, 12) {
            0 => {}
            1 => {
                let other = random(state, streams.len() as i64) as usize;
                events.push((streams[other], record));
            }
            2 => events.extend([(stream, record.clone()), (stream, record)]),
            _ => events.push((stream, record)),
        }
    }
    Checkpoint { words: words.into_bytes(), events, ..checkpoint }
}
