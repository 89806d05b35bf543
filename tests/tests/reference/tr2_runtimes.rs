//! Ways of runtimes of TR2 that the report does not have, each as it was met on that runtime. The real ones are no longer
//! built anywhere. Their traces are fixtures of the reader (`viewer-export/tests/historic`).

#![allow(non_upper_case_globals, reason = "constants are spelled as in C")]

use std::collections::BTreeMap;
use std::path::Path;

use ompt_reference_runtime::tr2::Entry;
use ompt_reference_runtime::{Round, Script, Step};
use ompt_sys::tr2::*;
use omptrace_tests::trace::{info, omptrace};
use serde_json::Value;

use crate::tr2::{event, trace};

/// The version that LLVM's runtime gives itself in its releases up to 9.0.
const LLVM: &str = "Intel(R) OMP version: 5.0.20140926";

const REGION: u64 = 1;
const INITIAL: u64 = 4;
const FUNCTION: u64 = 0x40_1000;

/// The output of `stats` for a trace.
struct Played {
    stats: Value,
}

impl Played {
    /// How often the constructs occur whose names are this, without their place.
    fn count(&self, name: &str) -> u64 {
        let constructs = self.stats["constructs"].as_array().expect("constructs");
        let is_it = |construct: &&Value| {
            let full = construct["name"].as_str().expect("a name");
            full.split(" @").next() == Some(name)
        };
        let counts = constructs.iter().filter(is_it);
        counts.map(|construct| construct["count"].as_u64().expect("a count")).sum()
    }

    /// Explicit tasks, by thread.
    fn tasks(&self) -> Vec<u64> {
        let threads = self.stats["per_thread"].as_array().expect("threads").iter();
        threads.map(|thread| thread["tasks"].as_u64().expect("a count")).collect()
    }
}

/// Plays what a runtime does that calls itself `version`; the reader notes `expected`, and nothing else.
fn play_and_check(
    version: &str,
    grants: &[(&str, u32)],
    threads: Vec<Vec<Step>>,
    expected: &[&str],
) -> Played {
    let grants = grants.iter().map(|(name, answer)| ((*name).into(), *answer));
    let script = Script {
        tr2: Some(Entry::Tool),
        runtime_version: version.into(),
        grants: grants.collect::<BTreeMap<String, u32>>(),
        rounds: vec![Round::new(threads)],
        ..Script::default()
    };
    let traced = trace(&script, &[("OMPTRACE_EVENTS", "default")]);
    let info = info(&traced.file());
    assert_eq!(info["runtime"]["version"], version);
    let findings = info["findings"].as_array().expect("findings");
    let mut notes: Vec<String> = findings
        .iter()
        .map(|finding| {
            assert_eq!(finding["severity"], "note", "{findings:?}");
            finding["name"].as_str().expect("a name").to_owned()
        })
        .collect();
    // Of the file: a thread was busy when the process ended, and the spool has its chunk.
    notes.retain(|note| note != "hole_of_spool");
    notes.sort_unstable();
    assert_eq!(notes, expected);
    let stats = omptrace([Path::new("stats"), Path::new("--json"), Path::new("--all"), &traced.file()]);
    Played { stats: serde_json::from_slice(&stats.stdout).expect("JSON") }
}

fn region_begins() -> Step {
    event(ompt_event_parallel_begin, &[INITIAL, 1, REGION, 2, FUNCTION])
}

fn region_ends() -> Step {
    event(ompt_event_parallel_end, &[REGION, INITIAL])
}

fn member(begins: bool, task: u64) -> Step {
    let number = match begins {
        true => ompt_event_implicit_task_begin,
        false => ompt_event_implicit_task_end,
    };
    event(number, &[REGION, task])
}

/// A task that `parent` created runs on top of `on`.
fn task(parent: u64, on: u64, task: u64) -> [Step; 4] {
    [
        event(ompt_event_task_begin, &[parent, 0, task, FUNCTION]),
        event(ompt_event_task_switch, &[on, task]),
        event(ompt_event_task_switch, &[task, on]),
        event(ompt_event_task_end, &[task]),
    ]
}

fn thread_begins(kind: u64, thread: u64) -> Step {
    event(ompt_event_thread_begin, &[kind, thread])
}

/// A region of two threads, in which `first` and `second` are between the begins of the implicit tasks 10 and 20 and the
/// region's end.
fn region(first: Vec<Step>, second: Vec<Step>) -> Vec<Vec<Step>> {
    let (formed, done, ended) = (Step::Sync(0), Step::Sync(1), Step::Sync(2));
    let mut primary = vec![thread_begins(1, 1), region_begins(), member(true, 10), formed.clone()];
    primary.extend(first);
    primary.extend([done.clone(), member(false, 10), region_ends(), ended.clone()]);
    primary.push(event(ompt_event_thread_end, &[1, 1]));
    let mut worker = vec![thread_begins(2, 2), formed, member(true, 20)];
    worker.extend(second);
    worker.extend([done, ended, event(ompt_event_thread_end, &[2, 2])]);
    vec![primary, worker]
}

/// LLVM 3.8 to 5.0: the worker has reported its implicit task's end, and idles, before it runs what is left at the barrier.
#[test]
fn llvm_4_0_runs_tasks_at_the_join_on_top_of_none() {
    const NONE: u64 = 0;

    let mut worker = vec![member(false, 20), event(ompt_event_idle_begin, &[2])];
    worker.extend(task(10, NONE, 30));
    worker.extend(task(10, NONE, 31));
    let mut threads = region(task(10, 10, 32).to_vec(), worker);
    let end = threads[1].len() - 1;
    threads[1].insert(end, event(ompt_event_idle_end, &[2]));
    let played = play_and_check(LLVM, &[], threads, &[]);
    assert_eq!(played.count("!$omp task"), 3);
    assert_eq!(played.tasks(), [1, 2]);
    let worker = &played.stats["per_thread"][1];
    assert!(worker["parallel_ns"].as_u64() > Some(0), "{worker}");
}

/// LLVM never reports initial tasks.
#[test]
fn llvm_4_0_switches_to_its_initial_task() {
    let mut steps = vec![thread_begins(1, 1)];
    steps.extend(task(INITIAL, INITIAL, 30));
    steps.extend(task(INITIAL, INITIAL, 31));
    steps.push(event(ompt_event_thread_end, &[1, 1]));
    let played = play_and_check(LLVM, &[], vec![steps], &[]);
    assert_eq!(played.tasks(), [2]);
}

/// LLVM 3.9 to 5.0: each part of an untied task is created and ends.
#[test]
fn llvm_4_0_creates_each_part_of_an_untied_task() {
    let parts = (0..3).flat_map(|_| task(10, 10, 30)).collect();
    let played = play_and_check(LLVM, &[], region(parts, vec![member(false, 20)]), &[]);
    assert_eq!(played.tasks(), [1, 0]);
}

/// LLVM 3.7 does not register switches, and reports a task when it begins to run.
#[test]
fn llvm_3_7_begins_tasks_where_they_run() {
    let begins = |task| event(ompt_event_task_begin, &[10, 0, task, FUNCTION]);
    let ends = |task| event(ompt_event_task_end, &[task]);
    // One in the other, as at a taskwait.
    let steps = vec![begins(30), begins(31), ends(31), ends(30)];
    let threads = region(steps, vec![begins(32), ends(32), member(false, 20)]);
    let played = play_and_check(LLVM, &[("task_switch", 1)], threads, &["tasks_without_switch"]);
    assert_eq!(played.count("!$omp task"), 3);
    assert_eq!(played.tasks(), [2, 1]);
}

/// A runtime that follows the report, creates tasks before they run, and does not report when that is.
#[test]
fn a_runtime_without_switches_shows_when_tasks_are_complete() {
    let begins = |task| event(ompt_event_task_begin, &[10, 0, task, FUNCTION]);
    let ends = |task| event(ompt_event_task_end, &[task]);
    let threads = region(vec![begins(30), begins(31)], vec![ends(30), ends(31), member(false, 20)]);
    let played = play_and_check("a runtime of 2014", &[("task_switch", 2)], threads, &["tasks_unseen"]);
    assert_eq!(played.count("task created"), 2);
    assert_eq!(played.count("task completed"), 2);
    assert_eq!(played.count("!$omp task"), 0);
    assert_eq!(played.tasks(), [0, 2]);
}

/// LLVM 3.7 to 5.0 report which ordered region a thread waits for, and then no more.
#[test]
fn llvm_4_0_does_not_name_the_ordered_region_that_a_thread_got() {
    const PLACE: u64 = 0x77;
    const UNKNOWN: u64 = 0;

    let ordered = || {
        vec![
            event(ompt_event_wait_ordered, &[PLACE]),
            event(ompt_event_acquired_ordered, &[UNKNOWN]),
            event(ompt_event_release_ordered, &[UNKNOWN]),
        ]
    };
    let mut worker = ordered();
    worker.push(member(false, 20));
    let played = play_and_check(LLVM, &[], region(ordered(), worker), &[]);
    assert_eq!(played.count("!$omp ordered wait"), 2);
    assert_eq!(played.count("!$omp ordered"), 2);
}

/// LLVM 3.7, and 3.8 to 5.0 where they are built without dynamic locks.
#[test]
fn llvm_3_7_reports_releases_only() {
    let releases = |count: usize| -> Vec<Step> {
        let of = |number| event(number, &[0x77]);
        let both = [of(ompt_event_release_critical), of(ompt_event_release_lock)];
        both.into_iter().cycle().take(2 * count).collect()
    };
    let mut worker = releases(2);
    worker.push(member(false, 20));
    let played = play_and_check(LLVM, &[], region(releases(3), worker), &["release_without_acquire"]);
    assert_eq!(played.count("!$omp critical released"), 5);
    assert_eq!(played.count("omp_unset_lock"), 5);
}

/// LLVM 3.7 to 5.0: `nowait` takes the end from those that do not execute the region.
#[test]
fn llvm_4_0_does_not_end_others_singles_with_nowait() {
    let single = event(ompt_event_single_in_block_begin, &[REGION, 10, FUNCTION]);
    let single_ends = event(ompt_event_single_in_block_end, &[REGION, 10]);
    let others = event(ompt_event_single_others_begin, &[REGION, 20]);
    let mut worker = vec![others];
    worker.extend(task(10, 20, 30));
    worker.push(member(false, 20));
    let played = play_and_check(LLVM, &[], region(vec![single, single_ends], worker), &[]);
    assert_eq!(played.count("!$omp single"), 2);
    // What the thread does next is not in the region.
    let constructs = played.stats["constructs"].as_array().expect("constructs");
    let of = |name: &str, what: &str| -> u64 {
        let is_it = |construct: &&Value| {
            let full = construct["name"].as_str().expect("a name");
            full.split(" @").next() == Some(name)
        };
        let all = constructs.iter().filter(is_it);
        all.map(|construct| construct[what].as_u64().expect("ns")).sum()
    };
    assert_eq!(of("!$omp single", "total_ns"), of("!$omp single", "self_ns"));
}
