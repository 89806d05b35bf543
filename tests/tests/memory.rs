//! The memory of conversions does not grow with the number of events.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::Traces;

/// The trace of a program on two threads; `size` says how much it does.
fn trace(traces: &Traces, program: &str, size: u32) -> PathBuf {
    let program = compile(program, Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", &size.to_string()]));
    traces.only()
}

/// A tree of tasks, as deep as its size. It has two to the power of that, of which as many are alive as the tree is
/// deep.
const TASKS: &str = "tests/programs/tasks.c";
/// Fights for locks, ten per size.
const LOCKS: &str = "tests/programs/locks.c";

/// Threads that set and unset locks of their own.
const THREADS: &str = "tests/programs/many_threads.c";

/// The most memory that a process has used when it ended well. The kernel begins to count with what this process had used
/// before it became the other: so nothing large is kept here.
fn peak_kib(child: Child) -> i64 {
    let mut status = 0;
    // SAFETY: all zeros is a value of this plain structure of C.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are valid for writing; the child was not waited for yet, so its number is still its own.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!((waited, status), (child.id() as i32, 0));
    usage.ru_maxrss
}

#[test]
fn memory_does_not_grow_with_the_number_of_events() {
    const COMMANDS: [&[&str]; 4] = [
        &["convert", "--to", "chrome", "-o", "/dev/null"],
        &["convert", "--to", "perfetto", "-o", "/dev/null"],
        &["stats"],
        &["check"],
    ];
    // Half a million tasks more; three hundred thousand acquisitions of locks more, in one region.
    for (program, few, many) in [(TASKS, 14, 18), (LOCKS, 1_000, 30_000)] {
        let traces = [Traces::folder(), Traces::folder()];
        let inputs = [trace(&traces[0], program, few), trace(&traces[1], program, many)];
        for command in COMMANDS {
            let [small, large] = inputs.each_ref().map(|input| {
                let mut omptrace = Command::new(omptrace_program());
                omptrace.args(command).arg(input).stdout(Stdio::null());
                peak_kib(omptrace.spawn().expect("omptrace can be run"))
            });
            // Some twenty bytes for each task or acquisition more would be too much.
            assert!(large < small + 6 * 1024, "{program}, {command:?}: {small} KiB, then {large} KiB");
        }
    }
}

/// Of several processes that are converted side by side, each has its own; `--jobs 1` changes nothing about that.
#[test]
fn memory_of_processes_side_by_side_is_bounded() {
    const MAX_KIB: i64 = 256 * 1024;
    let traces = Traces::folder();
    let program = compile(THREADS, Compiler::Clang22, &[]);
    for _ in 0..8 {
        traces.record(Command::new(&program).args(["at_once", "64", "5000"]));
    }
    for format in ["chrome", "perfetto"] {
        for jobs in ["1", "8"] {
            let mut omptrace = Command::new(omptrace_program());
            let arguments = ["convert", "--jobs", jobs, "--to", format, "-o", "/dev/null"];
            omptrace.args(arguments).arg(traces.path());
            let peak = peak_kib(omptrace.spawn().expect("omptrace can be run"));
            assert!(peak < MAX_KIB, "{format}, {jobs}: {peak} KiB");
        }
    }
}
