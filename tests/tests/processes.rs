//! Processes that fork, exec, exit in the wrong place, end the runtime and start it again. Each process's trace is
//! exact, and traces of others are not touched.

use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, RUNTIMES_OF_TR6, compile, limited, program_on, runtime, tool_library};
use omptrace_tests::trace::{Traces, count, counts, dump, info, omptrace};
use serde_json::Value;

/// How the session of a trace ended, as `info` says.
fn ending(trace: &Path) -> Value {
    info(trace)["ending"].clone()
}

/// Parallel regions begun and ended in each trace.
fn regions(traces: &Traces) -> Vec<(usize, usize)> {
    let of = |events: Vec<Value>| (count(&events, "parallel_begin"), count(&events, "parallel_end"));
    traces.files().iter().map(|trace| of(dump(trace))).collect()
}

/// Runtimes that announce threads inside fork (19, 2026), and that do not (14, 2021).
const RUNTIMES: &[&str] = &["llvm-14", "llvm-19", "intel-2021", "intel-2026"];

#[test]
fn a_child_by_system_leaves_one_trace() {
    for name in RUNTIMES.iter().chain(RUNTIMES_OF_TR6) {
        let traces = Traces::folder();
        traces.record(&mut program_on(name, "fork_system.c", &["2"]));
        traces.only();
        assert_eq!(regions(&traces), [(2, 2)], "{name}");
    }
}

#[test]
fn children_that_only_exit_leave_no_trace_and_do_no_harm() {
    for name in RUNTIMES.iter().chain(RUNTIMES_OF_TR6) {
        for events in ["default", "default,state"] {
            let traces = Traces::folder();
            let mut program = program_on(name, "fork_exit.c", &["2", "3"]);
            traces.record(program.env("OMPTRACE_EVENTS", events));
            traces.only();
            assert_eq!(regions(&traces), [(4, 4)], "{name}, {events}");
        }
    }
}

#[test]
fn a_child_that_uses_openmp_has_a_trace_of_its_own() {
    for name in RUNTIMES.iter().chain(RUNTIMES_OF_TR6) {
        let traces = Traces::folder();
        traces.record(&mut program_on(name, "fork_openmp.c", &["2", "500"]));
        assert_eq!(traces.all_files().len(), 2, "{name}: {:?}", traces.all_files());
        let mut regions = regions(&traces);
        regions.sort_unstable();
        assert_eq!(regions, [(500, 500), (1000, 1000)], "{name}");
        for trace in traces.files() {
            let checked = omptrace([Path::new("check"), &trace]);
            let words = String::from_utf8_lossy(&checked.stdout);
            assert!(!words.contains("earlier timestamp than the previous event"), "{name}: {words}");
        }
    }
}

#[test]
fn a_fork_before_openmp_gives_two_traces() {
    for name in RUNTIMES.iter().chain(RUNTIMES_OF_TR6) {
        let traces = Traces::folder();
        traces.record(&mut program_on(name, "fork_first.c", &["2"]));
        assert_eq!(regions(&traces), [(1, 1), (1, 1)], "{name}");
    }
}

#[test]
fn exit_inside_a_region_completes_the_file() {
    for name in RUNTIMES {
        let traces = Traces::folder();
        let mut command = program_on(name, "exit_in_parallel.c", &["2", "7"]);
        let output = traces.trace(&mut command).output().expect("runs");
        assert_eq!(output.status.code(), Some(7), "{name}");
        traces.only();
        assert_eq!(regions(&traces), [(2, 1)], "{name}");
    }
}

/// The loader runs a preloaded tracer's destructor before that of the runtime, which then says how its threads end.
#[test]
fn a_preloaded_tracer_records_the_runtimes_end() {
    for name in RUNTIMES {
        let ends = |preloaded: bool| {
            let traces = Traces::folder();
            let mut command = program_on(name, "locks.c", &["3", "10"]);
            traces.trace(&mut command);
            if preloaded {
                command.env_remove("OMP_TOOL_LIBRARIES").env("LD_PRELOAD", tool_library());
            }
            let output = command.output().expect("it can be run");
            assert!(output.status.success(), "{name}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
            let trace = traces.only();
            assert_eq!(traces.all_files().len(), 1, "{name}: no spool is left");
            assert_eq!(ending(&trace), "ended", "{name}");
            counts(&dump(&trace))
        };
        assert_eq!(ends(true), ends(false), "{name}");
        assert_eq!(ends(true)["thread_end"], 3, "{name}");
    }
}

/// Where the runtime does not come any more, what the threads were writing is in the spool, and `record` takes it in.
#[test]
fn a_preloaded_session_of_a_program_that_exits_in_a_region_is_complete() {
    for name in RUNTIMES {
        let traces = Traces::folder();
        let mut program = program_on(name, "exit_in_parallel.c", &["2", "7"]);
        let output = traces
            .trace(&mut program)
            .env_remove("OMP_TOOL_LIBRARIES")
            .env("LD_PRELOAD", tool_library())
            .output()
            .expect("it can be run");
        assert_eq!(output.status.code(), Some(7), "{name}");
        assert_eq!(regions(&traces), [(2, 1)], "{name}");
        let trace = traces.files().remove(0);
        let ended = "ended by exit(), but the runtime did not call the tracer's finalize function";
        assert_eq!(ending(&trace), ended, "{name}");
        let sealed = omptrace([Path::new("recover"), &trace]);
        assert!(sealed.status.success(), "{name}: {sealed:?}");
        assert_eq!(traces.only(), trace, "{name}");
        assert_eq!(regions(&traces), [(2, 1)], "{name}");
        assert_eq!(ending(&trace), ended, "{name}");
    }
}

#[test]
fn exec_keeps_the_process_id_and_overwrites_nothing() {
    let traces = Traces::folder();
    traces.record(&mut program_on("llvm-19", "exec_self.c", &["2", "3"]));
    assert_eq!(regions(&traces), [(1, 1); 3]);
    let names: Vec<String> = traces
        .files()
        .iter()
        .map(|path| path.file_name().expect("a file").to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().any(|name| name.ends_with(".3.omptrace")), "{names:?}");
}

#[test]
fn foreign_threads_are_initial_threads() {
    for name in RUNTIMES {
        let traces = Traces::folder();
        traces.record(&mut program_on(name, "foreign_pthreads.c", &["3", "2", "5"]));
        let events = dump(&traces.only());
        let initial = events
            .iter()
            .filter(|event| event["event"] == "thread_begin" && event["thread_type"] == "initial");
        assert_eq!(initial.count(), 3 + 2, "{name}");
    }
}

#[test]
fn a_hard_pause_ends_the_session_and_the_program_goes_on() {
    let traces = Traces::folder();
    traces.record(&mut program_on("llvm-19", "pause_resource.c", &["2", "hard"]));
    assert_eq!(regions(&traces), [(1, 1)]);
    assert_eq!(ending(&traces.only()), "ended");
}

#[test]
fn a_runtime_that_is_loaded_twice_gives_two_sessions() {
    let library = compile("tests/programs/openmp_library.c", Compiler::Clang14, &["-shared", "-fPIC"]);
    let program = compile("tests/programs/dlclose.c", Compiler::Gcc, &["-fno-openmp"]);
    for (name, expected) in [("llvm-19", &[(2, 2)][..]), ("intel-2026", &[(1, 1), (1, 1)])] {
        let traces = Traces::folder();
        traces.record(Command::new(&program).arg(&library).env("LD_LIBRARY_PATH", runtime(name)));
        assert_eq!(regions(&traces), expected, "{name}");
    }
}

#[test]
fn a_runtime_that_is_loaded_again_and_again_costs_no_descriptors() {
    let library = compile("tests/programs/openmp_library.c", Compiler::Clang14, &["-shared", "-fPIC"]);
    let traces = Traces::folder();
    let mut command = Command::new(compile("tests/programs/dlclose.c", Compiler::Gcc, &["-fno-openmp"]));
    command.arg(&library).args(["2", "30"]).env("LD_LIBRARY_PATH", runtime("intel-2026"));
    limited(&mut command, libc::RLIMIT_NOFILE, 40);
    traces.record(&mut command);
    assert_eq!(regions(&traces), [(1, 1); 30]);
}

/// glibc closes the runtime under the loader's lock, which a thread that begins wants, too.
#[test]
fn a_thread_of_ours_that_has_not_begun_is_not_waited_for() {
    let shared = ["-shared", "-fPIC"];
    let library = compile("tests/programs/openmp_library.c", Compiler::Clang14, &shared);
    let late = compile("tests/programs/reliability_late_thread.c", Compiler::Gcc, &shared);
    let program = compile("tests/programs/dlclose.c", Compiler::Gcc, &["-fno-openmp"]);
    // What waits for the signal; or the writer, which follows the runtime's second thread.
    for (mode, late_one) in [("flight", "1"), ("record", "2")] {
        let traces = Traces::folder();
        traces.record(
            Command::new("timeout")
                .arg("60")
                .arg(&program)
                .arg(&library)
                .env("LD_PRELOAD", &late)
                .env("OMPTRACE_TEST_LATE", late_one)
                .env("LD_LIBRARY_PATH", runtime("intel-2026"))
                .env("OMPTRACE_MODE", mode)
                .env("OMPTRACE_FLUSH_ON", "SIGUSR2"),
        );
        assert_eq!(regions(&traces), [(1, 1), (1, 1)], "{mode}");
    }
}

#[test]
fn the_program_controls_recording() {
    let traces = Traces::folder();
    traces.record(&mut program_on("llvm-19", "control_tool.c", &["2", "10"]));
    let events = dump(&traces.only());
    let calls: Vec<(u64, &Value)> = events
        .iter()
        .filter(|event| event["event"] == "control_tool")
        .map(|event| (event["command"].as_u64().expect("a number"), &event["text"]))
        .collect();
    let commands: Vec<u64> = calls.iter().map(|(command, _)| *command).collect();
    assert_eq!(commands, [2, 1, 64, 65, 100, 3, 4]);
    assert_eq!(calls[2].1, "solve");
    assert_eq!(calls[3].1, "solve");
    let changes: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "omptrace_monitoring")
        .filter_map(|event| event["change"].as_str())
        .collect();
    assert_eq!(changes, ["begin", "pause", "resume", "flush", "end"]);
}

#[test]
fn ids_are_unique_within_a_process() {
    let traces = Traces::folder();
    traces.record(&mut program_on("llvm-19", "control_tool.c", &["2", "50"]));
    traces.record(&mut program_on("llvm-19", "tasks.c", &["2", "12"]));
    for trace in traces.files() {
        let events = dump(&trace);
        let created = |name: &str, argument: &str| -> Vec<String> {
            events
                .iter()
                .filter(|event| event["event"] == name && event["endpoint"] != "end")
                .map(|event| event[argument].as_str().expect("an id").to_owned())
                .collect()
        };
        let mut ids = created("parallel_begin", "parallel_data");
        ids.extend(created("implicit_task", "task_data"));
        ids.extend(created("task_create", "new_task_data"));
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert!(all > 100);
    }
}
