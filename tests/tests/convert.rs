//! The bytes of an export do not depend on the number of threads that make it.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::Traces;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format, convert};

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
    // A tree of tasks, so large that each of two streams is decoded in many batches.
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", "14"]));
    let trace = traces.only();
    for format in ["chrome", "perfetto", "text"] {
        let alone = converted(&trace, format, 1);
        assert!(alone.len() > 1 << 20, "{format}");
        for threads in [2, 8] {
            assert!(alone == converted(&trace, format, threads), "{format}");
        }
    }
}
