//! A signal handler that acts at each instruction of a callback, on the tracer as it was built (`handlers.c`).
//! Whatever the handler does there, the program lives on. Each event is in the trace once, in order, or counted as
//! lost.

#![cfg(target_arch = "x86_64")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, tool_library};
use omptrace_tests::trace::{Traces, dump_with_warnings, info};
use serde_json::Value;

/// The callbacks that are interrupted: one that is predicted, one with a surprise, one that always has some.
const CALLBACKS: [&str; 3] = ["create", "acquired", "dispatch"];
/// The hot path, and no more: unoptimised it has some hundred instructions.
const INSTRUCTIONS: std::ops::Range<usize> = 30..600;

/// One run of the program.
struct Run {
    traces: Traces,
    callback: &'static str,
    steps: Vec<Step>,
}

/// The observations when the handler acted after one instruction.
struct Step {
    number: u64,
    /// The event that was interrupted.
    main: u64,
    /// The ids of the handler's events: `number << 16`, and so on.
    handler: u64,
}

/// An event of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recorded {
    id: u64,
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Created,
    Named,
}

fn number(text: &str) -> u64 {
    let text = text.trim_end_matches('.');
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    u64::from_str_radix(digits, radix).unwrap_or_else(|_| panic!("{text:?} is no number"))
}

impl Run {
    fn new(callback: &'static str, action: &str, stride: &str, variables: &[(&str, &str)]) -> Run {
        let program = compile("tests/programs/handlers.c", Compiler::Clang22, &["-fno-openmp"]);
        let traces = Traces::folder();
        // The writer, which takes idle time, gets none on the program's only processor.
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &first_cpu()]).arg(program);
        command.arg(tool_library()).args([callback, action, stride]);
        command.env("OMPTRACE_OUTPUT", traces.path().join("t.omptrace")).envs(variables.iter().copied());
        let output = command.output().expect("it can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{callback} {action}: {}, after {:?}",
            output.status,
            said.lines().last()
        );
        let mut lines = said.lines();
        let length = lines.next().and_then(|line| line.strip_prefix("instructions "));
        let length = length.map_or(0, number) as usize;
        if CALLBACKS.contains(&callback) {
            assert!(INSTRUCTIONS.contains(&length), "{callback}: {length}");
        }
        let step = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["step", step, "main", main, "handler", handler] = words[..] else {
                panic!("{callback} {action}: {line}");
            };
            Step { number: number(step), main: number(main), handler: number(handler) }
        };
        let steps: Vec<Step> = lines.map(step).collect();
        if stride == "1" {
            assert_eq!(steps.len(), length, "{callback} {action}");
        }
        Run { traces, callback, steps }
    }

    /// A step's number, of one of its events.
    fn step_of(&self, event: Recorded) -> Option<u64> {
        match event.by {
            By::Named => Some(event.id >> 16),
            By::Created => {
                let mut steps = self.steps.iter();
                steps.find(|step| step.main == event.id).map(|step| step.number)
            }
        }
    }

    fn main(&self, step: &Step) -> Recorded {
        let by = match self.callback {
            "create" => By::Created,
            _ => By::Named,
        };
        Recorded { id: step.main, by }
    }

    /// Reads the trace: events in order, each once, those of a step between those of its neighbours. The rest of the trace
    /// must be sound.
    fn read(&self, trace: &Path, is_pedantic: bool) -> Trace {
        let (events, warnings) = dump_with_warnings(trace);
        // Of clocks, where the machine is busy.
        let is_expected = |line: &&str| line.contains("events were lost") || line.contains("clock");
        let mut others = warnings.lines().filter(|line| !is_expected(line));
        assert_eq!(others.next().filter(|_| is_pedantic), None, "{}", trace.display());
        let recorded: Vec<Recorded> = events.iter().filter_map(recorded).collect();
        let mut seen = BTreeSet::new();
        let mut last = BTreeMap::new();
        for (event, stream) in std::iter::zip(&recorded, streams(&events)) {
            assert!(seen.insert(*event), "{event:?} is there twice");
            let step = self.step_of(*event).unwrap_or(0);
            let before = last.insert(stream, step.max(*last.get(&stream).unwrap_or(&0)));
            assert!(step == 0 || before <= Some(step), "{event:?} comes behind step {before:?}");
        }
        let all = events
            .iter()
            .filter(|event| !["thread_begin", "thread_end"].contains(&name(event)))
            .filter(|event| !name(event).starts_with("omptrace_") || is_asked_for(event))
            .count();
        Trace { all, seen, lost: lost(trace) }
    }

    /// The one trace.
    fn only(&self) -> Trace {
        self.read(&self.traces.only(), true)
    }

    /// The traces of the steps, where each has its own; the first one is the program's beginning.
    fn each(&self) -> Vec<Trace> {
        let mut files = self.traces.files();
        let number_of = |path: &std::path::PathBuf| {
            let name = path.file_stem().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.split_once('.')).map(|two| two.1);
            number.map_or(1, self::number)
        };
        files.sort_by_key(number_of);
        assert_eq!(files.len(), self.steps.len() + 1);
        files.iter().map(|file| self.read(file, false)).collect()
    }
}

struct Trace {
    /// How many events it has, but for threads' begins and ends.
    all: usize,
    seen: BTreeSet<Recorded>,
    lost: usize,
}

/// True of the tracer's own event for a call of `omp_control_tool`.
fn is_asked_for(event: &Value) -> bool {
    name(event) == "omptrace_monitoring" && event["change"] != "begin"
}

fn name(event: &Value) -> &str {
    event["event"].as_str().expect("each event has a name")
}

fn recorded(event: &Value) -> Option<Recorded> {
    let (by, argument) = match name(event) {
        "mutex_acquired" => (By::Named, "wait_id"),
        "dispatch" => (By::Named, "instance"),
        "error" => (By::Named, "message"),
        "task_create" => (By::Created, "new_task_data"),
        _ => return None,
    };
    let id = number(event[argument].as_str().expect("a text"));
    Some(Recorded { id, by })
}

/// The streams of those that [`recorded`] takes.
fn streams(events: &[Value]) -> impl Iterator<Item = u64> {
    let events = events.iter().filter(|event| recorded(event).is_some());
    events.map(|event| event["stream"].as_u64().expect("a number"))
}

/// Events that are counted as lost, wherever.
fn lost(trace: &Path) -> usize {
    let info = info(trace);
    let findings = info["findings"].as_array().expect("a list");
    let unreported = findings.iter().filter(|one| one["name"] == "events_unreported");
    let text = |finding: &Value| finding["text"].as_str().unwrap_or_default().to_owned();
    let unreported = unreported.map(|finding| {
        let text = text(finding);
        let digits = |c: char| !c.is_ascii_digit();
        number(text.split(digits).find(|word| !word.is_empty()).unwrap_or("0"))
    });
    (info["lost"].as_u64().expect("a number") + unreported.sum::<u64>()) as usize
}

fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.expect("a list of CPUs").trim();
    list.split([',', '-']).next().expect("one").into()
}

/// The program makes events at each step besides the handler's: three before, the one that is interrupted, and
/// `after`. `without_id` of the handler's events have no id of their own.
fn check(action: &str, after: usize, without_id: usize, variables: &[(&str, &str)]) {
    for callback in CALLBACKS {
        let run = Run::new(callback, action, "1", variables);
        let trace = run.only();
        let steps = run.steps.len();
        let handled: usize = run.steps.iter().map(|step| step.handler as usize).sum();
        let made = 5 + steps * (4 + after + without_id) + handled;
        assert_eq!(trace.all + trace.lost, made, "{callback} {action}");
        // Where nothing is dropped, all that is lost came while the interrupted event was being stored.
        if action == "drop" {
            assert!(trace.lost > made / 2, "{callback}: {} of {made}", trace.lost);
            continue;
        }
        let is_there = |step: &&Step| trace.seen.contains(&run.main(step));
        assert_eq!(run.steps.iter().filter(is_there).count(), steps, "{callback} {action}");
    }
}

#[test]
fn another_event() {
    check("event", 3, 0, &[]);
}

#[test]
fn the_chunk_becomes_full() {
    check("fill", 3, 0, &[]);
}

#[test]
fn events_are_dropped() {
    check("drop", 3, 0, &[("OMPTRACE_ON_FULL", "drop")]);
}

#[test]
fn the_program_asks_for_a_flush() {
    check("flush", 3, 2, &[]);
    check("flush", 3, 2, &[("OMPTRACE_COMPRESS", "off")]);
}

#[test]
fn a_flight_recorder_writes_what_it_keeps() {
    check("flush", 3, 2, &[("OMPTRACE_KEEP", "flight")]);
}

#[test]
fn code_is_new() {
    check("code", 3, 0, &[]);
}

#[test]
fn events_are_wide() {
    check("nested", 3, 1, &[]);
}

#[test]
fn recording_pauses_and_resumes() {
    check("pause", 3, 4, &[]);
}

#[test]
fn a_child_is_forked_and_goes_on() {
    for callback in CALLBACKS {
        forks(callback, "fork");
    }
}

#[test]
fn a_child_is_forked_while_another_thread_forks() {
    for callback in CALLBACKS {
        forks(callback, "forks");
    }
}

/// Each child has a trace of its own, since it has events, and writes nothing into its parent's.
fn forks(callback: &'static str, action: &str) {
    let run = Run::new(callback, action, "1", &[]);
    let files = run.traces.files();
    assert_eq!(files.len(), 1 + run.steps.len(), "{callback}");
    let parent = run.read(&run.traces.path().join("t.omptrace"), true);
    let handled: usize = run.steps.iter().map(|step| step.handler as usize).sum();
    let made = 5 + run.steps.len() * 10 + handled;
    assert_eq!(parent.all + parent.lost, made, "{callback}");
    for step in &run.steps {
        assert!(parent.seen.contains(&run.main(step)), "{callback} {}", step.number);
    }
}

#[test]
fn recording_is_paused() {
    for callback in CALLBACKS {
        let run = Run::new(callback, "paused", "1", &[]);
        let trace = run.only();
        let steps = run.steps.len();
        // Before, and the calls that pause and resume; the interrupted event came before or after.
        let made = 5 + steps * (3 + 1 + 4);
        let there = trace.all + trace.lost;
        assert!((made..=made + steps).contains(&there), "{callback}: {there} of {made}");
        let after = trace.seen.iter().filter(|event| event.by == By::Named && event.id & 0xff00 == 0xff00);
        assert_eq!(after.count(), 0, "{callback}");
    }
}

#[test]
fn the_session_ends() {
    for action in ["end", "off"] {
        for callback in CALLBACKS {
            // The thread itself finds that the disk is full, and no writer, later.
            let run = Run::new(callback, action, "1", &[("OMPTRACE_COMPRESS", "off")]);
            let traces = run.each();
            for (trace, step) in std::iter::zip(&traces[1..], &run.steps) {
                // Three before, and the handler's, which is recorded or lost.
                let others = trace.all - usize::from(trace.seen.contains(&run.main(step)));
                let made = 3 + step.handler as usize;
                let own = Recorded { id: step.number << 16, by: By::Named };
                let expected = match (action, trace.seen.contains(&own)) {
                    ("off", true) => made..=made + 2,
                    // Within the event, nothing is flushed, so that the disk is not found to be full: two calls are lost,
                    // and three events follow.
                    ("off", false) => made + 5..=made + 5,
                    _ => made..=made,
                };
                let there = others + trace.lost;
                assert!(
                    expected.contains(&there),
                    "{callback} {action} {}: {there}, not {expected:?}",
                    step.number
                );
            }
        }
    }
}

#[test]
fn another_session_begins() {
    for callback in CALLBACKS {
        let run = Run::new(callback, "restart", "1", &[]);
        let traces = run.each();
        let all: usize = traces.iter().map(|trace| trace.all + trace.lost).sum();
        let handled: usize = run.steps.iter().map(|step| step.handler as usize).sum();
        let made = 5 + run.steps.len() * 6 + handled;
        // The interrupted event may be of neither session.
        assert!((made..=made + run.steps.len()).contains(&all), "{callback}: {all} of {made}");
    }
}

#[test]
fn the_thread_ends() {
    for callback in CALLBACKS {
        let run = Run::new(callback, "thread", "1", &[]);
        let trace = run.only();
        let handled: usize = run.steps.iter().map(|step| step.handler as usize).sum();
        let made = 5 + run.steps.len() + handled;
        // The interrupted event never ends.
        let there = trace.all + trace.lost;
        assert!((made..=made + run.steps.len()).contains(&there), "{callback}: {there} of {made}");
    }
}

/// A thread may be on the cold path when the session ends, and for long, as in a slow write of its own. The event
/// that it is storing is there once it is stored, and nothing is lost silently.
#[test]
fn the_session_ends_while_a_thread_takes_its_time() {
    let run = Run::new("large", "park", "4001", &[]);
    let traces = run.each();
    let mut stored = 0;
    for (trace, step) in std::iter::zip(&traces[1..], &run.steps) {
        let before = (0..64).map(|index| 0xe000 + index).chain([0xf000]);
        for id in before.map(|id| step.number << 16 | id) {
            let event = Recorded { id, by: By::Named };
            assert!(trace.seen.contains(&event), "step {}: {event:?}", step.number);
        }
        let own = Recorded { id: step.number << 16, by: By::Named };
        let handlers = usize::from(trace.seen.contains(&own));
        assert_eq!(handlers + trace.lost, step.handler as usize, "step {}", step.number);
        stored += usize::from(trace.seen.contains(&run.main(step)));
    }
    // Not where the thread had only begun to look at the event.
    assert!(stored > traces.len() / 5, "{stored} of {}", traces.len());
}
