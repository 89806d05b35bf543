//! Measures the events per second of each export and of `dump`, on a generated trace: parallel regions of four threads,
//! each with a loop, a barrier and tasks. `cargo bench -p omptrace-viewer-export [MILLIONS_OF_EVENTS]`

mod made_trace;

use std::io::{self, Write};
use std::time::Instant;

use made_trace::write_trace;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, FORMATS, convert, dump_json};

fn main() {
    let millions: f64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(4.0);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.omptrace");
    let events = write_trace(&path, (millions * 1e6) as u64);
    let reader = Reader::open(&path).expect("a trace");
    report("decode", events, || {
        for stream in reader.streams() {
            std::hint::black_box(reader.events(stream).count());
        }
    });
    for format in FORMATS.iter().filter(|format| !format.is_folder()) {
        report(format.name, events, || {
            let out = Box::new(Counted(0));
            convert(&[&reader], format, &ConvertOptions::default(), out, &mut |_| {}).expect("written");
        });
    }
    report("dump --json", events, || {
        dump_json(&reader, Box::new(Counted(0))).expect("written");
    });
}

fn report(what: &str, events: u64, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what:<12} {:>8.2} M events/s  {:>6.1} ns per event",
        events as f64 / seconds / 1e6,
        seconds * 1e9 / events as f64
    );
}

/// Discards what is written, and counts the bytes.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
