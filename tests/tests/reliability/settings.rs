//! Settings that keep less: callbacks left out, and the flight recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use omptrace_tests::env::omptrace_program;
use omptrace_tests::trace::{Traces, count, dump, info};
use serde_json::Value;

use crate::{ROUNDS, THREADS, all_regions, number, program, regions, run};

#[test]
fn a_callback_that_is_left_out_is_not_registered() {
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["none"]);
    command.env("OMPTRACE_EVENTS", "mutex,-mutex_acquire,-lock_init,work");
    run(&traces, &mut command);
    let trace = traces.only();
    let callbacks = info(&trace)["callbacks"].to_string();
    for (name, is_wanted) in [
        ("mutex_acquired", true),
        ("work", true),
        // A stream's begin and end.
        ("thread_begin", true),
        ("mutex_acquire", false),
        ("lock_init", false),
        ("parallel_begin", false),
    ] {
        assert_eq!(callbacks.contains(&format!("\"{name}\"")), is_wanted, "{name} in {callbacks}");
    }
    assert_eq!(regions(&dump(&trace)), [0, 0, THREADS * ROUNDS]);
}

/// A program that runs until it is killed, or ends by itself after a million regions.
fn in_flight(arguments: &[&str]) -> Command {
    let mut command = program("reliability_ends.c", arguments);
    command.env("OMPTRACE_MODE", "flight").env("OMPTRACE_BUFFER", "512K");
    command
}

/// The parallel regions of the newest events, which must be the last of `all` without a gap; how many they are.
#[track_caller]
fn newest(trace: &Path) -> usize {
    let events = dump(trace);
    let ids = |name: &str| -> Vec<String> {
        let of = |event: &&Value| event["event"] == name && event["stream"] == 1;
        let id = |event: &Value| event["parallel_data"].as_str().expect("an id").to_owned();
        events.iter().filter(of).map(id).collect()
    };
    let (begun, ended) = (ids("parallel_begin"), ids("parallel_end"));
    // The first region that is there as a whole may follow the end of one that is not.
    let from = ended.iter().position(|id| *id == begun[0]).expect("an end");
    assert!(from <= 1);
    assert!(begun.starts_with(&ended[from..]) || ended[from..].starts_with(&begun));
    begun.len()
}

#[test]
fn a_flight_recorder_keeps_the_newest_events_within_its_memory() {
    for end in ["none", "_exit", "abort"] {
        let traces = Traces::folder();
        run(&traces, &mut in_flight(&[end, "2", "100000"]));
        let trace = traces.files().remove(0);
        let kept = newest(&trace);
        assert!((1000..50_000).contains(&kept), "{end}: {kept}");
        let mut check = Command::new(omptrace_program());
        let check = check.arg("check").arg(&trace).output().expect("it can be run");
        let printed = String::from_utf8_lossy(&check.stdout);
        assert!(printed.contains("overwritten"), "{printed}");
        assert!(!printed.contains("missing"), "{printed}");
        // Both threads kept what began before: only a program that did not come to its end has something to warn of.
        assert_eq!(printed.contains(": sound"), end == "none", "{end}: {printed}");
        assert!(!printed.contains("warning: ends of constructs"), "{printed}");
        assert!(!printed.contains("warning: implicit tasks belong"), "{printed}");
    }
}

#[test]
fn a_flight_recorder_writes_what_it_keeps_when_asked_by_the_program() {
    const REGIONS: usize = 50_000;
    let traces = Traces::folder();
    // Each time enough regions that their events do not fit: before the flush, and after it.
    traces.record(
        program("control_tool.c", &["2", &REGIONS.to_string()])
            .env("OMPTRACE_MODE", "flight")
            .env("OMPTRACE_BUFFER", "512K"),
    );
    let events = dump(&traces.only());
    let is_command =
        |event: &Value, command: u64| event["event"] == "control_tool" && event["command"] == command;
    let flush = events.iter().position(|event| is_command(event, 3));
    let (before, after) = events.split_at(flush.expect("the flush's own event is in the file"));
    for events in [before, after] {
        let begun = count(events, "parallel_begin");
        assert!((1000..REGIONS).contains(&begun), "{begun}");
    }
    assert!(after.iter().any(|event| is_command(event, 4)), "the newest event");
}

/// Whether the process has a handler for the signal.
fn catches(pid: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[test]
fn a_flight_recorder_writes_what_it_keeps_when_asked_by_signal() {
    let traces = Traces::folder();
    let mut command = in_flight(&["none", "2", "100000000"]);
    command.env("OMPTRACE_FLUSH_ON", "SIGUSR2");
    let mut child = traces.trace(&mut command).spawn().expect("it can be run");
    let pid = child.id() as i32;
    let written = || {
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        traces.files().iter().map(size).sum::<u64>()
    };
    let mut still_runs = || child.try_wait().expect("it is ours").is_none();
    while !catches(pid, libc::SIGUSR2) {
        assert!(still_runs());
        std::thread::sleep(Duration::from_millis(5));
    }
    // On a busy machine, little may have been kept when it is asked for the first time.
    let before = written();
    while written() < before + (256 << 10) {
        assert!(still_runs());
        // SAFETY: a plain system call; the child was not waited for yet.
        unsafe { libc::kill(pid, libc::SIGUSR2) };
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(count(&dump(&traces.files()[0]), "parallel_begin") > 1000);
}

/// A child has no thread that waits for the signal until it has a trace of its own. The program's own handling of the
/// signal stays.
#[test]
fn a_signal_that_a_flight_recorder_waits_for_is_given_back() {
    for (way, handled, traced) in [("child", 0, 2), ("own", 1, 1)] {
        let traces = Traces::folder();
        let mut command = program("flush_signal.c", &[way]);
        command.env("OMPTRACE_MODE", "flight").env("OMPTRACE_FLUSH_ON", "SIGUSR2");
        let said = traces.record(&mut command);
        assert_eq!(number(&said, "handled"), handled, "{way}");
        assert_eq!(all_regions(&traces), vec![[1, 1, 0]; traced], "{way}");
    }
}
