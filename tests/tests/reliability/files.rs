//! The trace's files and descriptors, which others remove, move and close.

use std::fs;

use omptrace_tests::env::{Compiler, compile, runtime};
use omptrace_tests::trace::{Traces, dump, omptrace};

use crate::{all_regions, finds, one_line, patient, program, regions, run};

#[test]
fn what_is_left_of_an_older_trace_is_not_in_the_way() {
    let traces = Traces::folder();
    let left = traces.path().join("x.omptrace.spool");
    fs::write(&left, "left").expect("can be written");
    let mut command = program("reliability_ends.c", &["_exit", "2", "1000"]);
    let command = traces.trace(&mut command);
    command.env("OMPTRACE_OUTPUT", traces.path().join("x.omptrace"));
    let output = command.output().expect("the program can be run");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(regions(&dump(&traces.path().join("x.omptrace"))), [1000, 1000, 2000]);
    assert_eq!(fs::read(&left).expect("is there"), b"left");
}

#[test]
fn a_trace_that_is_removed_meanwhile_is_reported() {
    let traces = Traces::folder();
    let script = format!(
        "{} none 2 100000 & while ! ls {1}/*.spool >/dev/null 2>&1; do :; done; rm -rf {1}; wait $!",
        compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]).display(),
        traces.path().join("sub").display()
    );
    fs::create_dir(traces.path().join("sub")).expect("a folder");
    let mut command = patient("sh");
    traces
        .trace(&mut command)
        .args(["-c", &script])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .env("OMPTRACE_OUTPUT", traces.path().join("sub/x.omptrace"));
    let output = command.output().expect("sh can be run");
    assert_eq!(output.stdout, b"checksum 200000\n", "{output:?}");
    one_line(&output, "was removed or replaced while the program ran");
}

/// As a program that gives its user up (setuid(2)) or its root (chroot(2)): names lead nowhere any more.
#[test]
fn a_trace_that_is_moved_meanwhile_is_whole() {
    let traces = Traces::folder();
    let [sub, moved] = ["sub", "moved"].map(|name| traces.path().join(name));
    let script = format!(
        "{} none 2 100000 & while ! ls {1}/*.spool >/dev/null 2>&1; do :; done; mv {1} {2}; wait $!",
        compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]).display(),
        sub.display(),
        moved.display()
    );
    fs::create_dir(&sub).expect("a folder");
    let mut command = patient("sh");
    traces
        .trace(&mut command)
        .args(["-c", &script])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .env("OMPTRACE_OUTPUT", sub.join("x.omptrace"));
    let output = command.output().expect("sh can be run");
    assert_eq!(output.stdout, b"checksum 200000\n", "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let trace = moved.join("x.omptrace");
    assert!(!finds(&trace, "spool_damaged"));
    assert_eq!(regions(&dump(&trace)), [100_000, 100_000, 200_000]);
    let recovered = omptrace(["recover".as_ref(), moved.as_os_str()]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert_eq!(fs::read_dir(&moved).expect("a folder").count(), 1);
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_files_and_its_trace() {
    for compress in ["auto", "off"] {
        let (traces, files) = (Traces::folder(), tempfile::tempdir().expect("a folder"));
        let mut command = program("reliability_descriptors.c", &[]);
        command.arg(files.path()).env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert_eq!(output.stdout, b"checksum 88000\n", "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        traces.only();
        assert_eq!(all_regions(&traces), [[44_000, 44_000, 88_000]]);
    }
}

#[test]
fn a_trace_that_is_closed_and_removed_is_reported_and_the_programs_files_stay_as_they_are() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_descriptors.c", &[]);
        command.arg(traces.path()).args(["1", "30000", "remove"]).env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert_eq!(output.stdout, b"checksum 120000\n", "{output:?}");
        one_line(&output, "closed this file, and it cannot be opened again");
    }
}
