//! Counts the instructions that each processing step takes per event, with callgrind; fails if there are more than
//! before. Run by `cargo xtask bench --short`, or by `cargo bench -p omptrace-trace-format --bench instructions` after
//! `cargo xtask setup`.
#![allow(missing_docs, reason = "the macros make public functions")]

mod chunk;

use chunk::{LEVEL, encode, events, read};
use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use omptrace_trace_format::codec::{Packer, Unpacker};
use omptrace_trace_format::event::Event;

/// Limits the instructions per event of [`events`] to `per_event`, which should be 5 % more than were counted.
fn at_most(per_event: u64) -> LibraryBenchmarkConfig {
    let limit = per_event * events().len() as u64;
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, limit)]));
    config
}

/// The events, their words, and room for as many words.
struct Made {
    events: Vec<Event<'static>>,
    words: Vec<u64>,
    room: Vec<u64>,
    packer: Packer,
    payload: Vec<u8>,
    unpacker: Unpacker,
}

fn made() -> Made {
    let events = events();
    let mut words = Vec::new();
    encode(&events, &mut words);
    let mut packer = Packer::new(LEVEL, words.len()).expect("a packer");
    let payload = packer.pack(&words).expect("whole events").payload.to_vec();
    Made {
        events,
        room: words.clone(),
        words,
        packer,
        payload,
        unpacker: Unpacker::new().expect("an unpacker"),
    }
}

#[library_benchmark(setup = made)]
#[bench::chunk(config = at_most(99))]
fn encoding(mut made: Made) -> Made {
    encode(&made.events, &mut made.room);
    made
}

#[library_benchmark(setup = made)]
#[bench::chunk(config = at_most(125))]
fn decoding(made: Made) -> (u64, Made) {
    (read(&made.words), made)
}

#[library_benchmark(setup = made)]
#[bench::chunk(config = at_most(87))]
fn packing(mut made: Made) -> (usize, Made) {
    let packed = made.packer.pack(&made.words).expect("whole events");
    (packed.payload.len(), made)
}

#[library_benchmark(setup = made)]
#[bench::chunk(config = at_most(66))]
fn unpacking(mut made: Made) -> Made {
    let words = made.words.len();
    made.unpacker.unpack(&made.payload, words, &mut made.room).expect("what was packed");
    made
}

library_benchmark_group!(name = parts, benchmarks = [encoding, decoding, packing, unpacking]);
gungraun::main!(library_benchmark_groups = parts);
