//! Whatever a trace contains, in whatever order: interpretation does not panic, and every sink receives its items as
//! [`omptrace_timeline::model`] promises.

use std::collections::{HashMap, HashSet};
use std::fs;

use omptrace_timeline::model::*;
use omptrace_timeline::replay;
use omptrace_trace_format::{Reader, Severity};
use omptrace_viewer_export::{ConvertOptions, Format, convert_to_folder};
use otf2_archive::check_archive;

use crate::faults::FAULTS_OF_TRACES;
use crate::fixture;
use crate::shared::Shared;

/// Checks each item against the promises.
#[derive(Default)]
struct Contract {
    processes: u32,
    locations: Vec<CheckedLocation>,
    regions: u32,
    /// The time of each counter's newest sample.
    counters: Vec<Ns>,
    links: Vec<u64>,
    /// The number of each lock's newest acquisition.
    acquisitions: HashMap<LockId, u32>,
    held: HashSet<(LockId, u32)>,
    /// Teams that were forked, and teams in which threads are. In contradictory traces, a task may take a team to
    /// another thread, or never resume.
    forked: Vec<TeamId>,
    teams: Vec<TeamId>,
    functions: u32,
    /// By location, the time of its newest sample.
    sampled: HashMap<u32, Ns>,
    /// By location, the number of announced samples.
    announced: HashMap<u32, u32>,
}

struct CheckedLocation {
    kind: LocationKind,
    open: usize,
    last: Ns,
    /// The start of the newest item, if it has a duration.
    begins: Option<Ns>,
}

/// Whether a location contains regions; otherwise, it contains intervals.
fn has_regions(kind: LocationKind) -> bool {
    matches!(kind, LocationKind::Thread { .. } | LocationKind::Device { .. })
}

/// The tasks between which a thread switches have teams of their own, so the newest team need not end first.
fn remove_newest(begun: &mut Vec<TeamId>, team: TeamId) {
    let place = begun.iter().rposition(|begun| *begun == team);
    begun.remove(place.expect("only what has begun ends"));
}

impl Contract {
    fn thread(&mut self, at: Point) -> &mut CheckedLocation {
        let location = &mut self.locations[at.location.0 as usize];
        assert!(has_regions(location.kind), "regions are on threads");
        assert!(at.time >= location.last, "time went back from {} to {}", location.last, at.time);
        location.last = at.time;
        location
    }

    fn is_closed(&self) {
        for location in &self.locations {
            assert_eq!(location.open, 0, "everything is closed at the end");
        }
        assert!(self.held.is_empty(), "every lock is released");
    }
}

impl Contract {
    fn count(&mut self, count: &Count) {
        let last = &mut self.counters[count.counter.0 as usize];
        assert!(count.time >= *last && count.value.rounded() >= 0, "{count:?}");
        *last = count.time;
    }

    fn enter(&mut self, enter: &Enter<Arguments<'_>>) {
        assert!(enter.region.0 < self.regions);
        let thread = self.thread(enter.at);
        thread.open += 1;
        thread.begins = Some(enter.at.time);
    }

    fn leave(&mut self, at: Point) {
        let thread = self.thread(at);
        assert!(thread.open > 0, "only what is open is left");
        thread.open -= 1;
        thread.begins = None;
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        if event == (ThreadEvent::Recording { on: true }) {
            return;
        }
        if let ThreadEvent::Sampled { .. } = event {
            *self.announced.entry(at.location.0).or_default() += 1;
            return;
        }
        self.thread(at);
        match event {
            ThreadEvent::Fork { team, .. } => self.forked.push(team),
            ThreadEvent::Join { team } => remove_newest(&mut self.forked, team),
            ThreadEvent::TeamBegin { team, .. } => self.teams.push(team),
            ThreadEvent::TeamEnd { team } => remove_newest(&mut self.teams, team),
            ThreadEvent::TaskCreate { region, .. }
            | ThreadEvent::InitLock { region, .. }
            | ThreadEvent::ReleaseUnseen { region, .. } => {
                assert!(region.0 < self.regions);
            }
            ThreadEvent::TaskDependence { from, to } => assert_ne!(from, to),
            ThreadEvent::AcquireLock { lock, order, .. } => {
                let newest = self.acquisitions.entry(lock).or_default();
                *newest += 1;
                assert_eq!(*newest, order);
                self.held.insert((lock, order));
            }
            ThreadEvent::ReleaseLock { lock, order } => assert!(self.held.remove(&(lock, order))),
            _ => {}
        }
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let track = &mut self.locations[interval.track.0 as usize];
        assert!(!has_regions(track.kind), "intervals are on tracks");
        assert!(interval.begin >= track.last, "intervals of a track do not overlap");
        assert!(interval.end >= interval.begin);
        track.last = interval.end;
        track.begins = Some(interval.begin);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let last = self.sampled.entry(sample.at.location.0).or_default();
        assert!(*last <= sample.at.time, "samples of a thread are in order");
        *last = sample.at.time;
        let announced = self.announced.get_mut(&sample.at.location.0);
        let announced = announced.expect("a sample is announced");
        assert!(*announced > 0, "each sample is announced");
        *announced -= 1;
        let is_defined = |frame: &StackFrame| frame.function.0 < self.functions;
        assert!(sample.stack.iter().all(is_defined));
        let (is_idle, frames) = (sample.activity == Some(RuntimeActivity::Idle), sample.stack.len());
        assert!(!is_idle || frames == 1, "who idles is in no function");
    }

    fn link(&mut self, link: &Link) {
        assert!(link.from.time <= link.to.time, "a link goes forward");
        if link.effect == Anchor::Begin {
            let to = &self.locations[link.to.location.0 as usize];
            assert!(to.begins == Some(link.to.time), "a link leads to a begin");
        }
        assert!(self.links.last().is_none_or(|last| *last < link.id), "links have ids of their own");
        self.links.push(link.id);
    }
}

impl Sink for Contract {
    fn wants(&self) -> Wants {
        Wants::ALL
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Start { .. }
            | Item::Segment
            | Item::Summary(..)
            | Item::Communicator(_)
            | Item::Annotation(_) => {}
            Item::Mpi(at, _) => assert!(self.thread(*at).open > 0, "it is within a call"),
            Item::Process(process) => {
                self.is_closed();
                assert_eq!(process.id.0, self.processes);
                self.processes += 1;
            }
            Item::Location(location) => {
                assert_eq!(location.id.0 as usize, self.locations.len());
                assert_eq!(location.process.0 + 1, self.processes);
                self.locations.push(CheckedLocation { kind: location.kind, open: 0, last: 0, begins: None });
            }
            Item::Region(region) => {
                assert_eq!(region.id.0, self.regions);
                self.regions += 1;
            }
            Item::Counter(counter) => {
                assert_eq!(counter.id.0 as usize, self.counters.len());
                assert_eq!(counter.process.0 + 1, self.processes);
                self.counters.push(0);
            }
            Item::Count(count) => self.count(count),
            Item::Enter(enter) => self.enter(enter),
            Item::Leave(leave) => self.leave(leave.at),
            Item::Instant(instant) => {
                assert!(instant.region.0 < self.regions);
                self.thread(instant.at).begins = None;
            }
            Item::ThreadEvent(at, event) => self.thread_event(*at, *event),
            Item::Interval(interval) => self.interval(interval),
            Item::Link(link) => self.link(link),
            Item::Function(function) => {
                assert_eq!(function.id.0, self.functions);
                self.functions += 1;
            }
            Item::Sample(sample) => self.sample(sample),
            Item::Counted(counted) => {
                assert!(counted.since <= counted.at.time);
                self.thread(counted.at);
            }
            Item::Note(process, text) => {
                assert!(process.0 < self.processes && !text.is_empty());
            }
        }
    }
}

/// Xorshift: yields the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn choose<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// A trace of arbitrary events, about few entities so that they interact.
pub(crate) fn nonsense(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = String::new();
    for stream in 1..4 {
        text += &format!("0 {} sample_stream thread_stream={stream}\n", 10 + stream);
    }
    let mut time = 0;
    for _ in 0..400 {
        time += random.below(3);
        let stream = 1 + random.below(3);
        text += &format!("{time} {stream} {}\n", event(&mut random));
        if random.below(2) == 0 {
            text += &format!("{time} {} {}\n", 10 + stream, sample(&mut random));
        }
    }
    text
}

/// A sample, or the stack of a region's creator.
fn sample(random: &mut Random) -> String {
    let frames: Vec<String> = (0..random.below(6))
        .map(|_| random.choose(&["0x1000", "0x1001", "0x2000", "0x3000"]).to_owned())
        .collect();
    let (frames, end) = (frames.join(","), 1 + random.below(2));
    match random.below(4) {
        0 => format!("context parallel={} end={end} stack={frames}", random.below(6)),
        _ => format!(
            "sample state={} task_flags={} exit_frame={} enter_frame={} end={end} stack={frames}",
            random.choose(&["work_parallel", "wait_barrier_explicit", "idle", "77"]),
            random.choose(&["0", "1", "2", "4"]),
            random.choose(&["-1", "1"]),
            random.choose(&["-1", "-1", "0"])
        ),
    }
}

fn event(random: &mut Random) -> String {
    let endpoint = random.choose(&["begin", "end", "begin", "end", "beginend", "endpoint=7"]);
    let id = |random: &mut Random| match random.below(12) {
        0 => "-".to_owned(),
        1 => "?".to_owned(),
        number => (number / 2).to_string(),
    };
    let (task, next, parallel) = (id(random), id(random), id(random));
    let sync =
        random.choose(&["barrier_explicit", "barrier_implicit_parallel", "taskwait", "taskgroup", "77"]);
    let mutex = random.choose(&["lock", "test_lock", "nest_lock", "critical", "ordered", "atomic", "77"]);
    let work = random.choose(&["loop_static", "single_executor", "sections", "taskloop", "99"]);
    let status = random.choose(&[
        "complete",
        "complete",
        "yield",
        "cancel",
        "detach",
        "early_fulfill",
        "late_fulfill",
        "switch",
        "switch",
        "switch",
        "taskwait_complete",
        "99",
    ]);
    let flags = random.choose(&["4", "4", "0x10000004", "0x8000004", "1", "8", "0x10"]);
    let wait_id = 0xa + random.below(3);
    match random.below(34) {
        0 => format!("parallel_begin task={task} parallel={parallel} team=2 code=0x1000"),
        1 => format!("parallel_begin task={task} parallel={parallel} flags=0x40000002"),
        2 | 3 => format!("parallel_end task={task} parallel={parallel}"),
        4 | 5 => format!(
            "implicit_task {endpoint} task={task} parallel={parallel} flags={}",
            random.choose(&["1", "2"])
        ),
        6 => format!("sync_region {endpoint} kind={sync} task={task}"),
        7 => format!("sync_region_wait {endpoint} kind={sync} task={task}"),
        8 => format!("work {endpoint} kind={work} task={task}"),
        9 => format!("masked {endpoint} task={task}"),
        10 | 11 => format!("task_create task={task} new={next} flags={flags}"),
        12..=15 => format!("task_schedule prior={task} status={status} next={next}"),
        16 => format!("task_dependence src={task} sink={next}"),
        17 => format!("mutex_acquire kind={mutex} wait_id={wait_id}"),
        18 => format!("mutex_acquired kind={mutex} wait_id={wait_id}"),
        19 => format!("mutex_released kind={mutex} wait_id={wait_id}"),
        20 => format!("control_tool command={} text={}", 64 + random.below(3), random.choose(&["a", "b"])),
        21 => format!("monitoring change={}", 1 + random.below(6)),
        22 => format!("lost begin={} events=3", random.below(400)),
        24 => format!("target {endpoint} device={} target={task}", random.below(3)),
        25 | 26 => format!("target_submit {endpoint} target={task} op={next}"),
        27 | 28 => format!(
            "target_data_op_emi {endpoint} target={task} op={next} kind={} src=1 dest=2 dest_device=1 bytes={}",
            random.choose(&["alloc", "transfer_to_device", "delete", "77"]),
            random.choose(&["0", "4096", "0xffffffffffffffff"])
        ),
        29 => format!("device_stream device={}", random.below(2)),
        30 => format!(
            "device_clock device={} before={} after=50 time={}",
            random.below(2),
            random.below(50),
            random.below(500)
        ),
        31 | 32 => format!(
            "device_kernel device={} op={next} target={task} begin={} end={}",
            random.below(2),
            random.below(500),
            random.below(500)
        ),
        33 => format!(
            "device_data_op device=1 op={next} kind=transfer_to_device begin={} end={} dest_device=1 bytes={}",
            random.below(500),
            random.below(500),
            random.choose(&["4096", "0xffffffffffffffff"])
        ),
        _ => random
            .choose(&[
                "thread_end",
                "buffer_flush begin=20",
                "external_wait beginend begin=30 kind=1 object=0x10 code=0x9000",
                "nest_lock begin wait_id=10",
                "module path=/a load=0x1000",
                "module path=/lib/libomp.so load=0x2000",
            ])
            .to_owned(),
    }
}

/// # Panics
/// If an item breaks the contract.
pub(crate) fn keeps_contract(trace: &Reader) {
    let mut contract = Contract::default();
    replay(&[trace], &mut contract, &mut |_| {});
    contract.is_closed();
}

#[test]
fn nonsense_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 1..=500 {
        let text = nonsense(seed);
        let readers = fixture::open(&text, folder.path());
        let outcome = std::panic::catch_unwind(|| keeps_contract(&readers[0]));
        assert!(outcome.is_ok(), "seed {seed}:\n{text}");
    }
}

/// The faults of the archive created from `text`: their names and descriptions.
fn archive_faults(text: &str) -> Vec<(&'static str, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).expect("a folder");
    let inputs: Vec<_> = readers.iter().collect();
    let otf2 = Format::by_name("otf2").expect("a format");
    let options = ConvertOptions::default();
    convert_to_folder(&inputs, otf2, &options, &archive, &mut |_| {}).expect("a folder");
    check_archive(&archive.join("traces.otf2"))
        .into_iter()
        .filter(|found| found.severity > Severity::Note)
        .map(|found| (found.name, found.text))
        .collect()
}

#[test]
fn nonsense_makes_readable_archives() {
    for seed in 1..=100 {
        let text = nonsense(seed);
        let mut faults = archive_faults(&text);
        faults.retain(|(name, _)| !FAULTS_OF_TRACES.contains(name));
        assert!(faults.is_empty(), "seed {seed}: {faults:?}\n{text}");
    }
}

#[test]
fn main_thread_begins_before_others_in_an_archive() {
    let faults = archive_faults(
        "2 2 implicit_task begin task=1 flags=1\n\
         7 1 lost begin=1 events=3\n",
    );
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn wait_for_another_region_than_the_thread_got_ends_in_an_archive() {
    let faults = archive_faults(
        "0 1 mutex_acquire kind=ordered wait_id=1\n\
         1 1 mutex_acquired kind=critical wait_id=2\n",
    );
    assert!(faults.is_empty(), "{faults:?}");
}

/// Nested tasks, whose ends are reported.
fn nested_tasks(count: u64) -> String {
    let first = "0 1 implicit_task begin task=1 flags=1\n".to_owned();
    let begins = (2..2 + count).map(|task| {
        let parent = task - 1;
        format!(
            "{task} 1 task_create task={parent} new={task} flags=0x8000004\n\
             {task} 1 task_schedule prior={parent} status=switch next={task}\n"
        )
    });
    let ends = (2..2 + count).rev().map(|task| {
        let (time, parent) = (2 * (2 + count) - task, task - 1);
        format!("{time} 1 task_schedule prior={task} status=complete next={parent}\n")
    });
    let end = 3 * (2 + count);
    let last = format!("{end} 1 implicit_task end task=1 flags=1\n");
    let first = std::iter::once(first);
    first.chain(begins).chain(ends).chain([last]).collect()
}

/// How often each cause occurred, and the number of slices of tasks in the Chrome format.
fn converted(text: &str) -> (Vec<(&'static str, u64)>, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let out = Shared::default();
    let report = omptrace_viewer_export::convert(
        &[&readers[0]],
        omptrace_viewer_export::Format::by_name("chrome").expect("a format"),
        &omptrace_viewer_export::ConvertOptions::default(),
        Box::new(out.clone()),
        &mut |_| {},
    )
    .expect("memory can be written");
    let repairs = report.processes[0].repairs.iter();
    let repairs = repairs.map(|repair| (repair.cause.name(), repair.count));
    let slices = String::from_utf8(out.bytes()).expect("UTF-8");
    (repairs.collect(), slices.matches("\"cat\":\"task\"").count())
}

#[test]
fn viewers_get_what_they_can_show_and_archives_get_all() {
    let text = nested_tasks(600);
    let (repairs, slices) = converted(&text);
    assert_eq!((repairs, slices), (vec![("too_deep", 101)], 499));
    assert_eq!(archive_faults(&text), []);
}

#[test]
fn tasks_that_are_too_deep_for_a_stack_are_complete() {
    const MORE: u64 = 100;
    let text = nested_tasks((1 << 16) - 1 + MORE);
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let mut contract = Contract::default();
    let report = replay(&[&readers[0]], &mut contract, &mut |_| {});
    contract.is_closed();
    let repairs = report.processes[0].repairs.iter();
    let repairs: Vec<_> = repairs.map(|repair| (repair.cause.name(), repair.count)).collect();
    assert_eq!(repairs, [("too_deep", MORE)]);
    assert_eq!(archive_faults(&text), []);
}

#[test]
fn regions_that_never_end_are_shown_to_a_depth() {
    let text: String = (0..2000).map(|time| format!("{time} 1 work begin kind=taskloop\n")).collect();
    let (repairs, _) = converted(&text);
    assert_eq!(repairs, [("missing_end", 2000), ("too_deep", 1500)]);
}

#[test]
fn a_missing_end_among_hidden_regions_shifts_no_other() {
    let count = (1 << 16) - 1;
    let text = nested_tasks(count);
    let deepest = count + 1;
    let hidden = format!("{deepest} 1 sync_region begin kind=taskwait\n");
    let at = text.find(" status=complete").expect("ends");
    let at = text[..at].rfind('\n').expect("lines") + 1;
    let text = [&text[..at], &hidden, &text[at..]].concat();
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let mut contract = Contract::default();
    let report = replay(&[&readers[0]], &mut contract, &mut |_| {});
    contract.is_closed();
    let repairs = report.processes[0].repairs.iter();
    let repairs: Vec<_> = repairs.map(|repair| (repair.cause.name(), repair.count)).collect();
    assert_eq!(repairs, [("too_deep", 1)]);
}

#[test]
fn parts_of_tasks_without_ids_are_complete_in_an_archive() {
    let faults = archive_faults(include_str!("../fixtures/untied_without_creation.trace"));
    assert_eq!(faults, []);
}
