//! The reference runtime plays the callbacks of programs on real threads, under the tracer. What that records is what the model writes, in
//! the same order and with the same arguments. What `stats` counts is the same.
//!
//! `OMPTRACE_TEST_SEED` and `OMPTRACE_TEST_PROGRAMS` try other programs.

mod library;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use omptrace_model::callback::Callback;
use omptrace_model::case::Case;
use omptrace_model::checker::{Checker, write_trace};
use omptrace_model::play::script;
use omptrace_model::simulate::simulate;
use omptrace_model::write::{Dialect, Ending, Process, text};
use serde_json::Value;

use library::{built, number, omptrace};

/// Programs that are played unless the user says otherwise.
const PROGRAMS: u64 = 8;

/// Plays `script` under the tracer, which records to `trace`.
fn play(script: &Value, trace: &Path) {
    let player = built("--example=play", "omptrace-model", "examples/play");
    let tool = built("--lib", "omptrace-tracer", "libomptrace.so");
    let mut command = Command::new(player);
    for (name, _) in std::env::vars_os() {
        if ["OMP_", "OMPTRACE_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env("OMP_TOOL_LIBRARIES", tool).env("OMPTRACE_OUTPUT", trace).env("OMPTRACE_EVENTS", "all");
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the player can be run");
    let mut input = process.stdin.take().expect("a pipe");
    input.write_all(script.to_string().as_bytes()).expect("the player reads its script");
    drop(input);
    assert!(process.wait().expect("the player ends").success());
}

/// The events of each thread, without ids, times and what a tracer adds. Threads are in the order of their streams.
fn events(checker: &Checker, trace: &Path) -> Vec<Vec<String>> {
    let mut dump = Command::new(&checker.omptrace);
    let output = dump.args(["dump", "--json", "--all"]).arg(trace).output().expect("it runs");
    let mut streams: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let stream = line["stream"].as_u64().expect("a stream");
        let event = line["event"].as_str().unwrap_or_default();
        if event.starts_with("omptrace_") {
            continue;
        }
        let event = line.as_object_mut().expect("an object");
        event.retain(|name, value| {
            let is_known_id = !value.is_null() && (name.ends_with("_data") || name == "host_op_id");
            let is_frame = name.ends_with("_frame") || name.ends_with("_frame_flags");
            // That there is none is of interest.
            let is_left_out = ["thread_data", "stream", "time_ns", "schema", "instance", "address"]
                .contains(&name.as_str());
            !is_left_out && !is_known_id && !is_frame
        });
        streams.entry(stream).or_default().push(Value::Object(event.clone()).to_string());
    }
    // Threads begin at the same time: their streams have any order.
    let mut threads: Vec<Vec<String>> = streams.into_values().collect();
    threads.sort();
    threads
}

/// How often each construct was there, and tasks.
fn counts(shown: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |row: &Value, name: &str, field: &str| {
        *counts.entry(format!("{field} of {}", row[name].as_str().unwrap_or_default())).or_default() +=
            row[field].as_u64().unwrap_or(0);
    };
    for row in shown["constructs"].as_array().into_iter().flatten() {
        // How often a thread waited depends on time.
        if row["category"] != "wait" {
            add(row, "name", "count");
        }
    }
    for row in shown["regions"].as_array().into_iter().flatten() {
        add(row, "construct", "visits");
    }
    counts
}

#[test]
fn what_is_played_is_recorded_in_the_same_order() {
    let first = number("OMPTRACE_TEST_SEED").unwrap_or(1);
    let programs = number("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS).min(1000);
    println!("{programs} programs from OMPTRACE_TEST_SEED={first}");
    let folder = tempfile::tempdir().expect("a folder");
    let checker = Checker { omptrace: omptrace(), folder: folder.path().to_owned() };
    let (mut played, mut seed) = (0, first);
    while played < programs {
        // Programs of all families and sizes.
        let case = Case::new(seed);
        seed += 85;
        let Some(run) = simulate(&case.program, &case.machine).filter(|run| run.end > 0) else {
            continue;
        };
        // MPI calls are not the runtime's.
        let mut run = run;
        run.callbacks.retain(|(.., callback)| !matches!(callback, Callback::Call { .. }));
        let process = Process { pid: 10, start: 0, run: &run, ending: Ending::Complete };
        let traces = ["written", "played"].map(|name| folder.path().join(format!("{name}.omptrace")));
        write_trace(&text(&process, Dialect::Llvm), &traces[0]).expect("a writable folder");
        play(&script(&run), &traces[1]);
        let [written, recorded] = [&traces[0], &traces[1]].map(|trace| events(&checker, trace));
        assert_eq!(written.len(), recorded.len(), "threads\n{case}");
        for (written, recorded) in written.iter().zip(&recorded) {
            let differs = written.iter().zip(recorded).position(|(one, other)| one != other);
            let at = |events: &[String]| differs.and_then(|index| events.get(index).cloned());
            assert!(
                written == recorded,
                "{} events written, {} recorded; written {:?}, recorded {:?}\n{case}",
                written.len(),
                recorded.len(),
                at(written),
                at(recorded)
            );
        }
        let [written, recorded] =
            [&traces[0], &traces[1]].map(|trace| counts(&checker.stats(&[trace], &[]).expect("an answer")));
        assert_eq!(written, recorded, "{case}");
        std::fs::remove_file(&traces[1]).expect("the trace is there");
        played += 1;
    }
}
