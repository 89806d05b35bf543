//! `record` where descriptors are few, and names are long.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, limited, omptrace_program};
use omptrace_tests::trace::{Traces, counts, dump, info};

use crate::{record, recording, said};

/// An error of looking for traces does not say that there are none.
#[test]
fn with_few_descriptors_traces_are_completed_or_the_truth_is_said() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/tasks.c", compiler, &[]);
        for limit in 6..=16 {
            let traces = Traces::folder();
            let arguments = ["--libgomp", "observe", "-o", "x.omptrace", "--"].map(OsStr::new);
            let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
            let mut command = recording(&traces, arguments.into_iter().chain(program));
            let output = limited(&mut command, libc::RLIMIT_NOFILE, limit).output().expect("it can be run");
            let said = said(&output);
            let trace = traces.path().join("x.omptrace");
            let is_complete = trace.exists() && info(&trace)["size"]["sealed"] == true;
            assert!(is_complete || limit < 9, "{limit}: {said}");
            if trace.exists() {
                let is_said = said.contains("Too many open files");
                assert!(is_complete || is_said, "{limit}: {said}");
                assert!(!said.contains("nothing was traced"), "{limit}: {said}");
                assert_eq!(counts(&dump(&trace))["parallel_begin"], 1, "{limit}");
            }
        }
    }
}

/// `record` takes more descriptors where it may, and the program has the limits that it has alone.
#[test]
fn the_program_has_the_limits_that_it_has_alone() {
    let traces = Traces::folder();
    let script = "ulimit -Sn 64; ulimit -Hn 128; exec \"$0\" record -- sh -c 'ulimit -Sn; ulimit -Hn'";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(omptrace_program())
        .current_dir(traces.path())
        .output()
        .expect("it can be run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "64\n128\n");
}

/// Records `program` as often as there are patterns; each trace must be complete.
#[track_caller]
fn are_traced(program: &Path, patterns: &[&str]) {
    let traces = Traces::folder();
    for pattern in patterns {
        let words = ["-o", pattern, "--"].map(OsStr::new).into_iter();
        let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
        let output = record(&traces, words.chain(program));
        let said = said(&output);
        assert!(!said.contains("nothing was traced"), "{pattern}: {said}");
    }
    let files = traces.all_files();
    assert_eq!(files.len(), patterns.len(), "{files:?}");
    for trace in files {
        let name = trace.file_name().expect("a name").to_str().expect("UTF-8");
        assert!(name.ends_with(".omptrace"), "{name}");
        assert_eq!(info(&trace)["size"]["sealed"], true, "{name}");
        assert_eq!(counts(&dump(&trace))["parallel_begin"], 1, "{name}");
    }
}

/// File systems take 255 bytes, to which the process's number and endings come.
#[test]
fn a_program_with_a_long_name_is_traced() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for name in ["a".repeat(239), "b".repeat(255), "ä".repeat(127)] {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join(&name);
        fs::copy(&program, &copy).expect("it can be copied");
        // A taken name gets a number.
        let twice = "%e%e.omptrace";
        are_traced(&copy, &["%e.%p.omptrace", "%e-%h.%t.%p.omptrace", twice, twice]);
    }
}

/// The user's own name may leave no room for that of the spool, and for a number.
#[test]
fn a_trace_with_a_long_name_has_its_spool() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let name = format!("{}.omptrace", "c".repeat(246));
    are_traced(&program, &[&name, &name]);
}

/// What is there stays, whatever it is.
#[test]
fn a_name_that_is_taken_is_not_written_to() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let spool = traces.path().join("x.omptrace.spool");
    fs::write(&spool, "OMPTSPOL").expect("our folder");
    for name in ["x.omptrace", "x.omptrace.spool"] {
        let words = ["-o", name, "--"].map(OsStr::new).into_iter();
        let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
        record(&traces, words.chain(program));
    }
    assert_eq!(fs::read(&spool).expect("our file"), b"OMPTSPOL");
    let names = ["x.omptrace", "x.omptrace.2.spool", "x.omptrace.spool"];
    let names = names.map(|name| traces.path().join(name));
    assert_eq!(traces.all_files(), names);
}
