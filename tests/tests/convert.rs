//! Conversion of large traces: its memory does not grow with their events, and its output does not depend on threads.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::Traces;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format, convert};

/// The trace of a tree of tasks: some ten events each, of which as many are alive as the tree is deep.
fn tree_of_tasks(traces: &Traces, depth: u32) -> PathBuf {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", &depth.to_string()]));
    traces.only()
}

/// The most memory that a process has used when it ended well.
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
    // The larger has sixteen times the tasks, half a million more.
    let (few, many) = (Traces::folder(), Traces::folder());
    let inputs = [tree_of_tasks(&few, 14), tree_of_tasks(&many, 18)];
    for command in COMMANDS {
        let [small, large] = inputs.each_ref().map(|input| {
            let mut omptrace = Command::new(omptrace_program());
            omptrace.args(command).arg(input).stdout(Stdio::null());
            peak_kib(omptrace.spawn().expect("omptrace can be run"))
        });
        // Seventeen bytes for each task more would be 8 MiB.
        assert!(
            large < small + 8 * 1024,
            "{command:?}: {small} KiB, then {large} KiB"
        );
    }
}

/// Memory that a format writes into.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn converted(trace: &Path, format: &str, threads: usize) -> Vec<u8> {
    let reader = Reader::open(trace).expect("a trace");
    let format = Format::by_name(format).expect("a format");
    let options = ConvertOptions {
        threads: NonZero::new(threads),
        ..ConvertOptions::default()
    };
    let out = Memory::default();
    let target = Box::new(out.clone());
    convert(&[&reader], format, &options, target, &mut |_| {}).expect("memory can be written");
    std::mem::take(&mut *out.0.lock().expect("no panic"))
}

#[test]
fn output_is_the_same_for_any_number_of_threads() {
    let traces = Traces::folder();
    let trace = tree_of_tasks(&traces, 14);
    for format in ["chrome", "perfetto", "text"] {
        let alone = converted(&trace, format, 1);
        assert!(alone.len() > 1 << 20, "{format}");
        for threads in [2, 8] {
            assert!(alone == converted(&trace, format, threads), "{format}");
        }
    }
}
