//! Any file can be read: no panic, no endless loop, no memory beyond the limits. The spool is part of the input: what
//! follows the file's first `OMPTSPOL`.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use omptrace_trace_format::block::SPOOL_MAGIC;
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{Limits, Reader};

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fuzz.omptrace");
    let spool = data.windows(8).position(|window| window == SPOOL_MAGIC);
    let (file, spool) = data.split_at(spool.unwrap_or(data.len()));
    fs::write(&path, file).expect("the folder is ours");
    fs::write(default_path(&path), spool).expect("the folder is ours");
    let limits = Limits {
        max_chunk_bytes: 1 << 20,
        ..Limits::default()
    };
    if let Ok(reader) = Reader::open_with(&path, limits) {
        for stream in reader.streams() {
            let mut events = reader.events(stream);
            for record in &mut events {
                reader.clock().ns(record.ticks);
                record.event.visit(&mut |_, _| ());
            }
            events.take_diagnostics();
        }
    }
});
