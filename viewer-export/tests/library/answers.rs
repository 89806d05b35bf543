//! The answers from traces with known times: sums without remainder, and efficiencies in closed form.

#[macro_use]
mod few_processors;
mod nested;
mod script;
mod small_tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;

use omptrace_analysis::answers::{self, Answers, Cause, Finding};
use omptrace_analysis::{Options, Stats};
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::contract::nonsense;
use crate::fixture;
use few_processors::late;
use script::{BEGIN, FIRST, FORK, INSIDE, JOIN, LOOP, Script, UNIT};

fn answers_of(text: &str) -> Answers {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    Stats::of(&inputs, &symbols::Options::default()).0.answers
}

/// Two MPI ranks, whose waits for each other are known to the nanosecond.
#[test]
fn communication_is_split_where_all_ranks_are_there() {
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_waits.trace");
    let text = fs::read_to_string(fixture).expect("a fixture");
    let whole = answers_of(&text);
    adds_up("two ranks", &whole);
    let of = |answers: &Answers, cause| {
        let mut all = answers.accounting.iter();
        all.find(|(of, _)| *of == cause).map_or(0, |(_, ns)| ns)
    };
    // The late sender, the last of two requests, and the barrier.
    assert_eq!(of(&whole, Cause::MpiWait), 400 + 100 + 500);
    let (first, second) = (20 + 10 + 10 + 40 + 20, 10 + 10 + 10 + 30);
    assert_eq!(of(&whole, Cause::MpiTransfer), first + second);
    assert_eq!((of(&whole, Cause::Mpi), of(&whole, Cause::MpiOther)), (0, 9 + 9));

    let second_begins = text.match_indices("\nprocess").nth(1).expect("two processes").0;
    let alone = answers_of(&text[..second_begins]);
    adds_up("one of two ranks", &alone);
    assert_eq!(of(&alone, Cause::Mpi), 400 + 100 + first);
    assert_eq!((of(&alone, Cause::MpiWait), of(&alone, Cause::MpiTransfer)), (0, 0));
}

/// Each nanosecond of each thread has one cause, and all lost time is attributed.
pub(crate) fn adds_up(name: &str, answers: &Answers) {
    let sum: u64 = answers.accounting.iter().map(|(_, ns)| ns).sum();
    let whole = u64::from(answers.threads) * answers.duration_ns;
    assert_eq!((answers.accounting.total(), sum), (whole, whole), "{name}");
    let mut blamed: BTreeMap<Cause, u64> = BTreeMap::new();
    for row in &answers.blame {
        *blamed.entry(row.cause).or_default() += row.ns;
    }
    for (cause, ns) in answers.accounting.iter().filter(|(cause, _)| cause.is_loss()) {
        let of_cause = blamed.get(&cause).copied().unwrap_or(0);
        assert_eq!(of_cause, ns, "{name}: {}", cause.name());
    }
    for cause in Cause::ALL.iter().filter(|cause| cause.is_mutex()) {
        let rows = answers.blocked.iter();
        let rows = rows.filter(|row| row.cause == *cause);
        let ns: u64 = rows.map(|row| row.ns).sum();
        assert_eq!(ns, answers.accounting[*cause], "{name}: {}", cause.name());
    }
    let mut found = BTreeSet::new();
    for finding in &answers.findings {
        assert!(found.insert((&finding.id, &finding.place)), "{name}: {finding:?}");
    }
    let path: u64 = answers.critical_path.rows.iter().map(|row| row.ns).sum();
    assert_eq!(path, answers.critical_path.useful_ns, "{name}");
    let efficiency = answers.efficiency;
    for share in [efficiency.serialisation, efficiency.transfer, efficiency.parallel] {
        let share = share.unwrap_or(1.0);
        assert!((0.0..=1.0).contains(&share), "{name}: {efficiency:?}");
    }
}

/// The path's steps are consecutive, and if times never decrease, they are all of its work.
fn is_drawn(name: &str, text: &str, is_whole: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let symbols = symbols::Options::default();
    let reader = &readers[0];
    let answers = Stats::of(&[reader], &symbols).0.answers;
    let paths = answers::critical_paths(&[reader], &symbols);
    let [steps] = &*paths else {
        panic!("{name}: {} paths", paths.len());
    };
    for pair in steps.windows(2) {
        assert!(pair[0].end <= pair[1].begin, "{name}: {pair:?}");
    }
    let work: u64 = steps.iter().map(|step| step.end.abs_diff(step.begin)).sum();
    let useful = answers.critical_path.useful_ns;
    assert!(work <= useful, "{name}: {work} of {useful}");
    assert!(work == useful || !is_whole, "{name}: {work} of {useful}");
}

#[test]
fn critical_paths_can_be_drawn() {
    for seed in 1..=300 {
        is_drawn(&format!("seed {seed}"), &nonsense(seed), false);
    }
}

#[test]
fn each_nanosecond_of_each_fixture_has_one_cause() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut count = 0;
    for entry in fs::read_dir(fixtures).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "trace") {
            let text = fs::read_to_string(&path).expect("a fixture");
            let name = path.display().to_string();
            adds_up(&name, &answers_of(&text));
            is_drawn(&name, &text, true);
            count += 1;
        }
    }
    assert!(count > 10, "{count} fixtures");
}

#[test]
fn each_nanosecond_of_nonsense_has_one_cause() {
    for seed in 1..=300 {
        adds_up(&format!("seed {seed}"), &answers_of(&nonsense(seed)));
    }
}

fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("a share");
    assert!((actual - expected).abs() < 1e-5, "{actual} instead of {expected}");
}

/// Equal, except for the nanoseconds between threads.
fn about(actual: u64, expected: u64) {
    assert!(actual.abs_diff(expected) < 100, "{actual} instead of {expected}");
}

/// Equal, except for a microsecond.
fn nearly(actual: u64, expected: u64) {
    assert!(actual.abs_diff(expected) < 1000, "{actual} instead of {expected}");
}

fn finding<'a>(answers: &'a Answers, id: &str) -> &'a Finding {
    let mut findings = answers.findings.iter();
    let found = findings.find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("no {id} in {:?}", answers.findings))
}

/// Thread i works 1 + 2i units: load balance is n / (2n - 1).
#[test]
fn a_static_loop_that_grows_has_its_load_balance() {
    for threads in [2_u64, 4, 8] {
        let mut script = Script::new(threads);
        let arrivals: Vec<u64> = (0..threads).map(|i| (1 + 2 * i) * UNIT).collect();
        let end = script.region(0, LOOP, &arrivals);
        let answers = script.end(end);
        assert_eq!(u64::from(answers.threads), threads);
        let accounting = &answers.accounting;
        assert_eq!(accounting[Cause::Useful], threads * threads * UNIT);
        about(accounting[Cause::Imbalance], accounting.lost());
        let n = threads as f64;
        close(answers.efficiency.load_balance, n / (2.0 * n - 1.0));
        close(answers.efficiency.communication, 1.0);
        let found = finding(&answers, "load_imbalance");
        about(found.gain_ns, (2 * threads - 1 - threads) * UNIT);
        assert_eq!(answers.findings.len(), 1, "{:?}", answers.findings);
    }
}

/// Regardless of which thread comes to a single region first: its executor or another.
#[test]
fn a_single_region_is_found_whoever_comes_first() {
    for [executor, other] in [[1, 2], [2, 1]] {
        let mut script = Script::new(2);
        let single = |kind, task| format!("kind=single_{kind} count=1 parallel=100 task={task} code=0x1300");
        for (at, thread, kind, task) in [(10 * executor, 1, "executor", 101), (10 * other, 2, "other", 102)] {
            let end = if thread == 1 { 4 * UNIT } else { at + 1 };
            let single = single(kind, task);
            script.at(at, INSIDE, thread, &format!("work begin {single}"));
            script.at(end, INSIDE, thread, &format!("work end {single}"));
        }
        let end = script.region(0, LOOP, &[4 * UNIT + 10, 100]);
        let answers = script.end(end);
        let found = finding(&answers, "single_serialises");
        nearly(found.gain_ns, 2 * UNIT);
    }
}

/// All work is in ordered regions, one after another: serialisation is 1 / n.
#[test]
fn an_ordered_loop_serialises() {
    for threads in [2_u64, 4, 8] {
        let mut script = Script::new(threads);
        let turns = 3 * threads;
        for turn in 0..turns {
            let asked = (turn + 1).saturating_sub(threads) * UNIT;
            let got = turn * UNIT + u64::from(turn > 0);
            let times = [asked + 1, got.max(asked + 1), (turn + 1) * UNIT];
            let ordered = "kind=ordered wait_id=0x90 code=0x1300";
            script.mutex(1 + turn % threads, ordered, times);
        }
        let arrivals = (1..=threads).map(|i| (turns - threads + i) * UNIT);
        let end = script.region(0, LOOP, &arrivals.collect::<Vec<_>>());
        let answers = script.end(end);
        close(answers.efficiency.serialisation, 1.0 / threads as f64);
        let lost = answers.accounting[Cause::Ordered] + answers.accounting[Cause::Imbalance];
        about(lost, answers.accounting.lost());
        let found = finding(&answers, "ordered_serialises");
        about(found.gain_ns, (turns - 3) * UNIT);
    }
}

/// No event shows where waits of a doacross loop start.
#[test]
fn waits_of_doacross_loops_are_not_seen_and_said_so() {
    let is_ordered = |answers: &Answers| {
        let mut not_seen = answers.not_seen.iter();
        not_seen.any(|not_seen| not_seen.cause == Cause::Ordered)
    };
    let mut script = Script::new(2);
    let end = script.region(0, LOOP, &[UNIT; 2]);
    assert!(!is_ordered(&script.end(end)));
    let mut script = Script::new(2);
    script.at(UNIT / 2, INSIDE, 1, "dependences task=101 source=0x0");
    script.at(UNIT / 2, INSIDE, 2, "dependences task=102 sink=0x0");
    let end = script.region(0, LOOP, &[UNIT; 2]);
    assert!(is_ordered(&script.end(end)));
}

/// Two threads wait for the holder of a critical region, then one of them waits for the other.
#[test]
fn a_matrix_says_who_blocked_whom() {
    let mut script = Script::new(3);
    for (thread, code, times) in
        [(1, "0x1300", [1, 2, 100]), (2, "0x1300", [20, 101, 200]), (3, "0x1400", [40, 201, 300])]
    {
        let critical = format!("kind=critical wait_id=0x90 code={code}");
        script.mutex(thread, &critical, times.map(|us| us * 1000));
    }
    let end = script.region(0, LOOP, &[300_000; 3]);
    let answers = script.end(end);
    let rows: Vec<_> = answers
        .blocked
        .iter()
        .map(|row| (row.holder_thread.as_deref(), &*row.waiter_thread, row.ns))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("OpenMP worker 1"), "OpenMP worker 2", 100_000),
            (Some("main"), "OpenMP worker 1", 81_000),
            (Some("main"), "OpenMP worker 2", 61_000),
            // No other thread holds it.
            (None, "main", 1_000),
        ]
    );
    let row = &answers.blocked[0];
    assert_eq!(row.lock.as_deref(), Some("critical 0x90"));
    let holder = row.holder.as_ref().expect("a holder");
    assert!(holder.construct.contains("0x1300"), "{row:?}");
    assert!(row.waiter.construct.contains("0x1400"), "{row:?}");
}

/// One thread creates tasks of 1 to 8 units, and `threads` threads execute them in turn.
fn tasks(threads: u64, units: &[u64], depends: bool) -> Answers {
    let mut script = Script::new(threads);
    let single = "kind=single_executor count=1 parallel=100 task=101 code=0x1300";
    script.at(1, FIRST, 1, &format!("work begin {single}"));
    for (index, _) in units.iter().enumerate() {
        let at = 10 + index as u64;
        let new = 500 + index;
        script.at(at, INSIDE, 1, &format!("task_create task=101 new={new} flags=4 code=0x1400"));
        if depends && index > 0 {
            let sink = format!("task_dependence src={} sink={new}", new - 1);
            script.at(at, INSIDE, 1, &sink);
        }
    }
    script.at(50, INSIDE, 1, &format!("work end {single}"));
    let mut free = vec![100; threads as usize];
    let mut last = 100;
    for (index, units) in units.iter().enumerate() {
        let (thread, _) = free.iter().enumerate().min_by_key(|(_, free)| **free).expect("a thread");
        let begin = if depends { last } else { free[thread] } + 1;
        let end = begin + units * UNIT;
        (free[thread], last) = (end, end);
        let (task, new) = (101 + thread, 500 + index);
        let thread = thread as u64 + 1;
        script.at(begin, INSIDE, thread, &format!("task_schedule prior={task} status=7 next={new}"));
        script.at(end, INSIDE, thread, &format!("task_schedule prior={new} status=1 next={task}"));
    }
    let end = script.region_until(0, LOOP, &vec![60; threads as usize], free.into_iter().max());
    script.end(end)
}

#[test]
fn other_numbers_of_threads_are_predicted_by_list_scheduling() {
    let units: Vec<u64> = (1..=8).collect();
    for (threads, recorded) in [(2, 20), (4, 12)] {
        let answers = tasks(threads, &units, false);
        nearly(answers.duration_ns, recorded * UNIT);
        assert_eq!(answers.not_predicted, []);
        for (on, expected) in [(1, 36), (2, 20), (4, 12), (8, 8)] {
            let mut rows = answers.other_threads.iter();
            if let Some(row) = rows.find(|row| row.threads == on) {
                nearly(row.duration_ns, expected * UNIT);
            }
        }
        assert_eq!(answers.other_threads.len() as u64, 2 * threads);
        let region = &answers.task_regions[0];
        assert_eq!(region.tasks, 8);
        nearly(region.work_ns, 36 * UNIT);
        nearly(region.span_ns.expect("a span"), 8 * UNIT);
        close(region.parallelism.map(|by| (by * 1e3).round() / 1e3), 4.5);
    }
}

#[test]
fn tasks_that_depend_on_each_other_have_a_span_of_all_work() {
    let answers = tasks(4, &[3; 6], true);
    let region = &answers.task_regions[0];
    nearly(region.work_ns, 18 * UNIT);
    nearly(region.span_ns.expect("a span"), 18 * UNIT);
    for row in &answers.other_threads {
        nearly(row.duration_ns, 18 * UNIT);
    }
    let found = finding(&answers, "dependence_chain");
    nearly(found.gain_ns, 18 * UNIT * 3 / 4);
}

/// Each of two threads waits for two critical regions. Freeing only one of them saves nothing, because the other waits
/// last as long.
#[test]
fn mutexes_that_keep_threads_waiting_together_are_found() {
    let mut script = Script::new(4);
    for thread in 1..=4 {
        let (number, turn) = ((thread - 1) / 2, (thread - 1) % 2);
        let critical = format!("kind=critical wait_id=0x9{number} code=0x1{number}00");
        let times = [1, turn * 2 * UNIT + 2, (turn + 1) * 2 * UNIT];
        script.mutex(thread, &critical, times);
    }
    let end = script.region(0, LOOP, &[2 * UNIT, 4 * UNIT, 2 * UNIT, 4 * UNIT]);
    let answers = script.end(end);
    assert_eq!(ids(&answers), ["several_mutexes"]);
    nearly(finding(&answers, "several_mutexes").gain_ns, 2 * UNIT);
    // A single mutex is not a finding about several.
    let mut script = Script::new(2);
    let critical = "kind=critical wait_id=0x90 code=0x1000";
    script.mutex(1, critical, [1, 2, 2 * UNIT]);
    script.mutex(2, critical, [1, 2 * UNIT + 2, 4 * UNIT]);
    let end = script.region(0, LOOP, &[2 * UNIT, 4 * UNIT]);
    assert_eq!(ids(&script.end(end)), ["critical_contention"]);
}

/// Four threads take turns in one critical region, at 120 places. None of these alone saves 1 %.
#[test]
fn one_mutex_at_many_places_is_not_several_mutexes() {
    let mut script = Script::new(4);
    let mut free = [1; 4];
    for turn in 0..120 {
        let thread = (turn % 4) as usize;
        let critical = format!("kind=critical wait_id=0x90 code={:#x}", 0x1000 + 0x10 * turn);
        let (got, released) = (turn * UNIT + 2, (turn + 1) * UNIT);
        script.mutex(turn % 4 + 1, &critical, [free[thread], got, released]);
        free[thread] = released + 1;
    }
    let end = script.region(0, LOOP, &[117, 118, 119, 120].map(|units| units * UNIT + 1));
    let answers = script.end(end);
    assert_eq!(ids(&answers), ["critical_contention"]);
    let found = finding(&answers, "critical_contention");
    assert!(found.text.starts_with("threads wait for one mutex that is acquired in 1"), "{}", found.text);
    assert!(found.gain_ns > 80 * UNIT, "{}", found.gain_ns);
}

/// Each of four threads runs a task that consists of one critical region. More tasks would not help.
#[test]
fn tasks_that_wait_for_a_mutex_are_not_too_few() {
    let mut script = Script::new(4);
    for task in 0..4 {
        let create = format!("task_create task=101 new={} flags=4 code=0x1400", 500 + task);
        script.at(10 + task, INSIDE, 1, &create);
        let (thread, new) = (task + 1, 500 + task);
        let (asked, got, released) = (102, 103 + task * UNIT, 102 + (task + 1) * UNIT);
        let prior = 101 + task;
        let begin = format!("task_schedule prior={prior} status=7 next={new}");
        script.at(101, INSIDE, thread, &begin);
        let critical = "kind=critical wait_id=0x90 code=0x1500";
        script.mutex(thread, critical, [asked, got, released]);
        let end = format!("task_schedule prior={new} status=1 next={prior}");
        script.at(released + 1, INSIDE, thread, &end);
    }
    let end = script.region_until(0, LOOP, &[60; 4], Some(4 * UNIT + 103));
    let answers = script.end(end);
    assert_eq!(ids(&answers), ["critical_contention"]);
    nearly(finding(&answers, "critical_contention").gain_ns, 3 * UNIT);
}

/// The creating thread works for a long time, and all threads run short tasks afterwards: more tasks shorten only
/// these.
#[test]
fn tasks_behind_a_late_creator_gain_what_they_take() {
    let mut script = Script::new(4);
    let late = 10 * UNIT;
    script.at(late, INSIDE, 1, "task_create task=101 new=500 flags=4 code=0x1400");
    let begin = "task_schedule prior=102 status=7 next=500";
    script.at(late + 100, INSIDE, 2, begin);
    let end = "task_schedule prior=500 status=1 next=102";
    script.at(late + 4 * UNIT, INSIDE, 2, end);
    let arrivals = [late + 50, 60, 60, 60];
    let end = script.region_until(0, LOOP, &arrivals, Some(late + 4 * UNIT));
    let answers = script.end(end);
    let by_id = |id| finding(&answers, id).gain_ns;
    // Of 14 units of work, each thread would have 3.5.
    nearly(by_id("load_imbalance"), 14 * UNIT - 14 * UNIT / 4);
    // The task cannot end before its creator.
    nearly(by_id("too_few_tasks"), 4 * UNIT);
}

/// Half of the time one thread works alone.
#[test]
fn serial_code_is_charged_to_the_regions_around_it() {
    let mut script = Script::new(4);
    let end = script.region(0, LOOP, &[UNIT; 4]);
    let end = script.region(end + 2 * UNIT, "0x2000", &[4 * UNIT; 4]);
    let answers = script.end(end);
    let accounting = &answers.accounting;
    about(accounting[Cause::Serial], 3 * 2 * UNIT);
    about(accounting[Cause::Useful], (4 + 2 + 4) * UNIT);
    about(accounting.lost(), accounting[Cause::Serial]);
    let found = finding(&answers, "serial_part");
    about(found.gain_ns, 2 * UNIT * 3 / 4);
    assert_eq!(answers.findings.len(), 1);
    let row = &answers.blame[0];
    assert!(row.place.construct.contains(" from "), "{:?}", row.place);
}

/// Consecutive barriers cost time, but separate nothing.
#[test]
fn a_barrier_after_a_barrier_is_needless() {
    let mut script = Script::new(4);
    for count in 0..100 {
        let (arrival, departure) = (1000 + count * 8_500, 9_000 + count * 8_500);
        for thread in 1..=4 {
            let task = 100 + thread;
            let barrier = format!("kind=barrier_explicit parallel=100 task={task} code=0x1500");
            for (time, event) in [(arrival, "begin"), (departure, "end")] {
                script.at(time, INSIDE, thread, &format!("sync_region {event} {barrier}"));
            }
        }
    }
    let end = script.region(0, LOOP, &[UNIT + 1; 4]);
    let answers = script.end(end);
    about(answers.accounting[Cause::Barrier], 4 * 100 * 8_000);
    let found = finding(&answers, "needless_barrier");
    about(found.gain_ns, 100 * 8_000);
}

/// The host maps and runs `count` parts on a device, each with these bytes, times and kernels. The device delivers
/// records.
fn offloads(count: u64, bytes: u64, [op_ns, kernel_ns]: [u64; 2], is_overlapped: bool) -> Answers {
    let mut script = Script::new(1);
    script.metadata = Some(r#"{"devices": {"0": {"type": "toy", "records": "ompt"}}}"#);
    script.at(0, INSIDE, 9, "device_stream device=0");
    script.at(0, INSIDE, 9, "device_clock device=0 before=0 time=0 after=0");
    let mut now = 10;
    for part in 0..count {
        let (target, id) = (1000 * (part + 1), 1000 * (part + 1) + 1);
        let of_target = format!("device=0 target={target} code=0x10100");
        script.at(now, INSIDE, 1, &format!("target begin {of_target}"));
        let data = format!(
            "target={target} op={id} kind=transfer_to_device src=0x1000 src_device=1 dest=0x2000 bytes={bytes} code=0x10100"
        );
        let (begin, end) = (now + 10, now + 10 + op_ns);
        script.at(begin, INSIDE, 1, &format!("target_data_op_emi begin {data}"));
        script.at(end, INSIDE, 1, &format!("target_data_op_emi end {data}"));
        let submit = format!("target={target} op={} teams=1", id + 1);
        script.at(end + 10, INSIDE, 1, &format!("target_submit begin {submit}"));
        script.at(end + 20, INSIDE, 1, &format!("target_submit end {submit}"));
        let (kernel, kernel_end) = match is_overlapped {
            true => (begin, begin + kernel_ns),
            false => (end + 20, end + 20 + kernel_ns),
        };
        // Launching a kernel costs the host 5 us.
        now = kernel_end.max(end + 20) + 5_000;
        script.at(now, INSIDE, 1, &format!("target end {of_target}"));
        now += 100;
        let record = format!(
            "device_data_op device=0 op={id} target={target} kind=transfer_to_device src=0x1000 src_device=1 dest=0x2000 bytes={bytes} begin={begin} end={end}"
        );
        script.at(now, INSIDE, 9, &record);
        let record = format!(
            "device_kernel device=0 op={} target={target} teams=1 begin={kernel} end={kernel_end}",
            id + 1
        );
        script.at(now, INSIDE, 9, &record);
    }
    script.at(now, INSIDE, 9, &format!("device_clock device=0 before={now} time={now} after={now}"));
    script.end(now)
}

/// Two threads are late at the same barrier. One of them creates tasks in the meantime, the other does not.
#[test]
fn who_is_late_is_charged_once() {
    let mut script = Script::new(3);
    for (thread, code) in [(2, "0x5000"), (3, "0x6000")] {
        let work = format!("kind=sections count=1 parallel=100 task={} code={code}", 100 + thread);
        script.at(1, FIRST, thread, &format!("work begin {work}"));
        script.at(UNIT, INSIDE, thread, &format!("work end {work}"));
    }
    for task in 0..50 {
        let create = format!("task_create task=102 new={} flags=4 code=0x5100", 500 + task);
        script.at(10_000 * (task + 1), INSIDE, 2, &create);
    }
    let end = script.region(0, LOOP, &[1, UNIT, UNIT]);
    let answers = script.end(end);
    let imbalance = answers.blame.iter().filter(|row| row.cause == Cause::Imbalance);
    let charged: Vec<u64> = imbalance.map(|row| row.ns).collect();
    about(charged[0], UNIT / 2);
    about(charged[1], UNIT / 2);
}

fn ids(answers: &Answers) -> Vec<&str> {
    answers.findings.iter().map(|finding| &*finding.id).collect()
}

#[test]
fn many_small_buffers_on_a_device_are_found() {
    let small = offloads(200, 1 << 10, [2_000, 400_000], true);
    assert_eq!(ids(&small), ["target_wait"], "{:?}", small.findings);
    let small = offloads(200, 1 << 10, [300_000, 100_000], true);
    let found = finding(&small, "small_transfers");
    about(found.gain_ns, 200 * 300_000);
    assert_eq!(found.evidence["operations"], 200);
    assert_eq!(found.instances.len(), 3);
    for large in
        [offloads(50, 1 << 10, [300_000, 100_000], true), offloads(200, 1 << 20, [300_000, 100_000], true)]
    {
        assert!(!ids(&large).contains(&"small_transfers"), "{:?}", large.findings);
    }
}

#[test]
fn kernels_that_are_shorter_than_their_launch_are_found() {
    let small = offloads(200, 1 << 20, [1_000, 2_000], false);
    let found = finding(&small, "small_kernels");
    // The host waits for the launch, in addition to the 2 us of the kernel itself.
    assert!(found.gain_ns.abs_diff(200 * 5_020) < 200 * 50, "{found:?}");
    assert_eq!(found.evidence["kernel_mean_ns"], 2_000);
    assert_eq!(found.instances.len(), 3);
    let large = offloads(200, 1 << 20, [1_000, 20_000], false);
    assert!(!ids(&large).contains(&"small_kernels"), "{:?}", large.findings);
}

#[test]
fn transfers_that_no_kernel_overlaps_are_found() {
    let apart = offloads(20, 1 << 20, [200_000, 300_000], false);
    let found = finding(&apart, "transfers_not_overlapped");
    assert!(found.gain_ns.abs_diff(20 * 200_000) < 100, "{found:?}");
    assert_eq!(found.instances.len(), 3);
    let together = offloads(20, 1 << 20, [200_000, 300_000], true);
    assert!(!ids(&together).contains(&"transfers_not_overlapped"), "{:?}", together.findings);
}

/// There is no finding if all threads work all the time.
#[test]
fn a_clean_program_has_no_finding() {
    let mut script = Script::new(4);
    let end = script.region(0, LOOP, &[1_000_000; 4]);
    let answers = script.end(end);
    assert_eq!(answers.findings, []);
    close(answers.efficiency.parallel, 1.0);
}

/// Threads that the program could have used lose the time for which the region was too narrow.
#[test]
fn more_threads_can_be_counted() {
    let text = include_str!("../fixtures/tasks_in_barrier.trace");
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let options = Options { threads: NonZero::new(8), ..Options::default() };
    let eight = Stats::with(&[&readers[0]], &options).expect("numbers").0;
    let answers = eight.answers;
    assert_eq!(answers.threads, 8);
    adds_up("eight threads", &answers);
    assert!(answers.accounting[Cause::NarrowTeam] > 0);
}

/// A wait that the tracer reports at its end.
fn external_wait(begin: u64, what: &str) -> String {
    format!("external_wait beginend begin={begin} code=0x9000 {what}")
}

/// Of 8 ms, the first thread waits 5 ms for a pthread mutex. The other one is at the barrier, where waits are the
/// runtime's.
#[test]
fn waits_that_are_not_openmps_are_told_from_work() {
    let mut script = Script::new(2);
    let end = script.region(0, LOOP, &[8 * UNIT, 4 * UNIT]);
    script.at(7 * UNIT, INSIDE, 1, &external_wait(2 * UNIT, "kind=1 object=0x77"));
    script.at(6 * UNIT, INSIDE, 2, &external_wait(5 * UNIT, "kind=3 object=0x88"));
    let answers = script.end(end);
    adds_up("a mutex", &answers);
    about(answers.accounting[Cause::ExternalWait], 5 * UNIT);
    about(answers.accounting[Cause::Useful], 7 * UNIT);
    about(answers.critical_path.useful_ns, 8 * UNIT);
    let longest = &answers.critical_path.rows[0];
    assert!(longest.place.construct.starts_with("wait: pthread mutex"), "{longest:?}");
    about(longest.ns, 5 * UNIT);
    // The other thread works 4 ms. Changing OpenMP constructs would not help.
    assert_eq!(ids(&answers), ["external_wait"]);
    let found = finding(&answers, "external_wait");
    about(found.gain_ns, 4 * UNIT);
    assert_eq!(found.evidence["object"], "0x77");
    assert_eq!(found.evidence["waits"], 1);
    about(found.evidence["lost_ns"].as_u64().expect("a number"), 8 * UNIT);
}

/// The wait in serial code is not work that could be spread, and the other thread's loss is still due to that code.
#[test]
fn a_wait_in_serial_code_is_none_of_its_work() {
    let mut script = Script::new(2);
    let begin = 10 * UNIT;
    let end = script.region(begin, LOOP, &[begin + 4 * UNIT, begin + 4 * UNIT]);
    script.at(9 * UNIT, INSIDE, 1, &external_wait(UNIT, "kind=7"));
    let answers = script.end(end);
    adds_up("a sleep", &answers);
    about(answers.accounting[Cause::ExternalWait], 8 * UNIT);
    about(answers.accounting[Cause::Serial], 10 * UNIT);
    assert_eq!(ids(&answers), ["external_wait"]);
    about(finding(&answers, "external_wait").gain_ns, 8 * UNIT);
}

/// If a trace does not contain such waits, unused CPU time shows that there are some.
#[test]
fn waits_that_were_not_recorded_are_hinted_at() {
    let with = |metadata: &'static str| {
        let mut script = Script::new(2);
        script.metadata = Some(metadata);
        let end = script.region(0, LOOP, &[400 * UNIT; 2]);
        script.end(end)
    };
    let answers = with(with_cpu_time!("3,5", "100000000", "300000000", "100000000"));
    let note = answers.waits_note.as_deref().expect("a note");
    assert!(note.contains("for 0.30 s of their useful time") && note.contains("--waits"), "{note}");
    assert_eq!(with(with_cpu_time!("3,5", "300000000", "300000000", "100000000")).waits_note, None);
    assert_eq!(late(with_cpu_time!("3,5", "1000000", "1000000", "100000")).waits_note, None, "too short");
    // The system does not report how long other programs had the CPUs.
    let answers = with(
        r#"{"cpu_time": {"process_begin_ns": 0, "process_end_ns": 1, "threads": [[1, 0, 100000000], [2, 0, 300000000]], "unknown_threads": 0}}"#,
    );
    let note = answers.waits_note.as_deref().expect("a note");
    assert!(
        note.contains("for 0.40 s") && note.contains("--cpu-time shows where other threads used the CPUs"),
        "{note}"
    );
}
