//! Measures the instructions per event of conversions on one thread, with callgrind, and fails if their number has
//! increased. Run by `cargo xtask bench --short`, or by `cargo bench -p omptrace-viewer-export --bench instructions`
//! after `cargo xtask setup`.
#![allow(missing_docs, reason = "the macros make public functions")]

mod made_trace;

use std::io;
use std::num::NonZero;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use made_trace::write_trace;
use omptrace_trace_format::{Reader, Record};
use omptrace_viewer_export::{ConvertOptions, Format, convert, convert_to_folder};
use tempfile::TempDir;

const EVENTS: u64 = 100_000;

/// The maximum number of instructions per event: 5 % more than were counted.
fn at_most(per_event: u64) -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, per_event * EVENTS)]));
    config
}

/// A trace, and a directory for an export.
struct Made {
    folder: TempDir,
    trace: Reader,
}

fn made() -> Made {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.omptrace");
    write_trace(&path, EVENTS);
    let trace = Reader::open(&path).expect("a trace");
    Made { folder, trace }
}

fn made_for(format: &str) -> (Made, &'static Format) {
    (made(), Format::by_name(format).expect("a format"))
}

#[library_benchmark(setup = made)]
#[bench::events(config = at_most(123))]
fn decoding(made: Made) -> Made {
    let mut record = Record::default();
    for stream in made.trace.streams() {
        let mut events = made.trace.events(stream);
        // Reuses one record, as the timeline does.
        while events.read(&mut record) {
            std::hint::black_box(&record);
        }
    }
    made
}

#[library_benchmark(setup = made_for)]
#[bench::perfetto(args = ("perfetto"), config = at_most(1292))]
#[bench::chrome(args = ("chrome"), config = at_most(1467))]
#[bench::otf2(args = ("otf2"), config = at_most(1563))]
#[bench::text(args = ("text"), config = at_most(1880))]
fn converting((made, format): (Made, &'static Format)) -> Made {
    let options = ConvertOptions { threads: NonZero::new(1), ..ConvertOptions::default() };
    let inputs = [&made.trace];
    let report = if format.is_folder() {
        let archive = made.folder.path().join("archive");
        std::fs::create_dir(&archive).expect("a new folder");
        convert_to_folder(&inputs, format, &options, &archive, &mut |_| {})
    } else {
        convert(&inputs, format, &options, Box::new(io::sink()), &mut |_| {})
    };
    report.expect("written");
    made
}

library_benchmark_group!(name = parts, benchmarks = [decoding, converting]);
gungraun::main!(library_benchmark_groups = parts);
