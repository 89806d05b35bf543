//! The Collector API of 2007: a preloaded tracer finds the runtime, and records all that it reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use ompt_reference_runtime::argument::Line;
use ompt_reference_runtime::collector::{openuh, tau};
use ompt_reference_runtime::player::PlayedRound;
use ompt_reference_runtime::{Collect, Report, Round, Script, Step};
use ompt_sys::collector::*;
use omptrace_tests::env;
use omptrace_tests::trace::{Counts, convert, counts, dump, info, omptrace};
use omptrace_timeline::model::short_name;
use serde_json::Value;

use crate::tracer::{self, check_threads};
use crate::{play, reference_runtime};

struct Traced {
    folder: tempfile::TempDir,
    report: Report,
    output: Output,
}

impl Traced {
    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("t.omptrace")
    }

    /// The events that the tracer asked the runtime for, in words.
    fn states(&self) -> Vec<String> {
        let states = dump(&self.file()).into_iter();
        states
            .filter(|event| event["event"] == "omptrace_thread_state")
            .map(|event| format!("{} {}", event["state"], event["wait_id"]).replace('"', ""))
            .collect()
    }

    fn callbacks(&self) -> Value {
        info(&self.file())["callbacks"].clone()
    }

    /// The output of `omptrace info` for the trace.
    fn words(&self) -> String {
        let words = omptrace([Path::new("info"), &self.file()]);
        String::from_utf8_lossy(&words.stdout).into_owned()
    }
}

/// Plays what each thread does under a preloaded tracer, on a runtime with these deviations.
fn trace(threads: Vec<Vec<Step>>, deviations: &str) -> Traced {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = Script { rounds: vec![Round::new(threads)], ..Script::default() };
    let (report, output) = play(
        &script,
        reference_runtime()
            .env("LD_PRELOAD", env::tool_library())
            .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
            .env("REFERENCE_COLLECTOR", deviations),
    );
    assert!(output.status.success(), "{output:?}");
    Traced { folder, report, output }
}

const LOCK: u64 = 0x77;
const REGION: u64 = 5;

fn event(
    event: OMP_COLLECTORAPI_EVENT,
    state: OMP_COLLECTOR_API_THR_STATE,
    region: u64,
    parent: Option<u64>,
) -> Step {
    Step::from(Collect { event: event.0, state: state.0, wait_id: LOCK, region, parent })
}

/// The steps on two threads in a parallel region, and in one inside it.
fn program() -> Vec<Vec<Step>> {
    const INNER: u64 = 6;

    let master = |number, state| event(number, state, REGION, Some(0));
    let slave = |number, state| event(number, state, REGION, None);
    let (started, ended) = (Step::Sync(0), Step::Sync(1));
    let first = vec![
        master(OMP_EVENT_FORK, THR_OVHD_STATE),
        started.clone(),
        master(OMP_EVENT_THR_BEGIN_MASTER, THR_WORK_STATE),
        master(OMP_EVENT_THR_END_MASTER, THR_WORK_STATE),
        master(OMP_EVENT_THR_BEGIN_SINGLE, THR_WORK_STATE),
        event(OMP_EVENT_FORK, THR_OVHD_STATE, INNER, Some(REGION)),
        event(OMP_EVENT_JOIN, THR_WORK_STATE, REGION, Some(0)),
        master(OMP_EVENT_THR_END_SINGLE, THR_WORK_STATE),
        master(OMP_EVENT_THR_BEGIN_EBAR, THR_EBAR_STATE),
        master(OMP_EVENT_THR_END_EBAR, THR_WORK_STATE),
        master(OMP_EVENT_THR_BEGIN_ODWT, THR_ODWT_STATE),
        master(OMP_EVENT_THR_END_ODWT, THR_WORK_STATE),
        master(OMP_EVENT_THR_BEGIN_ORDERED, THR_WORK_STATE),
        master(OMP_EVENT_THR_END_ORDERED, THR_WORK_STATE),
        master(OMP_EVENT_THR_BEGIN_IBAR, THR_IBAR_STATE),
        ended.clone(),
        master(OMP_EVENT_THR_END_IBAR, THR_OVHD_STATE),
        event(OMP_EVENT_JOIN, THR_SERIAL_STATE, 0, None),
    ];
    let second = vec![
        event(OMP_EVENT_THR_BEGIN_IDLE, THR_IDLE_STATE, 0, None),
        started,
        slave(OMP_EVENT_THR_END_IDLE, THR_OVHD_STATE),
        slave(OMP_EVENT_THR_BEGIN_LKWT, THR_LKWT_STATE),
        slave(OMP_EVENT_THR_END_LKWT, THR_WORK_STATE),
        slave(OMP_EVENT_THR_BEGIN_CTWT, THR_CTWT_STATE),
        slave(OMP_EVENT_THR_END_CTWT, THR_WORK_STATE),
        slave(OMP_EVENT_THR_BEGIN_ATWT, THR_ATWT_STATE),
        slave(OMP_EVENT_THR_END_ATWT, THR_WORK_STATE),
        slave(OMP_COLLECTORAPI_EVENT(4096), THR_REDUC_STATE),
        slave(OMP_EVENT_THR_BEGIN_EBAR, THR_EBAR_STATE),
        slave(OMP_EVENT_THR_END_EBAR, THR_WORK_STATE),
        slave(OMP_EVENT_THR_BEGIN_IBAR, THR_IBAR_STATE),
        slave(OMP_EVENT_THR_END_IBAR, THR_OVHD_STATE),
        event(OMP_EVENT_THR_BEGIN_IDLE, THR_IDLE_STATE, 0, None),
        ended,
    ];
    vec![first, second]
}

#[test]
fn a_program_is_counted_exactly_and_its_timeline_is_sound() {
    let traced = trace(program(), "");
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
    let file = traced.file();
    check_threads(&traced.report.rounds[0], tracer::dump(&file));
    let expected: Counts = [
        ("parallel_begin", 2),
        ("parallel_end", 2),
        ("idle/begin", 2),
        ("idle/end", 1),
        ("masked/begin", 1),
        ("masked/end", 1),
        ("work/begin", 1),
        ("work/end", 1),
        ("sync_region_wait/begin", 4),
        ("sync_region_wait/end", 4),
        ("mutex_wait/begin", 4),
        ("mutex_wait/end", 4),
        ("ordered/begin", 1),
        ("ordered/end", 1),
        ("collector_event", 1),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    assert_eq!(counts(&dump(&file)), expected);
    assert_eq!(traced.states().len() as u64, expected.values().sum::<u64>());

    let checked = omptrace([Path::new("check"), &file]);
    assert!(checked.status.success(), "{checked:?}");
    let words = traced.words();
    assert!(words.contains("Collector API"), "{words}");

    let out = file.with_extension("json");
    convert(&file, "chrome", &out, &[]);
    let json: Value = serde_json::from_slice(&std::fs::read(&out).expect("the export")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let slices = |name: &str| {
        let is_it =
            |event: &&Value| ["B"].iter().any(|ph| event["ph"] == *ph) && event["name"] == short_name(name);
        events.iter().filter(is_it).count()
    };
    for (name, count) in [
        ("!$omp parallel", 2),
        ("!$omp masked", 1),
        ("!$omp single", 1),
        ("!$omp ordered", 1),
        ("!$omp barrier wait", 2),
        ("!$omp implicit barrier wait", 2),
        ("omp_set_lock", 1),
        ("!$omp critical wait", 1),
        ("!$omp ordered wait", 1),
        ("!$omp atomic wait", 1),
        ("idle", 2),
    ] {
        assert_eq!(slices(name), count, "{name}");
    }
}

/// The slices and instants of a name, by category.
fn shown(file: &Path, names: &[&str]) -> Vec<usize> {
    let out = file.with_extension("json");
    convert(file, "chrome", &out, &[]);
    let json: Value = serde_json::from_slice(&std::fs::read(&out).expect("the export")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let count = |name: &&str| {
        let is_begin = |event: &&Value| ["B", "X", "i"].iter().any(|ph| event["ph"] == *ph);
        let shown = events.iter().filter(is_begin);
        let short = |event: &Value| {
            let name = event["name"].as_str().unwrap_or_default();
            name.trim_start_matches("!$omp ").to_owned()
        };
        shown.filter(|event| short(event) == **name).count()
    };
    names.iter().map(count).collect()
}

#[test]
fn what_openuh_reports_twice_is_shown_once() {
    let traced = trace(openuh(), "writes-no-error-code-of-ids");
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
    let file = traced.file();
    check_threads(&traced.report.rounds[0], tracer::dump(&file));
    let checked = omptrace([Path::new("check"), &file]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && !said.contains("warning"), "{said}");
    let names = ["parallel", "ordered", "ordered wait", "implicit barrier wait", "idle"];
    assert_eq!(shown(&file, &names), [2, 2, 1, 3, 1]);
}

#[test]
fn events_and_states_of_tau_are_shown() {
    let traced = trace(tau(), "reports-tasks");
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
    let file = traced.file();
    check_threads(&traced.report.rounds[0], tracer::dump(&file));
    let checked = omptrace([Path::new("check"), &file]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && !said.contains("warning"), "{said}");
    let names = ["parallel", "runtime-specific event", "state: overhead"];
    // FORK, creating, scheduling and finishing.
    assert_eq!(shown(&file, &names), [1, 5, 4]);
}

#[test]
fn every_registration_is_noted() {
    let traced = trace(program(), "knows-no-waits");
    let callbacks = traced.callbacks();
    let count = |code: &str| callbacks[code].as_array().map_or(0, Vec::len);
    // Two of the runtime's own are among those that it has.
    assert_eq!((count("OK"), count("UNSUPPORTED")), (18, 6), "{callbacks}");
    assert_eq!(count("UNKNOWN"), 0, "{callbacks}");
    check_threads(&traced.report.rounds[0], tracer::dump(&traced.file()));
}

#[test]
fn events_that_a_runtime_does_not_know_are_noted_as_such() {
    let traced = trace(program(), "knows-no-atomic-waits");
    let unknown = ["THR_BEGIN_ATWT", "THR_END_ATWT"];
    assert_eq!(traced.callbacks()["UNKNOWN"], serde_json::json!(unknown));
    check_threads(&traced.report.rounds[0], tracer::dump(&traced.file()));
}

#[test]
fn what_a_thread_waits_for_is_recorded_wherever_the_runtime_puts_it() {
    for deviations in ["", "aligns-wait-ids"] {
        let traced = trace(program(), deviations);
        let states = traced.states();
        for expected in [
            "wait_lock 0x77",
            "wait_critical 0x77",
            "wait_ordered 0x77",
            "wait_atomic 0x77",
            "wait_barrier_implicit 0x77",
            "wait_barrier_explicit 0x77",
            "work_serial 0x0",
            "work_parallel 0x0",
            "work_reduction 0x0",
            "overhead 0x0",
            "idle 0x0",
        ] {
            let found = states.iter().any(|state| state == expected);
            assert!(found, "{deviations}: {expected}: {states:?}");
        }
    }
}

#[test]
fn the_region_around_a_region_is_recorded() {
    let traced = trace(program(), "");
    let parents: Vec<String> = dump(&traced.file())
        .into_iter()
        .filter(|event| event["event"] == "omptrace_parent_region")
        .map(|event| format!("{} in {}", event["parallel_data"], event["parent_parallel_data"]))
        .collect();
    assert_eq!(parents, [r#""0x5" in "0x0""#, r#""0x6" in "0x5""#]);
}

#[test]
fn runtimes_that_write_no_error_codes_are_traced_all_the_same() {
    for deviations in ["writes-no-error-code-of-ids", "writes-no-error-code"] {
        let traced = trace(program(), deviations);
        assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
        check_threads(&traced.report.rounds[0], tracer::dump(&traced.file()));
    }
    let traced = trace(program(), "writes-no-error-code");
    let callbacks = traced.callbacks();
    assert!(callbacks["no error code"].as_array().is_some_and(|names| names.len() >= 22));
}

/// Asserts that what comes while the tracer asks for something is counted, and left out.
fn check_what_comes_of_asking(deviations: &str) {
    let traced = trace(program(), deviations);
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
    check_threads(&traced.report.rounds[0], tracer::dump(&traced.file()));
    let words = traced.words();
    assert!(words.contains("while the tracer queried"), "{words}");
}

#[test]
fn what_comes_of_asking_is_not_the_programs() {
    check_what_comes_of_asking("calls-back-from-requests");
}

/// The header: the first notification may come before REGISTER returns.
#[test]
fn events_may_come_while_the_tracer_registers() {
    check_what_comes_of_asking("calls-back-from-requests,ignores-pause");
}

/// Like [`check_threads`], but for one of the arguments.
fn check_without(round: &PlayedRound, mut recorded: BTreeMap<i32, Vec<Line>>, argument: &str) {
    let mut round = round.clone();
    let played = round.threads.iter_mut().map(|thread| &mut thread.played);
    for line in played.chain(recorded.values_mut()).flatten() {
        line.remove(argument);
    }
    check_threads(&round, recorded);
}

#[test]
fn what_a_runtime_does_not_answer_is_counted() {
    let traced = trace(program(), "needs-more-room");
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "");
    let round = &traced.report.rounds[0];
    check_without(round, tracer::dump(&traced.file()), "wait_id");
    assert_eq!(traced.states(), [""; 0]);
    let events: usize = round.threads.iter().map(|thread| thread.played.len()).sum();
    let message = format!("{events} times, the runtime did not report the thread's state");
    let words = traced.words();
    assert!(words.contains(&message), "{words}");

    // What all others answer, but for the regions around regions, is no reason for words.
    let traced = trace(program(), "");
    let words = traced.words();
    assert!(!words.contains("did not report"), "{words}");
}

/// On a thread that the runtime does not know, it answers THREAD_ERR.
#[test]
fn a_region_forked_on_a_foreign_thread_has_no_region_around() {
    let traced = trace(
        vec![vec![
            event(OMP_EVENT_FORK, THR_OVHD_STATE, REGION, None),
            event(OMP_EVENT_JOIN, THR_SERIAL_STATE, 0, None),
        ]],
        "",
    );
    check_threads(&traced.report.rounds[0], tracer::dump(&traced.file()));
    let parents: Vec<Value> = dump(&traced.file())
        .into_iter()
        .filter(|event| event["event"] == "omptrace_parent_region")
        .map(|event| event["parent_parallel_data"].clone())
        .collect();
    assert_eq!(parents, [Value::Null]);
}

#[test]
fn a_runtime_that_does_not_start_may_have_another_interface() {
    let traced = trace(program(), "refuses-start");
    let words = String::from_utf8_lossy(&traced.output.stderr);
    assert_eq!(words.lines().count(), 1, "{words}");
    assert!(words.contains("SEQUENCE_ERR"), "{words}");
    assert_eq!(info(&traced.file())["runtime"]["dialect"], "5.x");
    let played = &traced.report.rounds[0].threads;
    assert!(played.iter().all(|thread| thread.played.is_empty()));
}

#[test]
fn a_tool_that_a_runtime_loads_does_not_look_for_another() {
    let traced = tracer::trace(&Script { rounds: vec![Round::default()], ..Script::default() });
    let runtime = info(&traced.file("t.omptrace"))["runtime"].clone();
    assert_eq!(runtime["dialect"], "5.x");
}

/// A list of requests, aligned as pointers are.
#[repr(C, align(8))]
struct List([u32; 32]);

const UNWRITTEN: i32 = -7;

/// The header of a request with this many bytes of `mem`.
fn header(request: OMP_COLLECTORAPI_REQUEST, mem_bytes: i32) -> [u32; 4] {
    [16 + mem_bytes, request.0 as i32, UNWRITTEN, 0].map(|word| word as u32)
}

/// Makes the requests of a list that begins this many words behind its start.
fn make(list: &mut List, start: usize) -> i32 {
    let list = list.0[start..].as_mut_ptr();
    // SAFETY: a list of requests with zeros behind it, aligned for its words.
    unsafe { ompt_reference_runtime::collector::__omp_collector_api(list.cast()) }
}

/// Makes one request of this many bytes of `mem` in this process: what the API returned, the error code, and the size.
fn ask(request: OMP_COLLECTORAPI_REQUEST, mem_bytes: i32, event: u32) -> (i32, i32, i32) {
    let mut list = List([0; 32]);
    list.0[..4].copy_from_slice(&header(request, mem_bytes));
    list.0[4] = event;
    let returned = make(&mut list, 0);
    (returned, list.0[2] as i32, list.0[3] as i32)
}

/// The check itself is checked: each error code of the header comes where the header says.
#[test]
fn the_reference_runtime_answers_by_the_header() {
    let code = |code: OMP_COLLECTORAPI_EC| code.0 as i32;
    let answers = |code: OMP_COLLECTORAPI_EC, size| (0, code.0 as i32, size);
    assert_eq!(ask(OMP_REQ_STATE, 16, 0), answers(OMP_ERRCODE_SEQUENCE_ERR, 0));
    assert_eq!(ask(OMP_REQ_START, 0, 0), answers(OMP_ERRCODE_OK, 0));
    assert_eq!(ask(OMP_REQ_START, 0, 0), answers(OMP_ERRCODE_SEQUENCE_ERR, 0));
    assert_eq!(ask(OMP_COLLECTORAPI_REQUEST(9), 0, 0), answers(OMP_ERRCODE_UNKNOWN, 0));
    assert_eq!(ask(OMP_REQ_REGISTER, 16, 23), answers(OMP_ERRCODE_UNKNOWN, 0));
    assert_eq!(ask(OMP_REQ_REGISTER, 4, 1), answers(OMP_ERRCODE_MEM_TOO_SMALL, 12));
    assert_eq!(ask(OMP_REQ_UNREGISTER, 4, 1), answers(OMP_ERRCODE_OK, 0));
    assert_eq!(ask(OMP_REQ_STATE, 4, 0), answers(OMP_ERRCODE_OK, 4));
    assert_eq!(ask(OMP_REQ_CURRENT_PRID, 4, 0), answers(OMP_ERRCODE_MEM_TOO_SMALL, 8));
    assert_eq!(ask(OMP_REQ_PARENT_PRID, 8, 0).1, code(OMP_ERRCODE_THREAD_ERR));
    // A size that is no multiple of 4, or less than the header: the rest is ignored.
    assert_eq!(ask(OMP_REQ_PAUSE, 2, 0).0, -1);
    assert_eq!(ask(OMP_REQ_PAUSE, -8, 0).0, -1);
    assert_eq!(ask(OMP_REQ_PAUSE, 0, 0), answers(OMP_ERRCODE_OK, 0));
    // An id lies where a pointer may.
    let mut list = List([0; 32]);
    list.0[1..5].copy_from_slice(&header(OMP_REQ_CURRENT_PRID, 8));
    assert_eq!(make(&mut list, 1), 0);
    assert_eq!(list.0[3] as i32, code(OMP_ERRCODE_ERROR));
    // Requests in one list are answered one after the other, up to one that cannot be read.
    let mut list = List([0; 32]);
    list.0[..4].copy_from_slice(&header(OMP_REQ_STATE, 8));
    list.0[6..10].copy_from_slice(&header(OMP_REQ_CURRENT_PRID, 8));
    list.0[12..16].copy_from_slice(&header(OMP_REQ_STATE, 2));
    list.0[18..22].copy_from_slice(&header(OMP_REQ_STATE, 8));
    assert_eq!(make(&mut list, 0), -1);
    let codes = [2, 8, 14, 20].map(|place| list.0[place] as i32);
    let ok = code(OMP_ERRCODE_OK);
    assert_eq!(codes, [ok, ok, UNWRITTEN, UNWRITTEN]);
    assert_eq!(ask(OMP_REQ_STOP, 0, 0), answers(OMP_ERRCODE_OK, 0));
    assert_eq!(ask(OMP_REQ_RESUME, 0, 0), answers(OMP_ERRCODE_SEQUENCE_ERR, 0));
    assert_eq!(ask(OMP_REQ_START, 0, 0), answers(OMP_ERRCODE_OK, 0));
}
