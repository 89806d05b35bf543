//! The tracer under the reference runtime: what was played must be what `omptrace dump --json` shows, line by line.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ompt_reference_runtime::argument::*;
use ompt_reference_runtime::player::{PlayedRound, PlayedThread};
use ompt_reference_runtime::tool::Found;
use ompt_reference_runtime::{Call, End, How, Report, Round, Script, Step, generate};
use ompt_sys::*;
use omptrace_tests::env;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{play, reference_runtime, sample, script, steps};

/// A script that was played under the tracer.
pub(crate) struct Traced {
    pub(crate) report: Report,
    pub(crate) output: Output,
    folder: tempfile::TempDir,
}

/// Plays a script under the tracer, which records all events to `t.omptrace`.
pub(crate) fn trace(script: &Script) -> Traced {
    trace_with(script, &mut reference_runtime())
}

pub(crate) fn trace_with(script: &Script, runtime: &mut Command) -> Traced {
    trace_events("all", script, runtime)
}

/// The same of these events.
fn trace_events(events: &str, script: &Script, runtime: &mut Command) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (report, output) = play(
        script,
        runtime
            .env("OMP_TOOL_LIBRARIES", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("OMPTRACE_EVENTS", events),
    );
    Traced { report, output, folder }
}

impl Traced {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The trace of the first round.
    pub(crate) fn dump(&self) -> BTreeMap<i32, Vec<Line>> {
        dump(&self.file("t.omptrace"))
    }
}

/// The runtime's events in a trace, by the thread that they happened on.
pub(crate) fn dump(trace: &Path) -> BTreeMap<i32, Vec<Line>> {
    let output = Command::new(env::omptrace_program())
        .args(["dump", "--json", "--all"])
        .arg(trace)
        .output()
        .expect("omptrace can be run");
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    let mut streams: BTreeMap<i64, Stream> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("JSON is UTF-8").lines() {
        let mut line: Line = serde_json::from_str(line).expect("a JSON object per line");
        let mut take = |name: &str| line.remove(name).and_then(|number| number.as_i64());
        assert_eq!(take("schema"), Some(2));
        let (number, time) = (take("stream"), take("time_ns"));
        streams.entry(number.expect("a stream")).or_default().add(time.expect("a time"), line);
    }
    let mut threads = BTreeMap::new();
    for (number, stream) in streams {
        let os_tid = stream.os_tid.unwrap_or_else(|| panic!("stream {number} has no thread"));
        // A thread that goes on after its `thread_end` has a further stream.
        let events: &mut Vec<Line> = threads.entry(os_tid).or_default();
        events.extend(stream.events);
    }
    threads
}

#[derive(Default)]
struct Stream {
    os_tid: Option<i32>,
    time: i64,
    events: Vec<Line>,
}

impl Stream {
    fn add(&mut self, time: i64, mut line: Line) {
        assert!(self.time <= time, "time goes back from {} to {time}", self.time);
        self.time = time;
        match line["event"].as_str().expect("a name") {
            "omptrace_thread_info" => self.os_tid = line["os_tid"].as_i64().map(|tid| tid as i32),
            own if own.starts_with("omptrace_") => {}
            name => {
                if name == "target_data_op" {
                    // What lies behind the last argument.
                    line.remove("tenth_argument");
                }
                self.events.push(line);
            }
        }
    }
}

/// Asserts that each thread's events are all that it played.
pub(crate) fn check(round: &PlayedRound, recorded: BTreeMap<i32, Vec<Line>>) {
    assert!(matches!(round.tool, Found::Active(_)), "{:?}", round.tool);
    check_threads(round, recorded);
}

/// The same, wherever the tool came from.
pub(crate) fn check_threads(round: &PlayedRound, mut recorded: BTreeMap<i32, Vec<Line>>) {
    for thread in &round.threads {
        let recorded = recorded.remove(&thread.os_tid).unwrap_or_default();
        check_start(&thread.played, &recorded);
        assert_eq!(recorded.len(), thread.played.len(), "events of a thread");
    }
    recorded.retain(|_, events| !events.is_empty());
    assert!(recorded.is_empty(), "events that nobody played: {recorded:?}");
}

/// Asserts that each thread's events are the first of those that it played, and at least those before the end.
fn check_before_end(round: &PlayedRound, mut recorded: BTreeMap<i32, Vec<Line>>) {
    for PlayedThread { os_tid, played, played_before_end, .. } in &round.threads {
        let recorded = recorded.remove(os_tid).unwrap_or_default();
        // A call that was recorded may not have returned when the process ended.
        let returned = recorded.len().min(played.len());
        check_start(played, &recorded[..returned]);
        assert!(
            recorded.len() >= *played_before_end,
            "{} of {played_before_end} events are in the trace",
            recorded.len()
        );
    }
}

/// Asserts that `recorded` are the first events of `played`.
fn check_start(played: &[Line], recorded: &[Line]) {
    for (index, (played, recorded)) in played.iter().zip(recorded).enumerate() {
        let mut played = played.clone();
        played.values_mut().for_each(write_large_numbers_as_text);
        assert_eq!(*recorded, played, "event {index} of a thread: recorded, played");
    }
}

/// As `dump` does: readers of JSON may keep numbers as doubles.
fn write_large_numbers_as_text(value: &mut Value) {
    const LARGEST: u64 = 1 << 53;
    match value {
        Value::Number(number) => {
            let distance = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            if distance.is_some_and(|distance| distance > LARGEST) {
                *value = number.to_string().into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(write_large_numbers_as_text),
        Value::Object(values) => values.values_mut().for_each(write_large_numbers_as_text),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn records_every_callback() {
    let traced = trace(&script(vec![steps(sample(generate::one_of_each()))]));
    let round = &traced.report.rounds[0];
    assert_eq!(round.threads[0].played.len(), ompt_callbacks_t::VALUES.len());
    check(round, traced.dump());
}

/// The runtime calls only what is registered: what it played shows that.
#[test]
fn what_is_left_out_is_not_registered() {
    let all: HashSet<&str> = sample(generate::one_of_each())
        .iter()
        .map(Call::name)
        .filter(|name| *name != "idle") // Of the drafts alone.
        .collect();
    let all_but = |left_out: &[&str]| {
        let mut wanted = all.clone();
        wanted.retain(|name| !left_out.contains(name));
        wanted
    };
    let threads = ["thread_begin", "thread_end"];
    for (events, wanted) in [
        ("all", all.clone()),
        ("default", all_but(&["flush"])),
        ("-task_create", all_but(&["flush", "task_create"])),
        ("nest_lock", HashSet::from(["nest_lock"])),
        (
            "mutex,-mutex_acquire,-lock_init",
            HashSet::from(["mutex_acquired", "mutex_released", "nest_lock", "lock_destroy"]),
        ),
    ] {
        let script = script(vec![steps(sample(generate::one_of_each()))]);
        let traced = trace_events(events, &script, &mut reference_runtime());
        let round = &traced.report.rounds[0];
        check(round, traced.dump());
        let played = round.threads[0].played.iter();
        let played: HashSet<&str> = played.map(|line| line["event"].as_str().expect("a name")).collect();
        // A stream's begin and end are always recorded.
        let wanted = wanted.into_iter().chain(threads).collect();
        assert_eq!(played, wanted, "{events}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn records_what_was_played(script in generate::script(4, 150)) {
        let traced = trace(&script);
        check(&traced.report.rounds[0], traced.dump());
    }
}

#[test]
fn records_null_pointers() {
    /// Makes NULL of an argument that is a pointer.
    fn nullify(argument: &mut Value) {
        match argument {
            Value::Array(_) => *argument = Value::Null,
            Value::Object(pointer) if pointer.contains_key("slot") => *argument = json!("null"),
            Value::Object(pointer) if pointer.contains_key("exit_frame") => *argument = Value::Null,
            Value::Object(pointer) if pointer.contains_key("phase") => *argument = json!({"phase": null}),
            _ => {}
        }
    }
    let calls = sample(generate::one_of_each()).into_iter().map(|call| {
        let mut call = serde_json::to_value(call).expect("JSON");
        let arguments = call.as_object_mut().into_iter().flat_map(|call| call.values_mut());
        arguments
            .filter_map(Value::as_object_mut)
            .flat_map(|arguments| arguments.values_mut())
            .for_each(nullify);
        serde_json::from_value::<Call>(call).expect("a call")
    });
    let traced = trace(&script(vec![steps(calls)]));
    check(&traced.report.rounds[0], traced.dump());
}

/// The calls of a parallel region with an implicit task and a loop, all on one thread, in slots from `slot` on.
fn region(slot: u32) -> Vec<Call> {
    let (outer, parallel, task) = (Data::Slot(slot), Data::Slot(slot + 1), Data::Slot(slot + 2));
    let codeptr_ra = Address(0x40_1000);
    let implicit_task = |endpoint: ompt_scope_endpoint_t, parallel_data| Call::ImplicitTask {
        endpoint: Enum::new(endpoint.0),
        parallel_data,
        task_data: New(task),
        actual_parallelism: 1,
        index: 0,
        flags: Enum::new(ompt_task_implicit.0),
    };
    let work = |endpoint: ompt_scope_endpoint_t| Call::Work {
        work_type: Enum::new(ompt_work_loop.0),
        endpoint: Enum::new(endpoint.0),
        parallel_data: parallel,
        task_data: task,
        count: 1000,
        codeptr_ra,
    };
    vec![
        Call::ParallelBegin {
            encountering_task_data: outer,
            encountering_task_frame: Frame(None),
            parallel_data: New(parallel),
            requested_parallelism: 1,
            flags: Enum::new(ompt_parallel_team.0),
            codeptr_ra,
        },
        implicit_task(ompt_scope_begin, parallel),
        work(ompt_scope_begin),
        work(ompt_scope_end),
        implicit_task(ompt_scope_end, Data::Null),
        Call::ParallelEnd {
            parallel_data: parallel,
            encountering_task_data: outer,
            flags: Enum::new(ompt_parallel_team.0),
            codeptr_ra,
        },
    ]
}

const SLOTS_OF_A_REGION: u32 = 3;

/// A number of threads that play a number of regions each.
fn storm(threads: u32, regions: u32) -> Vec<Vec<Step>> {
    let thread = |thread| {
        let steps = steps(region(thread * SLOTS_OF_A_REGION));
        vec![Step::Sync(0), Step::Repeat { times: regions, steps }]
    };
    (0..threads).map(thread).collect()
}

#[test]
fn records_impossible_orders() {
    let mut backwards = region(0);
    backwards.reverse();
    let thread_begin = |slot| Call::ThreadBegin {
        thread_type: Enum::new(ompt_thread_worker.0),
        thread_data: New(Data::Slot(slot)),
    };
    let thread_end = |slot| Call::ThreadEnd { thread_data: Data::Slot(slot) };
    // Each thread has slots of its own: the content of a shared one depends on who comes first.
    let (first, second) = (3, 9);
    let calls = [thread_end(first), thread_end(first), thread_begin(first), thread_begin(first)];
    let late = [thread_end(second)].into_iter().chain(region(4)).chain([thread_begin(second)]);
    let traced = trace(&script(vec![steps(backwards.into_iter().chain(calls)), steps(late)]));
    check(&traced.report.rounds[0], traced.dump());
}

#[test]
fn records_more_dependences_than_a_chunk_holds() {
    const DEPENDENCES: u32 = 100_000;

    let deps = (0..DEPENDENCES).map(|variable| (variable.into(), ompt_dependence_type_in.0)).collect();
    let call =
        Call::Dependences { task_data: Data::Null, deps: Dependences(Some(deps)), ndeps: DEPENDENCES as i32 };
    let traced = trace(&script(vec![steps([call.clone(), region(0).remove(0), call])]));
    let thread = &traced.report.rounds[0].threads[0];
    let recorded = traced.dump().remove(&thread.os_tid).expect("the thread's events");
    assert_eq!(recorded.len(), 3);
    assert_eq!(recorded[1], thread.played[1]);
    for line in [&recorded[0], &recorded[2]] {
        assert_eq!(line["ndeps"], DEPENDENCES);
        let kept = line["deps"].as_array().expect("a list");
        assert!(kept.len() > 1000, "only {} dependences were kept", kept.len());
        let played = thread.played[0]["deps"].as_array().expect("a list");
        assert_eq!(kept[..], played[..kept.len()]);
    }
}

#[test]
fn cuts_texts_that_are_too_long() {
    let long = Text(Some(b"0123456789".repeat(20_000)));
    let codeptr_ra = Address(0);
    let calls = [
        Call::ControlTool { command: 64, modifier: 0, arg: ControlArgument::Phase(long.clone()), codeptr_ra },
        Call::Error {
            severity: Enum::new(ompt_warning.0),
            length: long.0.as_ref().map_or(0, Vec::len) as u64,
            message: long,
            codeptr_ra,
        },
    ];
    let traced = trace(&script(vec![steps(calls)]));
    let thread = &traced.report.rounds[0].threads[0];
    let recorded = traced.dump().remove(&thread.os_tid).expect("the thread's events");
    for ((recorded, played), name) in recorded.iter().zip(&thread.played).zip(["text", "message"]) {
        let [kept, played] = [recorded, played].map(|line| line[name].as_str().expect("a text"));
        assert!((100..10_000).contains(&kept.len()), "{} bytes were kept", kept.len());
        assert!(played.starts_with(kept));
    }
    assert_eq!(recorded.len(), 2);
    assert_eq!(recorded[1]["length"], thread.played[1]["length"]);
}

#[test]
fn records_threads_that_come_and_go() {
    let thread_data = Data::Slot(3);
    let begin =
        Call::ThreadBegin { thread_type: Enum::new(ompt_thread_unknown.0), thread_data: New(thread_data) };
    let end = Call::ThreadEnd { thread_data };
    let life = [vec![begin], region(0), vec![end]].concat();
    let lives = Step::Repeat { times: 50, steps: steps(life) };
    let traced = trace(&script(vec![vec![lives]]));
    check(&traced.report.rounds[0], traced.dump());
}

#[test]
fn survives_a_storm_of_64_threads() {
    let traced = trace(&script(storm(64, 100)));
    let round = &traced.report.rounds[0];
    let mut ids = HashSet::new();
    for line in round.threads.iter().flat_map(|thread| &thread.played) {
        let new = match (line["event"].as_str(), line.get("endpoint").and_then(Value::as_str)) {
            (Some("parallel_begin"), _) => &line["parallel_data"],
            (Some("implicit_task"), Some("begin")) => &line["task_data"],
            _ => continue,
        };
        assert!(ids.insert(new.clone()), "the id {new} was given twice");
    }
    assert_eq!(ids.len(), 64 * 100 * 2);
    check(round, traced.dump());
}

/// A storm that goes on while the round ends.
fn storm_that_ends(how: How) -> Script {
    let threads = storm(8, 2000);
    let end = End { after_calls: Some(3000), how };
    Script { rounds: vec![Round { threads, end }], ..Script::default() }
}

#[test]
fn loses_nothing_when_finalize_comes_in_a_storm() {
    let traced = trace(&storm_that_ends(How::Finalize));
    assert!(traced.output.status.success(), "{:?}", traced.output);
    check_before_end(&traced.report.rounds[0], traced.dump());
}

#[test]
fn loses_nothing_when_the_process_ends_in_a_storm() {
    for how in [How::Return, How::Exit, How::QuickExit, How::Abort] {
        let traced = trace(&storm_that_ends(how));
        assert_eq!(traced.output.status.success(), how != How::Abort, "{how:?}: {:?}", traced.output);
        check_before_end(&traced.report.rounds[0], traced.dump());
    }
}

#[test]
fn keeps_everything_when_nobody_finalizes() {
    for how in [How::Return, How::Exit, How::QuickExit, How::Abort] {
        let threads = storm(4, 50);
        let end = End { after_calls: None, how };
        let traced = trace(&Script { rounds: vec![Round { threads, end }], ..Script::default() });
        check(&traced.report.rounds[0], traced.dump());
    }
}

#[test]
fn is_initialized_again_after_finalize() {
    let rounds = vec![Round::new(storm(2, 10)), Round::new(storm(3, 10)), Round::new(storm(1, 10))];
    let traced = trace(&Script { rounds, ..Script::default() });
    let names = ["t.omptrace", "t.2.omptrace", "t.3.omptrace"];
    for (round, name) in traced.report.rounds.iter().zip(names) {
        check(round, dump(&traced.file(name)));
    }
}

#[test]
fn does_nothing_where_tools_are_disabled() {
    let traced = trace_with(&script(storm(2, 10)), reference_runtime().env("OMP_TOOL", "disabled"));
    assert_eq!(traced.report.rounds[0].tool, Found::Disabled);
    let files = std::fs::read_dir(traced.folder.path()).expect("the folder").count();
    assert_eq!(files, 0);
}

#[test]
fn records_what_a_runtime_that_refuses_delivers() {
    let results = [ompt_set_error, ompt_set_never, ompt_set_impossible, ompt_set_sometimes];
    let names = ["implicit_task", "parallel_end", "work", "parallel_begin"];
    let grants = names.iter().zip(results).map(|(name, result)| (name.to_string(), result.0)).collect();
    let rounds = vec![Round::new(storm(2, 10))];
    let traced = trace(&Script { grants, rounds, ..Script::default() });
    let round = &traced.report.rounds[0];
    assert_eq!(round.threads[0].played.len(), 10);
    check(round, traced.dump());
}

#[test]
fn gives_ids_while_it_is_paused() {
    let command = |command: omp_control_tool_t| {
        vec![Call::ControlTool {
            command: command.0.into(),
            modifier: 0,
            arg: ControlArgument::Address(0),
            codeptr_ra: Address(0),
        }]
    };
    let calls = [
        command(omp_control_tool_pause),
        region(0),
        command(omp_control_tool_start),
        region(3),
        command(omp_control_tool_end),
        region(6),
    ];
    let traced = trace(&script(vec![steps(calls.concat())]));
    let thread = &traced.report.rounds[0].threads[0];
    assert_eq!(thread.control_tool_results, [omp_control_tool_success; 3]);

    let without_commands = |lines: &[Line]| -> Vec<Line> {
        lines.iter().filter(|line| line["event"] != "control_tool").cloned().collect()
    };
    let played = without_commands(&thread.played);
    let regions: Vec<&[Line]> = played.chunks(region(0).len()).collect();
    let ids: HashSet<&Value> = regions.iter().map(|region| &region[0]["parallel_data"]).collect();
    assert_eq!(ids.len(), 3);
    assert!(!ids.contains(&json!("0x0")));

    let recorded = traced.dump().remove(&thread.os_tid).expect("the thread's events");
    assert_eq!(without_commands(&recorded), regions[1]);
}
