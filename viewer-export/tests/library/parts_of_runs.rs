//! Parts of runs, analysed separately: windows, phases and threads with known times.

use std::num::NonZero;

use omptrace_analysis::answers::{Accounting, Cause};
use omptrace_analysis::{NoAnswer, Options, RECORDED, Stats, ThreadStats};
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::answers::adds_up;
use crate::contract::nonsense;
use crate::fixture;
use crate::stats::fixtures;

/// The statistics of a part of a run.
fn part_of(text: &str, options: &Options) -> Result<Stats, NoAnswer> {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    Ok(Stats::with(&inputs, options)?.0)
}

/// A time before the timeline: the start of a part that includes all that a process did before.
const BEFORE: i64 = -(1 << 50);

/// If a run is cut in two at any time, the causes of both parts add up to those of the whole run, and so do the waits
/// and the work of each thread.
#[test]
fn windows_add_up_to_the_whole() {
    for (name, text) in fixtures() {
        let whole = part_of(&text, &Options::default()).expect("numbers");
        let answers = &whole.answers;
        let end = answers.duration_ns.cast_signed();
        // Each of several processes has its own N.
        if whole.processes.len() > 1 {
            continue;
        }
        for cut in (1..10).map(|tenth| end * tenth / 10) {
            let name = format!("{name} at {cut}");
            let parts = halves(&name, &text, cut, answers.threads);
            let durations: u64 = parts.iter().map(|part| part.answers.duration_ns).sum();
            assert_eq!(durations, answers.duration_ns, "{name}");
            for (cause, ns) in answers.accounting.iter() {
                let of_parts = parts.iter().map(|part| part.answers.accounting[cause]);
                assert_eq!(of_parts.sum::<u64>(), ns, "{name}: {}", cause.name());
            }
            for thread in &whole.threads {
                let same =
                    |part: &&ThreadStats| part.name == thread.name && part.process_id == thread.process_id;
                let of_thread = parts.iter().filter_map(|part| part.threads.iter().find(same));
                let sums = of_thread.fold([0; 3], |sums, part| {
                    let more = times_of(part);
                    [0, 1, 2].map(|index| sums[index] + more[index])
                });
                assert_eq!(sums, times_of(thread), "{name}: {}", thread.name);
            }
        }
    }
}

/// Working time, time at barriers, and serial time.
fn times_of(thread: &ThreadStats) -> [u64; 3] {
    let [working, barriers] = [thread.working_ns, thread.barriers_ns];
    [working, barriers, Some(thread.serial_ns)].map(Option::unwrap_or_default)
}

/// The statistics before and after a time; none for a half without processes.
fn halves(name: &str, text: &str, cut: i64, threads: u32) -> Vec<Stats> {
    let halves = [(BEFORE, cut), (cut, i64::MAX)].into_iter();
    let halves: Vec<Stats> = halves
        .filter_map(|window| {
            let options =
                Options { window: Some(window), threads: NonZero::new(threads), ..Options::default() };
            part_of(text, &options).ok()
        })
        .collect();
    for half in &halves {
        adds_up(name, &half.answers);
    }
    halves
}

#[test]
fn windows_of_nonsense_add_up() {
    for seed in 1..=100 {
        let text = nonsense(seed);
        let end = part_of(&text, &Options::default()).expect("numbers").answers.duration_ns.cast_signed();
        halves(&format!("seed {seed}"), &text, end / 2, 2);
    }
}

/// Two threads: the first one works from start to end, the second one in a region from 100 to 140, and waits until 201.
/// The phase starts inside the region and ends after it; recording is off for a while.
const TWO_THREADS: &str = "\
0 1 thread_info os_tid=10 name=app
0 2 thread_info os_tid=11 name=app
0 1 monitoring change=1
0 1 thread_begin type=initial
0 1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1
0 2 thread_begin type=worker
100 1 parallel_begin task=1 parallel=100 team=2 code=0x1234
100 1 implicit_task begin parallel=100 task=101 team=2 index=0
100 2 implicit_task begin parallel=100 task=102 team=2 index=1
120 1 control_tool command=64 text=solve
140 2 sync_region begin kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234
140 2 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234
200 1 sync_region begin kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234
200 1 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234
201 1 sync_region_wait end kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234
201 1 sync_region end kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234
201 1 implicit_task end parallel=100 task=101 team=2 index=0
201 1 parallel_end parallel=100 task=1 code=0x1234
201 2 sync_region_wait end kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234
201 2 sync_region end kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234
201 2 implicit_task end parallel=100 task=102 team=2 index=1
250 1 control_tool command=65 text=solve
260 1 monitoring change=2
300 1 monitoring change=3
310 1 control_tool command=64 text=solve
350 1 control_tool command=65 text=solve
400 1 monitoring change=4
";

fn accounting(rows: &[(Cause, u64)]) -> Accounting {
    let mut sums = Accounting::default();
    rows.iter().for_each(|(cause, ns)| sums.add(*cause, *ns));
    sums
}

#[test]
fn phases_are_analysed_alone() {
    let stats = part_of(TWO_THREADS, &Options::default()).expect("numbers");
    let solve =
        accounting(&[(Cause::Useful, 189), (Cause::Imbalance, 60), (Cause::Join, 2), (Cause::Serial, 89)]);
    let names: Vec<&str> = stats.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(names, [RECORDED, "solve"]);
    let [recorded, phase] = &stats.phases[..] else { panic!("{:?}", stats.phases) };
    assert_eq!((phase.count, phase.duration_ns, phase.threads), (2, 170, 2));
    assert_eq!(phase.accounting, solve);
    assert_eq!((recorded.count, recorded.duration_ns), (2, 360));
    assert_eq!(recorded.accounting[Cause::Unobserved], 0);
    assert_eq!(stats.answers.accounting[Cause::Unobserved], 2 * 40);

    let options = Options { phase: Some("solve".to_owned()), ..Options::default() };
    let alone = part_of(TWO_THREADS, &options).expect("numbers");
    adds_up("phase", &alone.answers);
    assert_eq!(alone.answers.accounting, solve);
    assert_eq!(alone.answers.efficiency, phase.efficiency);
    assert_eq!(alone.answers.regions[0].visits, 1);
    let [main, worker] = &alone.threads[..] else { panic!("{:?}", alone.threads) };
    assert_eq!([main.duration_ns, main.serial_ns, worker.duration_ns], [170, 89, 170]);
    assert_eq!(worker.barriers_ns, Some(61));
    // Moments are on the whole timeline.
    let moments = alone.answers.findings.iter().flat_map(|of| &of.instances);
    assert!(moments.clone().all(|moment| moment.begin_ns >= 120), "{moments:?}");

    let options = Options { phase: Some("solv".to_owned()), ..Options::default() };
    let known = vec![RECORDED.to_owned(), "solve".to_owned()];
    assert_eq!(part_of(TWO_THREADS, &options).err(), Some(NoAnswer::Phase { known }));
}

/// Time outside of a window is not counted, and neither are regions that end where the window begins.
#[test]
fn only_what_lies_in_a_window_counts() {
    let in_window = |begin, end| {
        let options = Options { window: Some((begin, end)), ..Options::default() };
        part_of(TWO_THREADS, &options)
    };
    let count = |stats: &Stats, name: &str| {
        let mut of_name = stats.constructs.iter().filter(|of| of.name.starts_with(name));
        of_name.next().map_or(0, |of| of.times.count)
    };
    let before = in_window(0, 100).expect("numbers");
    let inside = in_window(130, 150).expect("numbers");
    let after = in_window(201, 260).expect("numbers");
    let regions = [&before, &inside, &after].map(|stats| count(stats, "!$omp parallel"));
    assert_eq!(regions, [0, 1, 0]);
    assert_eq!([&before, &inside, &after].map(|of| of.answers.threads), [1, 2, 1]);
    assert_eq!(inside.answers.regions[0].visits, 1);
    assert_eq!(inside.answers.accounting, accounting(&[(Cause::Useful, 30), (Cause::Imbalance, 10)]));
    assert!(before.answers.regions.is_empty() && after.answers.regions.is_empty());
    assert_eq!(in_window(500, i64::MAX).err(), Some(NoAnswer::Window { end: 400 }));
}

/// N is the number of selected threads, and only their time is accounted for.
#[test]
fn threads_are_analysed_alone() {
    let options = Options { selected: vec!["1".to_owned()], ..Options::default() };
    let stats = part_of(TWO_THREADS, &options).expect("numbers");
    let answers = &stats.answers;
    assert_eq!(answers.threads, 1);
    adds_up("thread", answers);
    assert_eq!(
        answers.accounting,
        accounting(&[
            (Cause::Useful, 40),
            (Cause::Imbalance, 60),
            (Cause::Join, 1),
            (Cause::Serial, 259),
            (Cause::Unobserved, 40),
        ])
    );
    let tids: Vec<u32> = stats.threads.iter().map(|thread| thread.tid).collect();
    assert_eq!(tids, [11]);
    let names = stats.constructs.iter().map(|construct| &construct.name);
    assert!(names.clone().all(|name| !name.starts_with("!$omp parallel")), "{names:?}");
    assert!(answers.findings.is_empty() && answers.what_if.is_empty());
}

/// A program of this many regions with two threads, whose imbalance grows. Every tenth region has a long wait, and some
/// regions late in the run have long serial code before them. Workers report their ends late.
fn regions(count: u64) -> String {
    let mut text = String::from(
        "0 1 thread_info os_tid=10 name=app\n10 1 thread_begin type=initial\n\
         20 1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         30 2 thread_info os_tid=11 name=app\n40 2 thread_begin type=worker\n",
    );
    let mut now = 1000;
    for number in 0..count {
        let (parallel, main, worker) = (1_000_000 + number, 2_000_000 + number, 3_000_000 + number);
        now += if number * 10 / count == 8 { 3000 } else { 200 };
        let begin = now;
        if number == 0 {
            // The tracer reports a module before the first event with an address in it.
            text += &format!("{begin} 1 module path=/home/u/app load=0x1000\n");
        }
        text += &format!("{begin} 1 parallel_begin task=1 parallel={parallel} team=2 code=0x1234\n");
        text +=
            &format!("{} 1 implicit_task begin parallel={parallel} task={main} team=2 index=0\n", begin + 10);
        if number > 0 {
            let of_last = worker - 1;
            for (at, event) in [
                (15, format!("sync_region_wait end kind=barrier_implicit_parallel task={of_last}")),
                (16, format!("sync_region end kind=barrier_implicit_parallel task={of_last}")),
                (17, format!("implicit_task end task={of_last} index=1")),
            ] {
                text += &format!("{} 2 {event}\n", begin + at);
            }
        }
        let barrier = |task| format!("kind=barrier_implicit_parallel parallel={parallel} task={task}");
        text += &format!(
            "{} 2 implicit_task begin parallel={parallel} task={worker} team=2 index=1\n",
            begin + 20
        );
        let early = begin + 500;
        let late = early + 1000 * number / count + if number % 10 == 0 { 2000 } else { 0 };
        for what in ["sync_region", "sync_region_wait"] {
            text += &format!("{early} 2 {what} begin {}\n", barrier(worker));
        }
        for (at, what, end) in [
            (0, "sync_region", "begin"),
            (0, "sync_region_wait", "begin"),
            (5, "sync_region_wait", "end"),
            (6, "sync_region", "end"),
        ] {
            text += &format!("{} 1 {what} {end} {}\n", late + at, barrier(main));
        }
        text += &format!("{} 1 implicit_task end task={main} team=2 index=0\n", late + 10);
        text += &format!("{} 1 parallel_end parallel={parallel} task=1 code=0x1234\n", late + 20);
        now = late + 20;
    }
    text + &format!("{} 1 implicit_task end task=1 flags=1\n{} 1 thread_end\n", now + 50, now + 60)
}

/// Windows at random places have about the same shares of causes as the whole run, and the same worst place.
#[test]
fn windows_at_random_places_are_like_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&regions(5000), folder.path());
    let [reader] = &readers[..] else { panic!("one trace") };
    let all = reader.summary().event_bytes;
    let (whole, _) = Stats::of(&[reader], &symbols::Options::default());
    let share = |stats: &Stats, cause| {
        let answers = &stats.answers;
        answers.accounting[cause] as f64 * 100.0
            / answers.accounting.iter().map(|(_, ns)| ns).sum::<u64>() as f64
    };
    for part in [5, 20] {
        let sampled = Stats::of_sample(reader, all / part).expect("the regions are short");
        let based_on = sampled.based_on.expect("a part");
        assert!((based_on.share * part as f64 - 1.0).abs() < 1e-6 && based_on.windows >= Some(12));
        let answers = &sampled.answers;
        assert!(answers.findings.is_empty());
        let covered = answers.duration_ns as f64 / whole.answers.duration_ns as f64;
        assert!((covered * part as f64 - 1.0).abs() < 0.05, "{covered} of the time for 1/{part}");
        assert_eq!(answers.threads, whole.answers.threads);
        assert!(answers.what_if.is_empty());
        for (cause, _) in whole.answers.accounting.iter() {
            let (estimated, exact) = (share(&sampled, cause), share(&whole, cause));
            assert!((estimated - exact).abs() < 5.0, "{}: {estimated} {exact}, 1/{part}", cause.name());
        }
        let worst = |stats: &Stats| stats.answers.regions.first().map(|region| region.place.clone());
        assert_eq!(worst(&sampled), worst(&whole));
    }
}

/// Samples come later than what they are about, so a trace with samples is not read in parts.
#[test]
fn a_trace_with_samples_has_no_random_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(include_str!("../fixtures/samples.trace"), folder.path());
    assert!(Stats::of_sample(&readers[0], 1000).is_none());
}
