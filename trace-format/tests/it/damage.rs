//! Damage: every cut and every flipped byte of a small trace is detected, and the rest is read.

use std::collections::BTreeSet;
use std::fs;

use omptrace_trace_format::block::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, ChunkState, ClockPair, Codec, FILE_HEADER_BYTES,
};
use omptrace_trace_format::blocks::Index;
use omptrace_trace_format::checkpoint::Checkpoint;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::{DiagnosticKind, OpenError, Reader, seal, summary};
use serde_json::Value;

use crate::build::{Found, SESSION, Trace, chunk, encode, overwrite, read, read_all, some_events};

/// Small chunks, because each test reads its trace once for each byte.
const CHUNK_EVENTS: usize = Event::ROWS.div_ceil(5);

fn words(stream: u32, sequence: u32) -> Vec<u64> {
    let mut events = some_events(u64::from(stream * 8 + sequence));
    let mut row = 0..;
    events.retain(|_| row.next().is_some_and(|row| row % 5 == 0));
    encode(chunk(stream, sequence).first_id, &events)
}

/// A trace with two streams, raw and packed chunks, and an end.
fn small_trace() -> Trace {
    Trace::new()
        .packed(chunk(1, 0), &words(1, 0))
        .raw(chunk(2, 0), &words(2, 0))
        .raw(chunk(1, 1), &words(1, 1))
        .end()
}

/// Overwrites the trace with `bytes` and reads it.
fn read_bytes(trace: &Trace, bytes: &[u8]) -> Result<Found, OpenError> {
    overwrite(&trace.path(), bytes);
    Reader::open(&trace.path()).map(|reader| read_all(&reader))
}

fn check_is_part_of(part: &Found, whole: &Found, what: &str) {
    let mut rest = whole.events.iter();
    for event in &part.events {
        assert!(rest.any(|other| other == event), "{what}: {event:?} is invented");
    }
}

/// Cuts the file at every byte.
fn check_cuts(trace: &Trace, file: &[u8]) {
    let whole = read_bytes(trace, file).unwrap();
    assert_eq!(whole.diagnostics, []);
    let mut events = 0;
    for len in 0..file.len() {
        let what = format!("cut to {len} bytes");
        match read_bytes(trace, &file[..len]) {
            Err(OpenError::Header(_)) => assert!(len < FILE_HEADER_BYTES, "{what}"),
            Err(error) => panic!("{what}: {error}"),
            Ok(found) => {
                assert!(!found.diagnostics.is_empty(), "{what}: nothing was noticed");
                assert!(found.events.len() >= events, "{what}: less than from a shorter file");
                check_is_part_of(&found, &whole, &what);
                events = found.events.len();
            }
        }
    }
    assert_eq!(events, whole.events.len(), "only the end was missing");
}

/// Flips bits of every byte. At most one chunk may be lost.
fn check_flips(trace: &Trace, file: &[u8]) {
    let whole = read_bytes(trace, file).unwrap();
    for at in 0..file.len() {
        let mut bytes = file.to_vec();
        bytes[at] ^= 1 << (at % 8) | 0x10;
        let what = format!("byte {at} flipped");
        let found = read_bytes(trace, &bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!found.diagnostics.is_empty(), "{what}: nothing was noticed");
        check_is_part_of(&found, &whole, &what);
        let least = whole.events.len() - CHUNK_EVENTS;
        assert!(found.events.len() >= least, "{what}: {:?}", found.diagnostics);
    }
}

#[test]
fn a_trace_is_read_up_to_any_cut() {
    let trace = small_trace();
    check_cuts(&trace, trace.file());
}

#[test]
fn a_sealed_trace_is_read_up_to_any_cut() {
    let trace = small_trace();
    let path = trace.write();
    seal(&path, Value::Null, omptrace_trace_format::InDoubt::Refuse, &mut |_, _| ()).unwrap();
    check_cuts(&trace, &fs::read(path).unwrap());
}

#[test]
fn no_flipped_byte_of_a_trace_goes_unseen() {
    let trace = small_trace();
    check_flips(&trace, trace.file());
}

#[test]
fn no_flipped_byte_of_a_sealed_trace_goes_unseen() {
    let trace = small_trace();
    let path = trace.write();
    seal(&path, Value::Null, omptrace_trace_format::InDoubt::Refuse, &mut |_, _| ()).unwrap();
    check_flips(&trace, &fs::read(path).unwrap());
}

/// Damage is also detected in parts that reading events and metadata does not need: a summary, checkpoints, and bytes
/// between blocks.
#[test]
fn no_flipped_byte_behind_the_events_goes_unseen() {
    let trace = small_trace();
    let path = trace.write();
    let refuse = omptrace_trace_format::InDoubt::Refuse;
    seal(&path, Value::Null, refuse, &mut |_, _| ()).unwrap();
    let reader = Reader::open(&path).unwrap();
    let events = fs::read(&path).unwrap().len();
    let checkpoints = [500, 700].map(|ticks| {
        let words = format!("at {ticks}, {}", "and so on".repeat(20)).into_bytes();
        let events = Vec::new();
        let checkpoint = Checkpoint { ticks, words, events };
        checkpoint.pack().unwrap()
    });
    summary::write(&reader, "a summary, ".repeat(9).as_bytes(), &checkpoints).unwrap();
    let file = fs::read(&path).unwrap();
    let flaws = |bytes: &[u8]| {
        overwrite(&path, bytes);
        let reader = Reader::open(&path).unwrap();
        [reader.diagnostics(), &reader.flaws_elsewhere()].concat()
    };
    assert_eq!(flaws(&file), []);
    let mut kinds = BTreeSet::new();
    for at in events - 400..file.len() {
        for bit in [0, 3, 7] {
            let mut bytes = file.clone();
            bytes[at] ^= 1 << bit;
            let found = flaws(&bytes);
            assert!(!found.is_empty(), "byte {at}, bit {bit}: nothing was noticed");
            kinds.extend(found.iter().map(|flaw| flaw.kind));
        }
    }
    for kind in
        [DiagnosticKind::SummaryDamaged, DiagnosticKind::CheckpointDamaged, DiagnosticKind::IndexDamaged]
    {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    for more in [1, 8, 100] {
        let longer = [&file[..], &vec![0; more]].concat();
        assert!(!flaws(&longer).is_empty(), "{more} bytes behind the index");
    }
}

/// An index may leave gaps between blocks, which our writers never do.
#[test]
fn bytes_between_blocks_are_noticed() {
    let trace = small_trace();
    let path = trace.write();
    let refuse = omptrace_trace_format::InDoubt::Refuse;
    seal(&path, Value::Null, refuse, &mut |_, _| ()).unwrap();
    let file = fs::read(&path).unwrap();
    let index = u64::from_le_bytes(file[file.len() - 16..][..8].try_into().unwrap()) as usize;
    // The same blocks, with a gap of 16 bytes before the last.
    let entries = file[index + BLOCK_HEADER_BYTES..file.len() - 16].chunks(8 + BLOCK_HEADER_BYTES);
    let offsets = entries.clone().map(|entry| u64::from_le_bytes(entry[..8].try_into().unwrap()));
    let last = offsets.max().unwrap();
    let mut out = file[..last as usize].to_vec();
    out.extend([7; 16]);
    out.extend(&file[last as usize..index]);
    let mut new = Index::default();
    for entry in entries {
        let offset = u64::from_le_bytes(entry[..8].try_into().unwrap());
        new.push(offset + if offset == last { 16 } else { 0 }, &entry[8..]);
    }
    out.extend(new.finish(SESSION, out.len() as u64));
    overwrite(&path, &out);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.diagnostics(), []);
    let flaws = reader.flaws_elsewhere();
    assert_eq!(flaws.len(), 1, "{flaws:?}");
    let flaw = (flaws[0].kind, flaws[0].offset, flaws[0].count);
    assert_eq!(flaw, (DiagnosticKind::BytesBetween, Some(last), 16));
}

/// A spool has no check sums, so a flipped bit in it cannot be detected; a diagnostic reports that.
#[test]
fn that_chunks_lie_in_a_spool_alone_is_noted() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::FULL, &words(1, 0));
    let reader = Reader::open(&trace.write()).unwrap();
    let kinds: Vec<_> = reader.flaws_elsewhere().iter().map(|flaw| flaw.kind).collect();
    assert_eq!(kinds, [DiagnosticKind::SpoolUnchecked]);
}

/// The index has a sound header and check sum, but its tail overlaps its header, or follows a fragment of an entry.
#[test]
fn an_index_that_is_shorter_than_its_tail_is_damage() {
    let trace = small_trace();
    let whole = read_bytes(&trace, trace.file()).unwrap();
    for payload in [0, 8, 16, 24] {
        let mut file = trace.file().to_vec();
        let offset = file.len() as u64;
        let index = BlockHeader {
            kind: BlockKind::INDEX,
            codec: Codec::RAW,
            payload_bytes: payload,
            payload_crc: 0,
            stream: 0,
            sequence: 0,
            clock: ClockPair::default(),
            first_id: 0,
            words: 0,
            events: 0,
            session: SESSION,
        };
        let mut block = index.encode().to_vec();
        block.resize(BLOCK_HEADER_BYTES + payload as usize, 0);
        let tail = block.len() - 16;
        block[tail..tail + 8].copy_from_slice(&offset.to_le_bytes());
        block[tail + 8..].copy_from_slice(b"OMPTINDX");
        let (header, rest) = block.split_at_mut(BLOCK_HEADER_BYTES);
        header[12..16].copy_from_slice(&crc32fast::hash(rest).to_le_bytes());
        let crc = crc32fast::hash(&header[12..]);
        header[8..12].copy_from_slice(&crc.to_le_bytes());
        file.extend(&block);
        let found = read_bytes(&trace, &file).unwrap();
        let kinds = found.kinds();
        // 16 bytes are a tail without entries: an index of nothing.
        let is_sound = payload == 16;
        assert_eq!(kinds.contains(&DiagnosticKind::IndexDamaged), !is_sound, "{payload}");
        if !is_sound {
            assert_eq!(found.events, whole.events, "{payload}");
        }
    }
}

#[test]
fn a_damaged_spool_never_panics() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::FULL, &words(1, 0)).spooled(
        chunk(1, 1),
        ChunkState::ACTIVE,
        &words(1, 1),
    );
    let path = trace.write();
    let spool = omptrace_trace_format::spool::default_path(&path);
    let bytes = fs::read(&spool).unwrap();
    let end = FILE_HEADER_BYTES + 16 * 8 + words(1, 0).len() * 8;
    for at in 0..end {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        overwrite(&spool, &damaged);
        read(&path);
    }
    for len in (0..bytes.len()).step_by(97) {
        overwrite(&spool, &bytes[..len]);
        read(&path);
    }
}

#[test]
fn a_chunk_inside_a_damaged_one_is_not_lost() {
    // With a damaged header of the first chunk, the search starts within that chunk.
    let trace = small_trace();
    let path = trace.write();
    let whole = read(&path);
    let mut bytes = trace.file().to_vec();
    let magic = bytes
        .windows(8)
        .skip(FILE_HEADER_BYTES + BLOCK_HEADER_BYTES)
        .position(|window| window == b"OMPTBLCK")
        .unwrap();
    bytes[FILE_HEADER_BYTES + BLOCK_HEADER_BYTES + magic] = 0;
    let found = read_bytes(&trace, &bytes).unwrap();
    assert_eq!(found.events.len(), whole.events.len() - CHUNK_EVENTS);
}
