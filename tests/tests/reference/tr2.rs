//! OMPT of 2014: a preloaded tracer is initialized by the runtime, and records all 63 events.

#![allow(non_upper_case_globals, reason = "constants are spelled as in C")]

use std::path::{Path, PathBuf};
use std::process::Output;

use ompt_reference_runtime::tool::{Found, Place};
use ompt_reference_runtime::tr2::Entry;
use ompt_reference_runtime::{Report, Round, Script, Step, Tr2};
use ompt_sys::tr2::*;
use omptrace_tests::env;
use omptrace_tests::trace::{Counts, convert, counts, dump, info, omptrace};
use omptrace_timeline::model::short_name;
use serde_json::Value;

use crate::tracer::{self, check};
use crate::{play, reference_runtime};

pub(crate) struct Traced {
    folder: tempfile::TempDir,
    report: Report,
    output: Output,
}

impl Traced {
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("t.omptrace")
    }

    /// The tracer's messages, but for the other interface that this runtime has and is asked to refuse.
    fn words(&self) -> Vec<String> {
        let words = String::from_utf8_lossy(&self.output.stderr).into_owned();
        let lines = words.lines().filter(|line| !line.contains("Collector API"));
        lines.map(String::from).collect()
    }
}

pub(crate) fn trace(script: &Script, variables: &[(&str, &str)]) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (report, output) = play(
        script,
        reference_runtime()
            .env("LD_PRELOAD", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_EVENTS", "all")
            .env("REFERENCE_COLLECTOR", "refuses-start")
            .envs(variables.iter().copied()),
    );
    assert!(output.status.success(), "{output:?}");
    Traced { folder, report, output }
}

fn script(entry: Entry, threads: Vec<Vec<Step>>) -> Script {
    Script { tr2: Some(entry), rounds: vec![Round::new(threads)], ..Script::default() }
}

pub(crate) fn event(event: ompt_event_t, words: &[u64]) -> Step {
    Step::from(Tr2 { event: event.0, words: words.into() })
}

/// How many words the callback of an event has.
fn arity(event: ompt_event_t) -> usize {
    let name = event.name().expect("a name");
    match event {
        ompt_event_parallel_begin => 5,
        ompt_event_task_begin => 4,
        ompt_event_loop_begin
        | ompt_event_sections_begin
        | ompt_event_single_in_block_begin
        | ompt_event_workshare_begin
        | ompt_event_task_dependences => 3,
        ompt_event_runtime_shutdown => 0,
        ompt_event_task_end
        | ompt_event_initial_task_begin
        | ompt_event_initial_task_end
        | ompt_event_idle_begin
        | ompt_event_idle_end
        | ompt_event_flush => 1,
        _ if name.ends_with("_begin") || name.ends_with("_end") => 2,
        ompt_event_control | ompt_event_task_switch | ompt_event_task_dependence_pair => 2,
        _ => 1,
    }
}

/// An event with arguments of its own.
pub(crate) fn any(event: ompt_event_t) -> Step {
    let word = |index: usize| match (event, index) {
        (ompt_event_thread_begin | ompt_event_thread_end, 0) => 2,
        (ompt_event_control, 0) => 77,
        // No array of dependences.
        (ompt_event_task_dependences, 1 | 2) => 0,
        (_, index) => u64::from(event.0) << 8 | index as u64,
    };
    let words: Vec<u64> = (0..arity(event)).map(word).collect();
    self::event(event, &words)
}

/// Each event once, the thread's begin first, and its end and the runtime's last.
fn every_event() -> Vec<Step> {
    let last = [ompt_event_thread_end, ompt_event_runtime_shutdown];
    let events = ompt_event_t::VALUES.iter().map(|(_, number)| ompt_event_t(*number));
    let others = events.filter(|event| *event != ompt_event_thread_begin && !last.contains(event));
    std::iter::once(ompt_event_thread_begin).chain(others).chain(last).map(any).collect()
}

#[test]
fn every_event_is_recorded_however_the_tool_is_found() {
    for entry in [Entry::Initialize, Entry::Tool] {
        let traced = trace(&script(entry, vec![every_event()]), &[]);
        assert_eq!(traced.words(), [""; 0]);
        let round = &traced.report.rounds[0];
        // All but the runtime's end.
        assert_eq!(round.threads[0].played.len(), ompt_event_t::VALUES.len() - 1);
        check(round, tracer::dump(&traced.file()));
        let info = info(&traced.file());
        assert_eq!(info["runtime"]["dialect"], "TR2");
        let always = &info["callbacks"]["always"];
        assert_eq!(always.as_array().map(Vec::len), Some(ompt_event_t::VALUES.len()));
    }
}

/// A region of two members, with a loop, a critical region and a task, as LLVM reports it.
fn program() -> Vec<Vec<Step>> {
    const REGION: u64 = 100;
    const INITIAL: u64 = 1;
    const EXPLICIT: u64 = 9;
    const FUNCTION: u64 = 0x40_1000;
    const LOCK: u64 = 0x77;

    let (formed, arrived, ended) = (Step::Sync(0), Step::Sync(1), Step::Sync(2));
    let member = |task: u64| {
        vec![
            event(ompt_event_implicit_task_begin, &[REGION, task]),
            event(ompt_event_loop_begin, &[REGION, task, FUNCTION]),
            event(ompt_event_loop_end, &[REGION, task]),
            event(ompt_event_wait_critical, &[LOCK + task]),
            event(ompt_event_acquired_critical, &[LOCK + task]),
            event(ompt_event_release_critical, &[LOCK + task]),
            // It was free: nobody waited.
            event(ompt_event_acquired_lock, &[LOCK * 2 + task]),
            event(ompt_event_release_lock, &[LOCK * 2 + task]),
        ]
    };
    let barrier = |task: u64, ends: bool| {
        let events = match ends {
            false => [ompt_event_barrier_begin, ompt_event_wait_barrier_begin],
            true => [ompt_event_wait_barrier_end, ompt_event_barrier_end],
        };
        events.map(|number| event(number, &[REGION, task]))
    };
    let mut first = vec![
        event(ompt_event_thread_begin, &[1, 1]),
        event(ompt_event_parallel_begin, &[INITIAL, 1, REGION, 2, FUNCTION]),
        formed.clone(),
    ];
    first.extend(member(2));
    first.extend([
        event(ompt_event_task_begin, &[2, 0, EXPLICIT, FUNCTION]),
        event(ompt_event_taskwait_begin, &[REGION, 2]),
        event(ompt_event_task_switch, &[2, EXPLICIT]),
        event(ompt_event_task_end, &[EXPLICIT]),
        event(ompt_event_task_switch, &[0, 2]),
        event(ompt_event_taskwait_end, &[REGION, 2]),
    ]);
    first.extend(barrier(2, false));
    first.push(arrived.clone());
    first.extend(barrier(2, true));
    first.extend([
        event(ompt_event_implicit_task_end, &[REGION, 2]),
        event(ompt_event_parallel_end, &[REGION, INITIAL]),
        ended.clone(),
        event(ompt_event_runtime_shutdown, &[]),
        // Some runtimes go on.
        event(ompt_event_thread_end, &[1, 1]),
    ]);
    let mut second = vec![
        event(ompt_event_thread_begin, &[2, 2]),
        event(ompt_event_idle_begin, &[2]),
        formed,
        event(ompt_event_idle_end, &[2]),
    ];
    second.extend(member(3));
    second.extend(barrier(3, false));
    second.push(arrived);
    second.extend(barrier(3, true));
    second.extend([
        event(ompt_event_implicit_task_end, &[REGION, 3]),
        event(ompt_event_thread_end, &[2, 2]),
        ended,
    ]);
    vec![first, second]
}

#[test]
fn a_program_is_counted_exactly_and_its_timeline_is_sound() {
    let traced = trace(&script(Entry::Tool, program()), &[]);
    let file = traced.file();
    assert_eq!(traced.words(), [""; 0]);
    let expected: Counts = [
        ("thread_begin", 2),
        ("thread_end", 1),
        ("parallel_begin", 1),
        ("parallel_end", 1),
        ("implicit_task/begin", 2),
        ("implicit_task/end", 2),
        ("work/begin", 2),
        ("work/end", 2),
        ("mutex_acquire", 2),
        ("mutex_acquired", 4),
        ("mutex_released", 4),
        ("task_create", 1),
        ("task_schedule", 3),
        ("sync_region/begin", 3),
        ("sync_region/end", 3),
        ("sync_region_wait/begin", 2),
        ("sync_region_wait/end", 2),
        ("idle/begin", 1),
        ("idle/end", 1),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    let events = dump(&file);
    assert_eq!(counts(&events), expected);
    let states: Vec<String> = events
        .iter()
        .filter(|event| event["event"] == "omptrace_thread_state")
        .map(|event| format!("{} {}", event["state"], event["wait_id"]).replace('"', ""))
        .collect();
    assert!(states.contains(&"wait_critical 0x79".into()), "{states:?}");
    // What `ompt_enumerate_state` returns.
    let enumerated = info(&file)["runtime"]["states"].clone();
    assert_eq!(enumerated["98"], "ompt_state_wait_critical", "{enumerated}");

    let checked = omptrace([Path::new("check"), &file]);
    assert!(checked.status.success(), "{checked:?}");
    let out = file.with_extension("json");
    convert(&file, "chrome", &out, &[]);
    let json: Value = serde_json::from_slice(&std::fs::read(&out).expect("the export")).expect("JSON");
    let slices = |name: &str| {
        let is_it = |event: &&Value| {
            let full = event["name"].as_str().unwrap_or_default();
            ["B"].iter().any(|ph| event["ph"] == *ph) && full.split(" @").next() == Some(short_name(name))
        };
        json["traceEvents"].as_array().expect("events").iter().filter(is_it).count()
    };
    for (name, count) in [
        ("!$omp parallel", 1),
        ("!$omp implicit task", 2),
        ("!$omp for", 2),
        ("!$omp critical", 2),
        ("!$omp task", 1),
        ("!$omp taskwait", 1),
        ("!$omp barrier", 2),
        ("idle", 1),
    ] {
        assert_eq!(slices(name), count, "{name}");
    }
}

/// The report: who registers one of these must register the other, too.
#[test]
fn begin_and_end_are_registered_together() {
    let names = ["idle", "sync_region", "sync_region_wait", "implicit_task", "work", "masked"];
    for name in names {
        let traced = trace(&script(Entry::Tool, vec![every_event()]), &[("OMPTRACE_EVENTS", name)]);
        let callbacks = info(&traced.file())["callbacks"]["always"].clone();
        let callbacks: Vec<&str> = callbacks
            .as_array()
            .expect("names")
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| !name.starts_with("thread_"))
            .collect();
        let of = |end: &str| -> Vec<&str> {
            let ends = callbacks.iter().filter_map(|name| name.strip_suffix(end));
            ends.collect()
        };
        let (mut begun, mut ended) = (of("_begin"), of("_end"));
        begun.sort_unstable();
        ended.sort_unstable();
        assert_eq!(begun, ended, "{name}");
        // And the runtime's end.
        assert_eq!(callbacks.len(), 2 * begun.len() + 1, "{name}: {callbacks:?}");
        assert!(!begun.is_empty(), "{name}");
    }
}

/// `ompt_control` (7): 1 starts, 2 pauses, 3 flushes, 4 ends; a tool gives a meaning to those from 64 on.
#[test]
fn the_program_controls_recording() {
    let control = |command| event(ompt_event_control, &[command, 9]);
    let region = |id| event(ompt_event_parallel_end, &[id, 1]);
    let steps = vec![
        event(ompt_event_thread_begin, &[1, 1]),
        region(1),
        control(2),
        region(2),
        control(1),
        region(3),
        control(3),
        control(64),
        control(65),
        control(1000),
        control(0),
        region(4),
        control(4),
        region(5),
        // For good.
        control(1),
        region(6),
    ];
    let traced = trace(&script(Entry::Initialize, vec![steps]), &[]);
    assert_eq!(traced.words(), [""; 0]);
    let events = dump(&traced.file());
    let of = |name: &str, argument: &str| -> Vec<String> {
        let of_that_name = events.iter().filter(|event| event["event"] == name);
        of_that_name.map(|event| event[argument].to_string().replace('"', "")).collect()
    };
    assert_eq!(of("parallel_end", "parallel_data"), ["0x1", "0x3", "0x4"]);
    assert_eq!(of("control_tool", "command"), ["2", "1", "3", "64", "65", "1000", "0", "4"]);
    assert_eq!(of("control_tool", "modifier"), ["9"; 8]);
    assert_eq!(of("omptrace_monitoring", "change"), ["begin", "pause", "resume", "flush", "end"]);
}

/// As LLVM has it of threads that are not its own.
#[test]
fn threads_that_end_without_having_begun_are_recorded() {
    let foreign = |thread: u64| {
        let (task, region) = (10 * thread, 100 * thread);
        vec![
            event(ompt_event_initial_task_begin, &[task]),
            event(ompt_event_parallel_begin, &[task, 1, region, 1, 0x40_1000]),
            event(ompt_event_implicit_task_begin, &[region, task + 1]),
            event(ompt_event_implicit_task_end, &[region, task + 1]),
            event(ompt_event_parallel_end, &[region, task]),
            event(ompt_event_initial_task_end, &[task]),
            event(ompt_event_thread_end, &[1, thread]),
        ]
    };
    let threads = (1..=3).map(foreign).collect();
    let traced = trace(&script(Entry::Tool, threads), &[]);
    let file = traced.file();
    check(&traced.report.rounds[0], tracer::dump(&file));
    let checked = omptrace([Path::new("check"), &file]);
    assert!(checked.status.success(), "{checked:?}");
    let threads = dump(&file).into_iter().filter(|event| event["event"] == "omptrace_thread_info");
    assert_eq!(threads.count(), 3);
}

#[test]
fn registrations_that_are_refused_are_noted() {
    let grants = [
        ("wait_lock", 0),
        ("wait_critical", 1),
        ("acquired_lock", 2),
        ("flush", 3),
        // No number of the report: LLVM's of a later generation.
        ("init_lock", 5),
    ]
    .map(|(name, result)| (name.to_owned(), result))
    .into();
    let script = Script { grants, ..script(Entry::Initialize, vec![every_event()]) };
    let traced = trace(&script, &[]);
    check(&traced.report.rounds[0], tracer::dump(&traced.file()));
    let callbacks = info(&traced.file())["callbacks"].clone();
    assert_eq!(callbacks["error"], serde_json::json!(["wait_lock"]));
    assert_eq!(callbacks["impossible"], serde_json::json!(["wait_critical"]));
    assert_eq!(callbacks["never"], serde_json::json!(["acquired_lock"]));
    assert_eq!(callbacks["sometimes"], serde_json::json!(["flush"]));
    assert_eq!(callbacks["unknown"], serde_json::json!(["init_lock"]));
    let always = callbacks["always"].as_array().map(Vec::len);
    assert_eq!(always, Some(ompt_event_t::VALUES.len() - 5));
}

#[test]
fn a_runtime_that_starts_again_has_a_second_trace() {
    let threads =
        || vec![vec![event(ompt_event_thread_begin, &[1, 1]), event(ompt_event_runtime_shutdown, &[])]];
    let script = Script {
        rounds: vec![Round::new(threads()), Round::new(threads())],
        ..script(Entry::Tool, Vec::new())
    };
    let traced = trace(&script, &[]);
    for (round, name) in traced.report.rounds.iter().zip(["t.omptrace", "t.2.omptrace"]) {
        check(round, tracer::dump(&traced.folder.path().join(name)));
    }
}

/// The result of an initializer that returns 0, for the runtime.
const RETURNED_0: Found = Found::Declined(Place::AddressSpace);

#[test]
fn flavours_of_their_own_are_declined_in_one_line() {
    for entry in [Entry::OpenUh, Entry::Omp4Buffer] {
        let traced = trace(&script(entry, program()), &[]);
        let words = traced.words();
        assert_eq!(words.len(), 1, "{words:?}");
        assert!(words[0].contains("OpenUH"), "{words:?}");
        assert_eq!(traced.report.rounds[0].tool, RETURNED_0);
        assert!(!traced.file().exists());
    }
}

#[test]
fn a_tool_that_is_disabled_is_not_called() {
    let settings = [("OMP_TOOL", "disabled", Found::Disabled), ("OMPTRACE_DISABLED", "1", RETURNED_0)];
    for (name, value, found) in settings {
        let traced = trace(&script(Entry::Tool, program()), &[(name, value)]);
        assert_eq!(traced.report.rounds[0].tool, found);
        let played = traced.report.rounds[0].threads.iter();
        assert!(played.into_iter().all(|thread| thread.played.is_empty()));
        assert_eq!(traced.words(), [""; 0]);
        assert!(!traced.file().exists());
    }
    let traced = trace(&script(Entry::Tool, program()), &[("OMP_TOOL", "enabled")]);
    assert!(traced.file().exists());
}
