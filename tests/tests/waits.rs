//! `record --waits`: waits for what is not OpenMP's, on GCC's runtime and on LLVM's. The program measures by its own clock how long it
//! waits for what.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, omptrace_program, program_on, tool_library};
use omptrace_tests::trace::{Traces, accounts_add_up, dump, omptrace};
use serde_json::Value;

const SOURCE: &str = "tests/programs/external_waits.c";
const COMPILERS: [Compiler; 2] = [Compiler::Gcc, Compiler::Clang22];

/// Runs the program by itself.
fn alone(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("ASAN_OPTIONS", "verify_asan_link_order=0");
    command.output().expect("the program can be run")
}

/// Runs it by `record` with these options.
fn recorded(traces: &Traces, options: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(omptrace_program());
    command.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).args(options);
    command.arg("--").arg(program).args(arguments).env("ASAN_OPTIONS", "verify_asan_link_order=0");
    command.output().expect("the program can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first word of each line: the times behind differ from run to run.
fn words(output: &Output) -> Vec<String> {
    stdout(output).lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

/// How long threads waited by kind, in seconds, in a trace.
fn waits(trace: &Path) -> BTreeMap<String, f64> {
    let mut waits = BTreeMap::new();
    for event in dump(trace).iter().filter(|event| event["event"] == "omptrace_external_wait") {
        let kind = event["kind"].as_str().expect("a known kind").to_owned();
        let time = |key: &str| event[key].as_i64().expect("a time") as f64 / 1e9;
        if event["endpoint"] == "end" {
            *waits.entry(kind).or_default() += time("time_ns") - time("begin");
        }
    }
    waits
}

/// What the program printed, in seconds.
fn measured(output: &Output) -> BTreeMap<String, f64> {
    let text = stdout(output);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(kind, seconds)| Some((kind.to_owned(), seconds.parse().ok()?))).collect()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 0.05 * expected + 0.002
}

#[test]
fn each_wait_has_the_time_that_the_program_measures() {
    for compiler in COMPILERS {
        let traces = Traces::folder();
        let output = recorded(&traces, &["--waits"], &compile(SOURCE, compiler, &[]), &["100"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{compiler:?}: {output:?}");
        let (expected, trace) = (measured(&output), traces.only());
        let found = waits(&trace);
        assert_eq!(expected.len(), 6, "{expected:?}");
        for (kind, expected) in &expected {
            let found = found.get(kind).copied().unwrap_or(0.0);
            assert!(is_near(found, *expected), "{compiler:?}: {kind}: {found} instead of {expected}");
        }

        let stats = omptrace(["stats".as_ref(), "--json".as_ref(), trace.as_os_str()]);
        let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
        accounts_add_up(&stats).unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
        let all = stats["accounting"]["external_wait_ns"].as_f64().unwrap_or(0.0) / 1e9;
        let expected: f64 = expected.values().sum();
        assert!(is_near(all, expected), "{compiler:?}: {all} instead of {expected}");
        let findings = stats["findings"].as_array().expect("a list");
        let ids: Vec<&str> = findings.iter().filter_map(|finding| finding["id"].as_str()).collect();
        assert!(ids.contains(&"external_wait"), "{compiler:?}: {ids:?}");
        // The other thread waits at the barrier for one that sleeps: OpenMP is no remedy.
        assert!(!ids.contains(&"load_imbalance"), "{compiler:?}: {ids:?}");
        assert!(stats.get("waits_note").is_none(), "{compiler:?}: {stats}");
    }
}

#[test]
fn a_program_that_does_not_wait_has_none() {
    for compiler in COMPILERS {
        let traces = Traces::folder();
        let output = recorded(&traces, &["--waits"], &compile(SOURCE, compiler, &[]), &["100", "none"]);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), "done\n"), "{output:?}");
        assert_eq!(waits(&traces.only()), BTreeMap::new(), "{compiler:?}");
    }
}

#[test]
fn without_the_option_there_are_none() {
    for compiler in COMPILERS {
        let traces = Traces::folder();
        let output = recorded(&traces, &[], &compile(SOURCE, compiler, &[]), &["300", "sleep"]);
        assert!(output.status.success(), "{compiler:?}: {output:?}");
        let trace = traces.only();
        assert_eq!(waits(&trace), BTreeMap::new(), "{compiler:?}");
        let stats = omptrace(["stats".as_ref(), trace.as_os_str()]);
        let words = stdout(&stats).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("omptrace record --waits shows where"), "{compiler:?}: {words}");
    }
}

#[test]
fn threads_are_cancelled_and_children_run_as_alone() {
    for compiler in COMPILERS {
        let program = compile(SOURCE, compiler, &[]);
        for (also, also_said) in [("cancel", "cancelled"), ("fork", "status")] {
            let traces = Traces::folder();
            let (expected, found) =
                (alone(&program, &["20", also]), recorded(&traces, &["--waits"], &program, &["20", also]));
            assert_eq!(words(&found), words(&expected), "{compiler:?} {also}: {found:?}");
            assert!(words(&found).contains(&also_said.to_owned()), "{found:?}");
            assert_eq!(found.status, expected.status, "{compiler:?} {also}");
            assert!(found.stderr.is_empty(), "{compiler:?} {also}: {found:?}");
        }
    }
}

/// What a sanitizer says of the program, it says with the library in front of it.
#[test]
fn sanitizers_say_the_same() {
    for compiler in COMPILERS {
        for sanitizer in ["-fsanitize=address", "-fsanitize=thread"] {
            let program = compile(SOURCE, compiler, &[sanitizer]);
            for arguments in [&["20"][..], &["20", "none"]] {
                let traces = Traces::folder();
                let expected = alone(&program, arguments);
                let found = recorded(&traces, &["--waits"], &program, arguments);
                let what = format!("{compiler:?} {sanitizer} {arguments:?}: {found:?}");
                assert_eq!(words(&found), words(&expected), "{what}");
                // Without Archer, ThreadSanitizer sees races in what LLVM's runtime orders, now and then.
                if compiler == Compiler::Gcc || sanitizer != "-fsanitize=thread" {
                    assert_eq!(found.status, expected.status, "{what}");
                }
            }
        }
    }
}

/// A runtime waits by the same functions, here to be woken up for each region. What it waits for is OpenMP's.
#[test]
fn what_the_runtime_waits_for_is_left_out() {
    let traces = Traces::folder();
    let program = program_on("llvm-19", "tasks.c", &["2", "4"]);
    let mut command = Command::new(omptrace_program());
    command.args(["record", "--quiet", "--waits", "-o"]).arg(traces.path().join("%p.omptrace"));
    command.arg("--").arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.env("KMP_BLOCKTIME", "0").output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    let mut waits = waits(&traces.only());
    // Of its own output.
    waits.remove("write");
    assert_eq!(waits, BTreeMap::new());
}

#[test]
fn a_missing_library_is_said() {
    let traces = Traces::folder();
    let tool = traces.path().join("libomptrace.so");
    std::fs::copy(tool_library(), &tool).expect("it can be copied");
    let mut command = Command::new(omptrace_program());
    command.args(["record", "--waits", "--tool"]).arg(&tool).args(["--", "true"]);
    let output = command.output().expect("omptrace can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("libomptrace_waits.so"), "{words}");
}
