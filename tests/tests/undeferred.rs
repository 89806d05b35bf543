//! Undeferred tasks and taskwaits with dependences: programs that die with a tool that is not careful live, traced.

use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, omptrace_program, program_on, runtime};
use omptrace_tests::trace::{Traces, count, dump, info, omptrace};
use serde_json::Value;

/// The runtimes that report the task of a taskwait, and abort if a tool wrote to it.
const RUNTIMES: &[&str] = &[
    "llvm-13",
    "llvm-14",
    "llvm-15",
    "llvm-16",
    "llvm-19",
    "llvm-21",
    "intel-2021",
    "intel-2023",
    "intel-2026",
];
/// Ways of `undeferred_tasks.c`, what it prints, and how many tasks wait for dependences.
const WAYS: &[(&str, &str, usize)] = &[
    ("recursion", "checksum 144\n", 0),
    ("nested", "checksum 5\n", 5),
    ("regions", "checksum 9\n", 9),
    ("mutexinoutset", "checksum 40\n", 20),
];
/// The reason that is reported where dependences were taken back.
const WHY: &str = "not recorded, starting with the first undeferred task that has dependences";

fn run(traces: &Traces, command: &mut Command) -> Output {
    traces.trace(command).output().expect("it can be run")
}

fn lives(traces: &Traces, command: &mut Command, prints: &str) -> Vec<Value> {
    let output = run(traces, command);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), prints);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let trace = traces.only();
    let checked = omptrace(["check".as_ref(), trace.as_os_str()]);
    assert!(checked.status.success(), "{command:?}: {checked:?}");
    dump(&trace)
}

fn is_taskwait(event: &Value) -> bool {
    const TASKWAIT: u64 = 0x10;
    let flags = event["flags"].as_str().unwrap_or_default();
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16);
    event["event"] == "task_create" && flags.is_ok_and(|flags| flags & TASKWAIT != 0)
}

#[test]
fn a_task_that_waits_for_dependences_harms_nobody_and_is_recorded() {
    for name in RUNTIMES {
        for (how, prints, waits) in WAYS {
            let traces = Traces::folder();
            let mut command = program_on(name, "undeferred_tasks.c", &[how]);
            let events = lives(&traces, &mut command, prints);
            let ends = |event: &&Value| event["prior_task_status"] == "taskwait_complete";
            let begun = events.iter().filter(|event| is_taskwait(event)).count();
            let ended = events.iter().filter(ends).count();
            assert_eq!(begun, ended, "{name} {how}");
            assert!(*waits == 0 || begun == *waits, "{name} {how}: {begun}");
            assert!(begun > 0, "{name} {how}");
            let why = info(&traces.only())["withheld"]["dependences"].clone();
            assert!(why.to_string().contains(WHY), "{name} {how}: {why}");
        }
    }
}

/// Of the deferred tasks, which were created before.
#[test]
fn dependences_are_recorded_up_to_the_first_undeferred_task_and_beyond_for_who_names_them() {
    for name in RUNTIMES {
        let traces = Traces::folder();
        let mut command = program_on(name, "undeferred_tasks.c", &["mutexinoutset"]);
        let events = lives(&traces, &mut command, "checksum 40\n");
        assert_eq!(count(&events, "dependences"), 20, "{name}");

        // All of these are `in` or `out`, which the runtime can report.
        let traces = Traces::folder();
        let mut command = program_on(name, "undeferred_tasks.c", &["regions"]);
        command.env("OMPTRACE_EVENTS", "default,dependences");
        let events = lives(&traces, &mut command, "checksum 9\n");
        assert_eq!(count(&events, "dependences"), 18, "{name}");
        // LLVM's runtime is not asked for `error`.
        let withheld = info(&traces.only())["withheld"].clone();
        assert_eq!(withheld["dependences"], Value::Null, "{name}: {withheld}");
    }
}

#[test]
fn record_and_check_report_what_was_withheld() {
    let traces = Traces::folder();
    let mut program = program_on("llvm-19", "undeferred_tasks.c", &["nested"]);
    let output = Command::new(omptrace_program())
        .args(["record", "-o"])
        .arg(traces.path().join("%p.omptrace"))
        .arg("--")
        .arg(program.get_program())
        .arg("nested")
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .output()
        .expect("omptrace can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(words.matches(WHY).count(), 1, "{words}");
    let checked = omptrace(["check".as_ref(), traces.only().as_os_str()]);
    assert!(checked.status.success());
    let words = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(words.contains(&format!("note: dependences: {WHY}")), "{words}");

    // Nothing is missing, and nothing is said.
    let traces = Traces::folder();
    traces.record(program.env("OMPTRACE_EVENTS", "default,dependences"));
    let checked = omptrace(["check".as_ref(), traces.only().as_os_str()]);
    assert!(!String::from_utf8_lossy(&checked.stdout).contains(WHY));
}

/// The signal is all that can be seen from outside.
#[test]
fn record_says_how_to_find_out_who_killed_a_program() {
    for (how, signal) in [("abort", 6), ("segv", 11)] {
        let traces = Traces::folder();
        let program = program_on("llvm-19", "reliability_ends.c", &[how]);
        let output = Command::new(omptrace_program())
            .args(["record", "-o"])
            .arg(traces.path().join("%p.omptrace"))
            .arg("--")
            .arg(program.get_program())
            .arg(how)
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .output()
            .expect("omptrace can be run");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(&format!("was killed by signal {signal}")), "{how}: {words}");
        for hint in ["run the program without omptrace", "--events default,-dependences"] {
            assert!(words.contains(hint), "{how}: {words}");
        }
    }
}

#[test]
fn other_selections_of_events_are_as_harmless() {
    for events in ["task", "parallel,task", "default,-sync", "all,state", "implicit_task"] {
        for (how, prints, _) in WAYS {
            let traces = Traces::folder();
            let mut command = program_on("llvm-19", "undeferred_tasks.c", &[how]);
            lives(&traces, command.env("OMPTRACE_EVENTS", events), prints);
        }
    }
}

#[test]
fn a_set_of_a_newer_openmp_is_harmless_too() {
    let program = compile(
        "tests/programs/undeferred_tasks.c",
        Compiler::Clang22,
        &["-DINOUTSET", "-fopenmp-version=51"],
    );
    for _ in 0..3 {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        lives(&traces, command.arg("inoutset"), "checksum 40\n");
    }
}

/// The callback goes while other threads create tasks with dependences.
#[test]
fn dependences_are_taken_back_under_load() {
    for name in ["llvm-14", "llvm-21", "intel-2026"] {
        for _ in 0..10 {
            let traces = Traces::folder();
            let mut command = program_on(name, "undeferred_tasks.c", &["both"]);
            let events = lives(&traces, &mut command, "checksum 2001\n");
            let created = events
                .iter()
                .filter(|event| event["event"] == "task_create" && event["has_dependences"] == 1);
            assert_eq!(created.count(), 2001, "{name}");
        }
    }
}

/// In the barrier at the end of a region a worker's implicit task keeps its id, although the runtime finds none.
#[test]
fn a_worker_that_runs_tasks_at_the_end_of_its_region_keeps_its_implicit_task() {
    for name in RUNTIMES {
        let traces = Traces::folder();
        let mut command = program_on(name, "undeferred_tasks.c", &["recursion"]);
        for event in lives(&traces, &mut command, "checksum 144\n") {
            let is_unset = |argument: &str| event[argument] == "0x0";
            let task = match event["event"].as_str() {
                Some("task_schedule") if event["prior_task_status"] == "taskwait_complete" => false,
                Some("task_schedule") => is_unset("prior_task_data") || is_unset("next_task_data"),
                Some("sync_region" | "sync_region_wait" | "implicit_task") => is_unset("task_data"),
                _ => false,
            };
            assert!(!task, "{name}: {event}");
        }
    }
}
