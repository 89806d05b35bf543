//! The main promise: a trace holds exactly the callbacks that an independent tool counts in the same environment, on
//! each runtime.
//!
//! Whether a dependence is resolved at once, which thread runs a task, and how often a thread is idle, depends on
//! luck. So those callbacks need not come equally often in two runs; all others must.

use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{
    Compiler, OPENMP_45, RUNTIMES, RUNTIMES_OF_TR6, compile, count_tool, further_runtimes, runtime,
};
use omptrace_tests::trace::{Counts, Traces, counts, dump, info, omptrace};
use serde_json::Value;
use tempfile::TempDir;

/// Callbacks that depend on timing.
const LUCK: &[&str] = &["task_dependence", "task_schedule", "cancel", "dispatch", "idle/begin", "idle/end"];

/// Those of programs with nested regions: how many threads the inner teams need depends on how many of them there are at once.
const LUCK_OF_NESTED: &[&str] = &["thread_begin", "thread_end"];

/// The counts of the counting tool, and the output of the program.
fn counted(command: &mut Command) -> (Counts, String) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let file = folder.path().join("counts.json");
    let output = command
        .env("OMP_TOOL_LIBRARIES", count_tool())
        .env("COUNT_OUT", &file)
        .output()
        .expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    let counts = fs::read(&file).expect("the tool was loaded");
    let counts = serde_json::from_slice(&counts).expect("the tool writes JSON");
    (counts, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs the program that `command` makes under both tools.
#[track_caller]
fn check(what: &str, command: impl Fn() -> Command) {
    let (mut expected, printed) = counted(&mut command());
    let traces = Traces::folder();
    assert_eq!(traces.record(&mut command()), printed, "{what}: output");
    let mut found = counts(&dump(&traces.only()));
    let luck_of_nested = if what.contains("nested.c") {
        assert_eq!(found["thread_begin"], found["thread_end"], "{what}");
        LUCK_OF_NESTED
    } else {
        &[]
    };
    for name in LUCK.iter().chain(luck_of_nested) {
        expected.remove(*name);
        found.remove(*name);
    }
    assert!(expected.len() > 4, "{what}: {expected:?}");
    assert_eq!(found, expected, "{what}");
}

/// The programs, with arguments that end their luck as far as possible.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("tests/programs/nearly_everything.c", &["2", "20"]),
    ("tests/programs/tasks.c", &["2", "8"]),
    ("tests/programs/locks.c", &["2", "200"]),
    ("tests/programs/nested.c", &["2", "2", "10"]),
];

#[test]
fn on_every_runtime() {
    for name in RUNTIMES {
        for (source, arguments) in PROGRAMS {
            let program = compile(source, Compiler::Clang14, &[]);
            check(&format!("{source} on {name}"), || {
                let mut command = Command::new(&program);
                command
                    .args(*arguments)
                    .env("LD_LIBRARY_PATH", runtime(name))
                    .env("OMP_CANCELLATION", "true");
                command
            });
        }
    }
}

#[test]
fn on_every_runtime_that_speaks_tr6() {
    for name in RUNTIMES_OF_TR6 {
        for (source, arguments) in PROGRAMS {
            let program = compile(source, Compiler::Clang14, &[OPENMP_45]);
            check(&format!("{source} on {name}"), || {
                let mut command = Command::new(&program);
                command
                    .args(*arguments)
                    .env("LD_LIBRARY_PATH", runtime(name))
                    // For these, `omp_set_max_active_levels` is not enough.
                    .env("OMP_NESTED", "true")
                    .env("OMP_CANCELLATION", "true");
                command
            });
        }
    }
}

#[test]
fn on_further_runtimes() {
    for runtime in further_runtimes() {
        if runtime.dialect.is_none() {
            // The message to the user is tested beside `record`.
            continue;
        }
        for (source, arguments) in PROGRAMS {
            for compiler in [Compiler::Clang14, Compiler::Gcc] {
                let command = || runtime.program(source, compiler, &[], arguments);
                if command().is_some() {
                    let what = format!("{source} of {compiler:?} on {}", runtime.name);
                    check(&what, || command().expect("it is for this runtime"));
                }
            }
        }
    }
}

#[test]
fn of_code_by_the_newest_compiler() {
    for (source, arguments) in PROGRAMS {
        let program = compile(source, Compiler::Clang22, &[]);
        check(source, || {
            let mut command = Command::new(&program);
            command.args(*arguments);
            command
        });
    }
}

#[test]
fn of_code_by_gcc_on_the_runtime_of_llvm() {
    for name in ["llvm-14", "llvm-19", "intel-2026"] {
        for (source, arguments) in PROGRAMS {
            let program = compile(source, Compiler::Gcc, &[]);
            check(&format!("{source} by gcc on {name}"), || {
                let mut command = Command::new(&program);
                command.args(*arguments).env("LD_PRELOAD", runtime(name).join("libomp.so.5"));
                command
            });
        }
    }
}

#[test]
fn of_target_regions() {
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/target.c", Compiler::Clang22, &flags);
    check("target.c", || Command::new(&program));
}

#[test]
fn of_states_where_they_are_asked_for() {
    let runs = [("llvm-19", "5.x"), ("intel-2026", "5.x"), ("intel-2018", "TR6")];
    for (name, dialect) in runs {
        let program = compile("tests/programs/locks.c", Compiler::Clang14, &[OPENMP_45]);
        let traces = Traces::folder();
        traces.record(
            Command::new(&program)
                .args(["2", "50"])
                .env("LD_LIBRARY_PATH", runtime(name))
                .env("OMPTRACE_EVENTS", "default,state"),
        );
        let events = dump(&traces.only());
        let counts = counts(&events);
        let reported = ["implicit_task/begin", "implicit_task/end", "mutex_acquire", "mutex_acquired"];
        let expected: u64 = reported.iter().map(|name| counts[*name]).sum();
        let states: Vec<_> =
            events.iter().filter(|event| event["event"] == "omptrace_thread_state").collect();
        assert_eq!(states.len() as u64, expected, "{name}");
        // These runtimes do not say that a thread waits for a mutex; but they have a word for all that they say.
        let has_name = |state: &str| states.iter().any(|event| event["state"] == state);
        assert!(has_name("work_parallel"), "{name}: {:?}", states.last());
        let is_number = |event: &&Value| event["state"].as_str().is_none_or(|text| text.starts_with("0x"));
        assert_eq!(states.into_iter().find(is_number), None, "{name}");

        let info = info(&traces.only());
        assert_eq!(info["runtime"]["dialect"], dialect);
        let enumerated = info["runtime"]["states"].as_object().expect("states");
        let word = enumerated["65"].as_str().expect("a name");
        assert!(word.ends_with("state_wait_lock"), "{name}: {word}");
        let check = omptrace([Path::new("check"), &traces.only()]);
        assert!(check.status.success(), "{name}: {check:?}");
    }
}

#[test]
fn of_flush_where_it_is_asked_for() {
    let program = compile("tests/programs/nearly_everything.c", Compiler::Clang22, &[]);
    let command = || {
        let mut command = Command::new(&program);
        command.env("COUNT_FLUSH", "1").env("OMPTRACE_EVENTS", "all");
        command
    };
    check("flush", command);
    let traces = Traces::folder();
    traces.record(&mut command());
    assert!(counts(&dump(&traces.only()))["flush"] > 0);
}
