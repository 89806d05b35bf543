//! Reading compact events does not allocate once the first chunk has filled the buffers.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use omptrace_trace_format::block::{Chunk, Codec, FileHeader};
use omptrace_trace_format::blocks::chunk_header;
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::{Event, ThreadEnd};
use omptrace_trace_format::field::Id;
use omptrace_trace_format::predict::State;
use omptrace_trace_format::{Limits, Reader};

/// The system allocator, with a counter.
struct Counted;

thread_local! {
    /// Allocations of this thread: the test harness has a thread of its own, which may allocate at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards to the system allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const CHUNKS: u32 = 20;
const EVENTS: u64 = 1000;

/// A trace of alternating packed and raw chunks, all with the same events.
fn trace() -> Vec<u8> {
    let mut words = Vec::new();
    let mut state = State::new(0);
    for number in 0..EVENTS {
        let event = Event::from(ThreadEnd { thread_data: Id(number) });
        let mut out = [0; 8];
        let len = event.encode(&mut state, number, &mut out).unwrap();
        words.extend_from_slice(&out[..len]);
    }
    let mut packer = Packer::new(1, words.len()).unwrap();
    let packed = packer.pack(&words).unwrap().payload.to_vec();
    let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let header = FileHeader::of_trace(1, 1, &[]);
    let mut file = header.encode();
    for sequence in 0..CHUNKS {
        let chunk = Chunk { stream: 1, sequence, ..Chunk::default() };
        let (codec, payload) = match sequence % 2 {
            0 => (Codec::COLUMNS, &packed),
            _ => (Codec::RAW, &raw),
        };
        file.extend(chunk_header(1, &chunk, words.len() as u32, 0, codec, payload));
        file.extend(payload);
    }
    file
}

#[test]
fn compact_events_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.omptrace");
    std::fs::write(&path, trace()).unwrap();
    let reader = Reader::open_with(&path, Limits::default()).unwrap();
    let mut events = reader.events(&reader.streams()[0]);
    // Read one chunk of each kind, and the third chunk's first event.
    assert_eq!(events.by_ref().take(2 * EVENTS as usize + 1).count(), 2 * EVENTS as usize + 1);
    let before = ALLOCATIONS.get();
    let rest = events.by_ref().count();
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(rest as u64, u64::from(CHUNKS - 2) * EVENTS - 1);
}
