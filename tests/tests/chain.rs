//! Two OMPT tools at once: a second tool sees behind the tracer what it sees alone, and the trace is whole.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, RUNTIMES, archer, compile, conformance_tool, count_tool, libgomp_adapter, program_on,
    tool_library,
};
use omptrace_tests::trace::{Counts, Traces, counts, dump};
use tempfile::TempDir;

const PROGRAMS: &[(&str, &[&str])] = &[
    ("nearly_everything.c", &["2", "20"]),
    ("tasks.c", &["2", "8"]),
    ("locks.c", &["2", "200"]),
    ("nested.c", &["2", "2", "10"]),
];

fn ended_well(command: &mut Command) -> Output {
    let output = command.env("OMP_CANCELLATION", "true").output().expect("the program can be run");
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// The value of `OMP_TOOL_LIBRARIES` for the tracer and `tool` behind it.
fn behind_the_tracer(tool: &Path) -> OsString {
    let tools = [tool_library().into_os_string(), tool.into()];
    tools.join(":".as_ref())
}

/// What the trace holds.
fn recorded(trace: &Path) -> Counts {
    counts(&dump(trace))
}

/// Of one run, so that no luck of a run comes in between.
#[test]
fn a_second_tool_counts_what_the_trace_holds() {
    for runtime in RUNTIMES {
        for (source, arguments) in PROGRAMS {
            let traces = Traces::folder();
            let file = traces.path().join("counts");
            let mut command = program_on(runtime, source, arguments);
            traces.trace(&mut command);
            ended_well(
                command.env("OMP_TOOL_LIBRARIES", behind_the_tracer(&count_tool())).env("COUNT_OUT", &file),
            );
            let counted = fs::read(&file).expect("the tool was loaded, and finalized");
            let counted: Counts = serde_json::from_slice(&counted).expect("the tool writes JSON");
            let trace = traces.files().pop().expect("a trace");
            assert!(counted.len() > 4, "{source} on {runtime}: {counted:?}");
            assert_eq!(counted, recorded(&trace), "{source} on {runtime}");
        }
    }
}

/// The conformance tool keeps what it knows of threads, regions and tasks in data words, and asks the entry points for them.
#[test]
fn data_words_and_entry_points_are_those_of_a_lone_tool() {
    for (source, arguments) in PROGRAMS {
        let source = format!("tests/programs/{source}");
        let program = compile(&source, Compiler::Gcc, &[]);
        let traces = Traces::folder();
        let file = traces.path().join("report");
        let mut command = Command::new(program);
        traces.trace(command.args(*arguments));
        ended_well(
            command
                .env("LD_PRELOAD", libgomp_adapter())
                .env("OMP_TOOL_LIBRARIES", behind_the_tracer(&conformance_tool()))
                .env("OMPT_CONFORMANCE_OUTPUT", &file),
        );
        let report = fs::read_to_string(&file).expect("the tool was loaded, and finalized");
        assert!(report.contains(" events, "), "{source}: {report}");
        assert!(report.contains(", 0 faults\n"), "{source}: {report}");
    }
}

#[test]
fn the_tracer_works_behind_itself() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    // The loader would take the same file for the same library.
    let other: PathBuf = folder.path().join("libother.so");
    fs::copy(tool_library(), &other).expect("it can be copied");
    for runtime in ["llvm-14", "intel-2026"] {
        for (source, arguments) in PROGRAMS {
            let traces = Traces::folder();
            let mut command = program_on(runtime, source, arguments);
            traces.trace(&mut command);
            let output = ended_well(command.env("OMP_TOOL_LIBRARIES", behind_the_tracer(&other)));
            assert_eq!(output.stderr, b"", "{source} on {runtime}: {output:?}");
            let files = traces.files();
            assert_eq!(files.len(), 2, "{source} on {runtime}: {files:?}");
            let [first, second] = [&files[0], &files[1]].map(|trace| recorded(trace));
            assert_eq!(first, second, "{source} on {runtime}");
        }
    }
}

/// A tool that is named is taken instead of those that are listed; `OMPTRACE_CHAIN=0` refuses all.
#[test]
fn a_tool_can_be_named_and_refused() {
    let run = |variables: &[(&str, OsString)]| {
        let traces = Traces::folder();
        let file = traces.path().join("counts");
        let mut command = program_on("llvm-19", "tasks.c", &["2", "8"]);
        traces.trace(&mut command).env("COUNT_OUT", &file);
        let output = ended_well(command.envs(variables.iter().cloned()));
        assert_eq!(traces.files().len(), 1, "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (file.exists(), said)
    };
    let named = ("OMPTRACE_NEXT_TOOL", count_tool().into_os_string());
    let listed = ("OMP_TOOL_LIBRARIES", behind_the_tracer(&count_tool()));
    let missing = ("OMPTRACE_NEXT_TOOL", OsString::from("/nowhere/libtool.so"));
    let refused = ("OMPTRACE_CHAIN", OsString::from("0"));
    assert_eq!(run(std::slice::from_ref(&named)), (true, String::new()));
    let (is_counted, said) = run(&[listed.clone(), missing]);
    assert!(!is_counted);
    assert!(
        said.starts_with(
            "omptrace: the tool /nowhere/libtool.so (from OMPTRACE_NEXT_TOOL) was not started: "
        ),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(run(&[listed, named, refused]), (false, String::new()), "OMPTRACE_CHAIN=0");
}

/// The second tool works where the tracer cannot.
#[test]
fn a_second_tool_works_where_the_trace_cannot_be_written() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let file = folder.path().join("counts");
    let mut command = program_on("llvm-19", "tasks.c", &["2", "8"]);
    let output = ended_well(
        command
            .env("OMP_TOOL_LIBRARIES", behind_the_tracer(&count_tool()))
            .env("OMPTRACE_OUTPUT", "/nowhere/x.omptrace")
            .env("COUNT_OUT", &file),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("runs without tracing"), "{said}");
    let counted = fs::read(&file).expect("the tool was loaded, and finalized");
    let counted: Counts = serde_json::from_slice(&counted).expect("the tool writes JSON");
    assert_eq!(counted["thread_begin"], counted["thread_end"]);
    assert!(counted["task_create"] > 8, "{counted:?}");
}

/// Archer learns by the runtime's events what OpenMP orders. Without them ThreadSanitizer reports races that are none.
#[test]
fn archer_finds_the_race_and_nothing_else() {
    let run = |flags: &[&str], chain: &str| {
        let flags = [&["-fsanitize=thread"], flags].concat();
        let program = compile("tests/programs/thread_sanitizer.c", Compiler::Clang22, &flags);
        let traces = Traces::folder();
        let mut command = Command::new(program);
        let output = traces
            .trace(&mut command)
            .env("OMPTRACE_CHAIN", chain)
            .env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")
            // Where the runtime looks for Archer.
            .env("LD_LIBRARY_PATH", archer().parent().expect("a folder"))
            .output()
            .expect("it can be run");
        assert_eq!(traces.files().len(), 1, "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (said.matches("WARNING: ThreadSanitizer: data race").count(), said)
    };
    let (races, said) = run(&[], "1");
    assert_eq!(races, 0, "{said}");
    let (races, said) = run(&["-DRACE"], "1");
    assert!(races > 0, "{said}");
    let (races, said) = run(&[], "0");
    assert!(races > 0, "without Archer there are false ones: {said}");
}
