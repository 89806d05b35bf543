//! The bytes of an export do not depend on the number of threads that make it.

use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::Traces;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format, convert, convert_to_folder};

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
    if format.is_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        convert_to_folder(&[&reader], format, &options, folder.path(), &mut |_| {})
            .expect("the folder can be written to");
        return content(folder.path());
    }
    let out = Memory::default();
    let target = Box::new(out.clone());
    convert(&[&reader], format, &options, target, &mut |_| {}).expect("memory can be written");
    std::mem::take(&mut *out.0.lock().expect("no panic"))
}

/// The files of a folder and of those in it, one after the other, by name.
fn content(folder: &Path) -> Vec<u8> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let bytes = |path: &PathBuf| {
        if path.is_dir() {
            content(path)
        } else {
            fs::read(path).expect("a file")
        }
    };
    paths.iter().flat_map(bytes).collect()
}

#[test]
fn output_is_the_same_for_any_number_of_threads() {
    let traces = Traces::folder();
    // A tree of tasks, so large that each of two streams is decoded in many batches.
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", "14"]));
    let trace = traces.only();
    for format in ["chrome", "perfetto", "otf2", "text"] {
        let alone = converted(&trace, format, 1);
        assert!(alone.len() > 1 << 20, "{format}");
        // With two, one encodes what it interprets; with more, another does.
        for threads in [2, 8] {
            assert!(alone == converted(&trace, format, threads), "{format}");
        }
    }
}
