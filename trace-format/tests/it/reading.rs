//! Given a trace, checks what the reader finds.

use omptrace_trace_format::block::{BLOCK_HEADER_BYTES, ChunkState, Codec, FILE_HEADER_BYTES};
use omptrace_trace_format::blocks::{Index, chunk_header};
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::{Event, SyncRegion};
use omptrace_trace_format::field::{Address, Id};
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{DiagnosticKind, Ending, Limits, OpenError, Reader, Severity};
use serde_json::json;

use crate::build::{Found, SESSION, Trace, chunk, encode, overwrite, read, read_all, some_events};

/// Words as left by a kill: an event, and the prefix of a wide event that was not written.
fn cut_short() -> Vec<u64> {
    let mut words = encode(0, &some_events(1)[..1]);
    words.push(5 << 6 | 63);
    words
}

fn words(seed: u64) -> Vec<u64> {
    encode(chunk(1, 0).first_id, &some_events(seed))
}

/// Checks the number of events and the kinds of diagnostics.
fn check(trace: Trace, events: usize, kinds: &[DiagnosticKind]) -> Found {
    let found = read(&trace.write());
    assert_eq!(found.kinds(), kinds, "{:#?}", found.diagnostics);
    assert_eq!(found.events.len(), events);
    found
}

const ROWS: usize = Event::ROWS;

#[test]
fn reads_raw_and_packed_chunks_alike() {
    let trace = Trace::new()
        .raw(chunk(2, 0), &encode(chunk(2, 0).first_id, &some_events(7)))
        .packed(chunk(1, 0), &words(7))
        .end();
    let found = check(trace, 2 * ROWS, &[]);
    for (stream, events) in [(1, &found.events[..ROWS]), (2, &found.events[ROWS..])] {
        for (index, expected) in some_events(7).into_iter().enumerate() {
            let ticks = chunk(stream, 0).clock.ticks + 100 * index as u64;
            assert_eq!(events[index], (stream, ticks, expected));
        }
    }
}

#[test]
fn passes_over_unused_space() {
    let (used, cut) = (BLOCK_HEADER_BYTES, 8);
    let trace =
        Trace::new().unused(4096).raw(chunk(1, 0), &words(1)).unused(used).raw(chunk(1, 1), &words(2)).end();
    check(trace, 2 * ROWS, &[]);
    // As if the process was killed before it wrote to the unused space at the end.
    let mut trace = Trace::new().raw(chunk(1, 0), &words(1)).unused(4096);
    let path = trace.write();
    overwrite(&path, &trace.file()[..trace.file().len() - 4096 + used + cut]);
    assert_eq!(read(&path).events.len(), ROWS);
    trace = trace.end();
    check(trace, ROWS, &[]);
}

#[test]
fn takes_the_spool_in() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .spooled(chunk(1, 1), ChunkState::FULL, &words(2))
        .spooled(chunk(1, 2), ChunkState::ACTIVE, &words(3))
        .spooled(chunk(1, 3), ChunkState::FREE, &words(4));
    check(trace, 3 * ROWS, &[]);
}

#[test]
fn counts_a_chunk_in_file_and_spool_once() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).spooled(chunk(1, 0), ChunkState::FULL, &words(1));
    check(trace, ROWS, &[]);
}

#[test]
fn counts_a_chunk_twice_in_the_file_once() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).packed(chunk(1, 0), &words(1)).end();
    check(trace, ROWS, &[DiagnosticKind::ChunkTwice]);
}

#[test]
fn takes_the_spools_copy_of_a_damaged_chunk() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).spooled(chunk(1, 0), ChunkState::FULL, &words(1));
    let path = trace.write();
    let mut file = trace.file().to_vec();
    *file.last_mut().unwrap() ^= 1;
    std::fs::write(&path, file).unwrap();
    let found = read(&path);
    assert_eq!(found.kinds(), [DiagnosticKind::ChunkCopyDamaged]);
    assert_eq!(found.events.len(), ROWS);
}

#[test]
fn a_chunk_that_was_cut_and_is_in_the_spool_is_whole() {
    let trace = Trace::new();
    let before = trace.file().len();
    let trace = trace.raw(chunk(1, 0), &words(1)).spooled(chunk(1, 0), ChunkState::FULL, &words(1));
    let path = trace.write();
    let cut = &trace.file()[..(before + trace.file().len()) / 2];
    std::fs::write(&path, cut).unwrap();
    let found = read(&path);
    let kinds = [DiagnosticKind::BlockCut, DiagnosticKind::ChunkCopyDamaged];
    assert_eq!(found.kinds(), kinds);
    let severities = found.diagnostics.iter().map(|found| found.severity);
    assert!(severities.eq([Severity::Note; 2]));
    assert_eq!(found.events.len(), ROWS);
}

#[test]
fn finds_a_spool_that_moved_with_its_trace() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("other name");
    std::fs::rename(&path, &moved).unwrap();
    let spool = default_path(&path);
    let beside = elsewhere.path().join(spool.file_name().unwrap());
    std::fs::rename(&spool, beside).unwrap();
    let found = read(&moved);
    assert_eq!(found.kinds(), [DiagnosticKind::SpoolMoved]);
    assert_eq!(found.events.len(), ROWS);
}

#[test]
fn a_spool_by_another_path_did_not_move() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(path.parent().unwrap(), &link).unwrap();
    assert_eq!(read(&link.join(path.file_name().unwrap())).kinds(), []);
}

#[test]
fn accepts_a_prefix_whose_event_never_came() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &cut_short());
    check(trace, 1, &[]);
    check(Trace::new().raw(chunk(1, 0), &cut_short()).end(), 1, &[]);
}

#[test]
fn reads_a_chunk_up_to_what_it_does_not_know() {
    let mut unknown = words(1);
    // No event has kind 0.
    unknown.extend([0, 0]);
    let trace = Trace::new().packed(chunk(1, 0), &unknown).end();
    let found = check(trace, ROWS, &[DiagnosticKind::ChunkCut]);
    assert_eq!(found.diagnostics[0].count, 2);
}

#[test]
fn skips_holes_and_resyncs_after_them() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .bytes(&[0; 3 << 20])
        .raw(chunk(1, 2), &words(3))
        .bytes(b"sixteen bytes...")
        .end();
    let kinds = [DiagnosticKind::Hole, DiagnosticKind::BytesSkipped, DiagnosticKind::ChunksMissing];
    let found = check(trace, 2 * ROWS, &kinds);
    assert_eq!((found.diagnostics[0].count, found.diagnostics[1].count), (3 << 20, 16));
    assert_eq!((found.diagnostics[2].sequence, found.diagnostics[2].count), (Some(1), 1));
}

#[test]
fn a_hole_is_no_loss_where_the_spool_has_its_chunk() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).bytes(&[0; 1 << 20]).spooled(
        chunk(1, 1),
        ChunkState::ACTIVE,
        &words(2),
    );
    check(trace, 2 * ROWS, &[DiagnosticKind::HoleOfSpool]);
}

#[test]
fn ignores_blocks_of_another_session() {
    let header = chunk_header(SESSION + 1, &chunk(1, 0), 0, 0, Codec::RAW, &[]);
    let trace = Trace::new().bytes(&header).raw(chunk(1, 0), &words(1)).end();
    check(trace, ROWS, &[DiagnosticKind::OtherSession]);
}

#[test]
fn names_a_codec_that_it_does_not_know() {
    let header = chunk_header(SESSION, &chunk(1, 0), 0, 0, Codec(9), &[]);
    let trace = Trace::new().bytes(&header).end();
    check(trace, 0, &[DiagnosticKind::ChunkCodec]);
}

#[test]
fn reads_the_words_in_front_of_a_cut() {
    let trace = Trace::new().end().raw(chunk(1, 0), &words(1));
    let path = trace.write();
    let file = trace.file();
    std::fs::write(&path, &file[..file.len() - 8]).unwrap();
    let found = read(&path);
    assert_eq!(found.kinds(), [DiagnosticKind::BlockCut, DiagnosticKind::ChunkCut]);
    assert_eq!(found.events.len(), ROWS - 1);
}

#[test]
fn keeps_what_it_understands_of_the_metadata() {
    let object = json!({"tracer": "newer", "process": 5, "unheard": [1]});
    let trace = Trace::with_metadata(object).end();
    let reader = Reader::open(&trace.write()).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.tracer.as_deref(), Some("newer"));
    assert_eq!(metadata.other["unheard"], json!([1]));
    assert_eq!(metadata.process, None);
    assert_eq!(reader.diagnostics()[0].kind, DiagnosticKind::MetadataKey);
}

#[test]
fn says_how_the_session_ended() {
    let check = |trace: Trace, ending| {
        assert_eq!(Reader::open(&trace.write()).unwrap().ending(), ending);
    };
    check(Trace::new(), Ending::DidNotFinish);
    check(Trace::new().end(), Ending::Ended);
    check(Trace::new().metadata(json!({"record": {"signal": 9}})), Ending::Killed(9));
}

#[test]
fn reads_the_trace_of_a_running_process() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let started: u64 = fields.nth(19).unwrap().parse().unwrap();
    let trace = Trace::of_process(std::process::id(), json!({"process": {"started": started}}))
        .spooled(chunk(1, 0), ChunkState::FULL, &words(1))
        .spooled(chunk(1, 1), ChunkState::ACTIVE, &words(2));
    let path = trace.write();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.ending(), Ending::Running);
    let refused =
        omptrace_trace_format::seal(&path, json!({}), omptrace_trace_format::InDoubt::Refuse, &mut |_, _| ());
    assert!(matches!(refused, Err(omptrace_trace_format::SealError::Running)));

    // The process continues: it reuses the first chunk, and extends the second one.
    let later = Trace::new().spooled(chunk(1, 2), ChunkState::ACTIVE, &words(3)).spooled(
        chunk(1, 1),
        ChunkState::FULL,
        &[words(2), words(2)].concat(),
    );
    let later = std::fs::read(default_path(&later.write())).unwrap();
    overwrite(&default_path(&path), &later);
    let found = read_all(&reader);
    assert_eq!(found.kinds(), [DiagnosticKind::SpoolRecycled]);
    assert_eq!(found.events.len(), 2 * ROWS);
}

/// The chunk was written to the file after the file's blocks were listed.
#[test]
fn reads_a_chunk_that_became_free_since_it_was_listed() {
    let spooled = |state| {
        let trace = Trace::new().spooled(chunk(1, 0), state, &words(1));
        std::fs::read(default_path(&trace.write())).unwrap()
    };
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::FULL, &words(1));
    let path = trace.write();
    let mut taken = spooled(ChunkState::FREE);
    let published = FILE_HEADER_BYTES + 7 * 8;
    taken[published..published + 8].fill(0);
    for later in [spooled(ChunkState::FREE), taken] {
        trace.write();
        let reader = Reader::open(&path).unwrap();
        overwrite(&default_path(&path), &later);
        let found = read_all(&reader);
        assert_eq!((found.kinds(), found.events.len()), (vec![], ROWS));
        assert_eq!(read(&path).events, [], "it is not listed again");
    }
}

#[test]
fn says_that_the_spool_is_gone() {
    check(Trace::new().raw(chunk(1, 0), &words(1)), ROWS, &[DiagnosticKind::SpoolMissing]);
}

#[test]
fn threads_may_share_a_reader() {
    fn check<T: Send + Sync>() {}
    check::<Reader>();
    check::<omptrace_trace_format::Events<'_>>();
}

#[test]
fn does_not_trust_an_index_whose_blocks_overlap() {
    let words = words(1);
    let mut trace = Trace::new().raw(chunk(1, 0), &words).end();
    let at = FILE_HEADER_BYTES as u64;
    let mut index = Index::default();
    for _ in 0..2 {
        index.push(at, &trace.file()[FILE_HEADER_BYTES..][..BLOCK_HEADER_BYTES]);
    }
    let index = index.finish(SESSION, trace.file().len() as u64);
    trace = trace.bytes(&index);
    check(trace, ROWS, &[DiagnosticKind::IndexDamaged]);
}

#[test]
fn refuses_what_is_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for bytes in [&b""[..], b"OMPT", b"OMPTRACE", b"#!/bin/sh\n", &[0; 10_000]] {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(Reader::open(&path), Err(OpenError::Header(_))), "{bytes:?}");
    }
}

#[test]
fn takes_no_more_than_its_limits() {
    let mut trace = Trace::new();
    for stream in 1..100 {
        trace = trace.raw(chunk(stream, 0), &words(1));
    }
    let trace = trace.end();
    let path = trace.write();
    let check = |limits, events| {
        let found = read_all(&Reader::open_with(&path, limits).unwrap());
        assert!(found.kinds().contains(&DiagnosticKind::LimitReached));
        assert_eq!(found.events.len(), events);
    };
    let limits = Limits::default();
    check(Limits { max_streams: 3, ..limits.clone() }, 3 * ROWS);
    check(Limits { max_blocks: 5, ..limits.clone() }, 4 * ROWS);
    check(Limits { max_chunk_bytes: 64, ..limits.clone() }, 0);
    check(Limits { max_metadata_bytes: 8, ..limits }, 99 * ROWS);
}

#[test]
fn a_small_chunk_may_not_unpack_to_a_large_one() {
    let zeros = vec![1; 1 << 20];
    let mut packer = Packer::new(1, zeros.len()).unwrap();
    let bomb = packer.pack(&zeros).unwrap().payload.len() + BLOCK_HEADER_BYTES;
    let trace = Trace::new().packed(chunk(1, 0), &zeros).end();
    let limits = Limits { max_chunk_bytes: 2 * bomb, ..Limits::default() };
    let found = read_all(&Reader::open_with(&trace.write(), limits).unwrap());
    assert_eq!(found.kinds(), [DiagnosticKind::ChunkDamaged]);
}

#[test]
fn time_is_the_clocks() {
    let event = SyncRegion {
        endpoint: ompt_sys::ompt_scope_endpoint_t(1),
        kind: ompt_sys::ompt_sync_region_t(1),
        parallel_data: Id(1),
        task_data: Id(2),
        codeptr_ra: Address(3),
    };
    let words = encode(0, &[event.into(), event.into()]);
    let trace = Trace::new().raw(chunk(1, 0), &words).raw(chunk(1, 1), &words).end();
    let reader = Reader::open(&trace.write()).unwrap();
    let ns: Vec<i64> =
        read_all(&reader).events.iter().map(|(_, ticks, _)| reader.clock().ns(*ticks)).collect();
    // 100 ticks of 2 GHz are 50 ns; the chunks are one second apart.
    assert_eq!(ns, [0, 50, 1_000_000_000, 1_000_000_050]);
    assert_eq!(reader.clock().start_realtime_ns(), 1_700_000_000_000_000_000);
    assert_eq!(reader.clock().realtime_uncertainty_ns(), 20);
}
