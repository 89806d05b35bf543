//! Callbacks whose registration alone changes what a runtime does: constructs with all left out that may be.

use std::path::PathBuf;
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, RUNTIMES, compile, count_tool, libgomp_adapter, program_on, runtime, tool_library,
};
use omptrace_tests::trace::{Traces, count, dump, info, omptrace};

const SOURCE: &str = "tests/programs/bare_constructs.c";
const GCC: &str = "libgomp";

/// `bare_constructs.c` on a runtime, or on GCC's.
fn program(name: &str, how: &str) -> Command {
    let mut command = match name {
        GCC => Command::new(compile(SOURCE, Compiler::Gcc, &[])),
        _ => {
            let program = compile(SOURCE, Compiler::Clang14, &["-fopenmp-version=51"]);
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", runtime(name));
            command
        }
    };
    command.arg(how).env("OMP_CANCELLATION", "true");
    command
}

fn ran(command: &mut Command) -> Output {
    command.output().expect("it can be run")
}

/// Traces it with these events.
fn traced(traces: &Traces, name: &str, how: &str, events: &str) -> Output {
    let mut command = program(name, how);
    if name == GCC {
        command.env("LD_PRELOAD", libgomp_adapter());
    }
    command.env("OMPTRACE_EVENTS", events);
    ran(traces.trace(&mut command))
}

/// The names of all callbacks, as the tracer knows them.
fn callbacks() -> Vec<String> {
    let names = ompt_sys::ompt_callbacks_t::VALUES.iter();
    let names = names.map(|(name, _)| name.trim_start_matches("ompt_callback_").to_owned());
    // Old names of others, which no runtime has.
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 37, "{names:?}");
    names
}

#[test]
fn a_callback_alone_and_all_together_change_nothing_of_the_program() {
    let further = ["llvm-21", "intel-2023", GCC];
    for name in RUNTIMES.iter().copied().chain(further) {
        for how in ["all", "error"] {
            let alone = ran(&mut program(name, how));
            assert_eq!(alone.status.code(), Some(3), "{name} {how}: {alone:?}");
            let own = callbacks();
            let lists = ["default", "all"].into_iter();
            for events in lists.chain(own.iter().map(String::as_str)) {
                // Who asks for it by name gets what the runtime does then.
                if (how, events) == ("error", "error") {
                    continue;
                }
                let traces = Traces::folder();
                let output = traced(&traces, name, how, events);
                assert_eq!(output, alone, "{name} {how} {events}");
                traces.only();
            }
        }
    }
}

#[test]
fn errors_are_withheld_unless_they_are_asked_for_by_name() {
    for (events, is_withheld) in [("default", true), ("all", true), ("default,error", false)] {
        let traces = Traces::folder();
        traced(&traces, "llvm-19", "all", events);
        let trace = traces.only();
        let facts = info(&trace);
        let why = facts["withheld"]["error"].as_str().unwrap_or_default();
        assert_eq!(why.contains("without a message"), is_withheld, "{events}: {why}");
        // Most programs have none: it is no finding.
        let checked = omptrace(["check".as_ref(), trace.as_os_str()]);
        let words = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(!words.contains("without a message"), "{words}");
    }
    for name in ["intel-2026", GCC] {
        let traces = Traces::folder();
        traced(&traces, name, "all", "default");
        assert!(info(&traces.only())["withheld"]["error"].is_null(), "{name}");
    }
}

/// Where LLVM's runtime keeps the thread's number in a place that it empties before it reports the thread's end, it passes pointers
/// without a value.
#[test]
fn the_end_of_a_threads_initial_task_may_come_with_pointers_that_lead_anywhere() {
    let tools = [tool_library(), count_tool()].map(PathBuf::into_os_string);
    for runtime in RUNTIMES {
        // Until LLVM 16 the program dies of mode 1 alone.
        let has_mode_1 = ["llvm-19", "intel-2021", "intel-2026"].contains(runtime);
        let modes: &[&str] = if has_mode_1 { &["1", "2", "3"] } else { &["2", "3"] };
        for mode in modes {
            for behind in [false, true] {
                let traces = Traces::folder();
                let mut command = program_on(runtime, "foreign_pthreads.c", &["20", "2", "5"]);
                traces.trace(command.env("KMP_GTID_MODE", mode));
                if behind {
                    command.env("OMP_TOOL_LIBRARIES", tools.join(":".as_ref()));
                    command.env("COUNT_OUT", traces.path().join("counts"));
                }
                let output = command.output().expect("it can be run");
                assert!(output.status.success(), "{runtime} {mode} {behind}: {output:?}");
                let trace = traces.files().pop().expect("a trace");
                assert_eq!(count(&dump(&trace), "parallel_begin"), 105, "{runtime}");
                let checked = omptrace(["check".as_ref(), trace.as_os_str()]);
                assert!(checked.status.success(), "{runtime} {mode} {behind}: {checked:?}");
            }
        }
    }
}
