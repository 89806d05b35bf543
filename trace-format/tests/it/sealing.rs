//! Sealing keeps every event, and does nothing twice.

use std::fs;
use std::path::Path;

use omptrace_trace_format::block::{BLOCK_MAGIC, ChunkState, ClockPair, SEALED_HEADER_BYTES};
use omptrace_trace_format::event::{Event, Lost};
use omptrace_trace_format::field::Ticks;
use omptrace_trace_format::seal::temporary;
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{DiagnosticKind, Ending, Limits, Reader, Sealed, Severity, seal};
use serde_json::{Value, json};

use crate::build::{Trace, chunk, clock, encode, read, some_events};

fn words(seed: u64) -> Vec<u64> {
    encode(chunk(1, 0).first_id, &some_events(seed))
}

/// Seals a trace and checks that the same events are in it, and that sealing again changes nothing.
fn check(trace: &Trace, additions: Value) -> Sealed {
    let path = trace.write();
    let before = read(&path);
    let sealed = seal(&path, additions.clone(), &mut |_, _| ()).unwrap();
    let after = read(&path);
    assert_eq!(after.events, before.events);
    assert_eq!(sealed.events, after.events.len() as u64);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(sealed.bytes, bytes.len() as u64);
    let again = seal(&path, additions, &mut |_, _| ()).unwrap();
    assert_eq!(
        (again.events, again.lost, again.bytes),
        (sealed.events, sealed.lost, sealed.bytes)
    );
    assert!(
        fs::read(&path).unwrap() == bytes,
        "sealing again changed the file"
    );
    let folder = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1, "the trace alone is left");
    sealed
}

#[test]
fn packs_and_indexes() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .packed(chunk(2, 0), &words(2))
        .end();
    let sealed = check(&trace, json!({"record": {"command_line": ["true"]}}));
    assert_eq!((sealed.streams, sealed.diagnostics), (2, vec![]));
    let reader = Reader::open(&trace.path()).unwrap();
    let summary = reader.summary();
    assert!(summary.sealed && summary.chunks_raw == 0 && summary.chunks_packed == 2);
    assert_eq!(
        reader.metadata().record.as_ref().unwrap().command_line,
        ["true"]
    );
    assert_eq!(reader.ending(), Ending::Ended);
}

#[test]
fn packs_metadata() {
    let addresses = vec!["0x55e1d246533e"; 10_000];
    let long = json!({"settings": {"OMPTRACE_EVENTS": addresses.concat()}, "unknown": addresses});
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .metadata(long)
        .end();
    let path = trace.write();
    let before = Reader::open(&path).unwrap();
    let sealed = check(&trace, json!({}));
    assert!(sealed.bytes < 20_000, "{} bytes", sealed.bytes);
    let after = Reader::open(&path).unwrap();
    assert_eq!(after.metadata(), before.metadata());
    assert_eq!(after.diagnostics(), before.diagnostics());

    // What is packed counts as what it unpacks to.
    let limits = Limits {
        max_metadata_bytes: 200_000,
        ..Limits::default()
    };
    let limited = Reader::open_with(&path, limits).unwrap();
    let kinds = limited.diagnostics().iter().map(|found| found.kind);
    assert!(
        kinds
            .collect::<Vec<_>>()
            .contains(&DiagnosticKind::LimitReached)
    );
}

/// One block of metadata, and no clock that tells nothing.
#[test]
fn is_short_and_keeps_the_time() {
    let moment = |ms: u64| {
        let start = clock(0);
        ClockPair {
            // The clock drifts.
            ticks: start.ticks + ms * 2_000_000 + ms * ms / 100,
            monotonic_raw_ns: start.monotonic_raw_ns + ms * 1_000_000,
            realtime_ns: start.realtime_ns + ms * 1_000_000,
        }
    };
    let trace = Trace::new()
        .metadata_at(moment(1), json!({"process": {"executable": "/bin/true"}}))
        .metadata_at(moment(300), json!({"processors": [0]}))
        .metadata_at(moment(1_700), json!({"messages": []}))
        .metadata_at(moment(1_800), json!({"end": {"how": "finalize"}}));
    let path = trace.write();
    let before = Reader::open(&path).unwrap();
    check(&trace, json!({"record": {"command_line": ["true"]}}));
    let after = Reader::open(&path).unwrap();
    assert_eq!(after.clock(), before.clock());
    assert_eq!(
        after.metadata().process.as_ref().unwrap().executable,
        "/bin/true"
    );
    let bytes = fs::read(&path).unwrap();
    let blocks = bytes.windows(8).filter(|window| *window == BLOCK_MAGIC);
    assert_eq!(
        blocks.count() - 1,
        2 * 3,
        "the start's, two clocks; the index and its copies"
    );
    assert!(bytes[SEALED_HEADER_BYTES..].starts_with(&BLOCK_MAGIC));
}

#[test]
fn takes_the_spool_of_a_killed_process_in() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .spooled(chunk(1, 0), ChunkState::FULL, &words(1))
        .spooled(chunk(1, 1), ChunkState::ACTIVE, &words(2))
        .spooled(chunk(2, 0), ChunkState::ACTIVE, &words(3));
    let sealed = check(&trace, json!({"record": {"signal": 9}}));
    assert_eq!(sealed.events as usize, 3 * Event::ROWS);
    let reader = Reader::open(&trace.path()).unwrap();
    assert_eq!(reader.ending(), Ending::Killed(9));
    assert_eq!(reader.diagnostics(), []);
    assert!(!default_path(&trace.path()).exists());
}

#[test]
fn leaves_the_spool_of_the_original_when_a_copy_is_sealed() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join(path.file_name().unwrap());
    fs::copy(&path, &copy).unwrap();
    fs::copy(default_path(&path), default_path(&copy)).unwrap();
    let sealed = seal(&copy, Value::Null, &mut |_, _| ()).unwrap();
    assert_eq!(sealed.events as usize, Event::ROWS);
    assert!(!default_path(&copy).exists());
    assert_eq!(read(&path).events.len(), Event::ROWS);
}

#[test]
fn keeps_what_turned_tracing_off() {
    for state in [ChunkState::ACTIVE, ChunkState::FREE] {
        let trace = Trace::new()
            .spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1))
            .spooled(chunk(1, 1), state, &words(2))
            .failed(28);
        let sealed = check(&trace, Value::Null);
        assert!(!sealed.is_whole());
        let reader = Reader::open(&trace.path()).unwrap();
        assert_eq!(reader.diagnostics(), []);
        let told = reader.metadata().told_failure().unwrap();
        assert!(
            told.ends_with("No space left on device (os error 28)"),
            "{told}"
        );
    }
    let damaged = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    assert!(check(&damaged.failed(1 << 12), Value::Null).is_whole());
}

#[test]
fn keeps_a_chunk_with_a_cut_tail_raw() {
    let mut cut = words(1);
    cut.push(5 << 6 | 63);
    check(
        &Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &cut),
        Value::Null,
    );
}

#[test]
fn adds_up_what_was_lost() {
    let lost = |events| {
        Event::from(Lost {
            begin: Ticks(0),
            events,
        })
    };
    let words = encode(0, &[lost(3), lost(4)]);
    let sealed = check(&Trace::new().raw(chunk(1, 0), &words).end(), Value::Null);
    assert_eq!((sealed.events, sealed.lost), (2, 7));
}

#[test]
fn tells_what_it_left_out() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .bytes(b"garbage.")
        .end();
    let sealed = check(&trace, Value::Null);
    assert_eq!(sealed.diagnostics[0].kind, DiagnosticKind::BytesSkipped);
    let told = told(&trace.path());
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        told.starts_with("error: found while sealing: 8 bytes are no block"),
        "{told}"
    );
    let again = seal(&trace.path(), Value::Null, &mut |_, _| ()).unwrap();
    assert!(!again.is_whole());
}

#[test]
fn tells_of_each_damage_once() {
    // Two chunks are missing, which every reader sees; the first is in no stream's middle.
    let gap = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .raw(chunk(1, 3), &words(2))
        .end();
    let path = gap.write();
    let before = told(&path);
    assert_eq!(before.len(), 1);
    for _ in 0..3 {
        seal(&path, Value::Null, &mut |_, _| ()).unwrap();
        assert_eq!(told(&path), before);
    }

    // A sealed trace is cut, and what is left is sealed; then again.
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .raw(chunk(2, 0), &words(2))
        .end();
    let path = trace.write();
    seal(&path, Value::Null, &mut |_, _| ()).unwrap();
    let mut known = 0;
    for round in 0..2 {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
        for index in 0..2 {
            seal(&path, json!({"added": round * 2 + index}), &mut |_, _| ()).unwrap();
        }
        let told = told(&path);
        assert!(told.len() > known, "round {round}: {told:?}");
        let mut different = told.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), told.len(), "{told:?}");
        known = told.len();
    }
}

#[test]
fn knows_what_a_newer_sealing_found() {
    let found = json!([{"severity": "error", "kind": "newer", "text": "words", "count": 3}, {}]);
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(1))
        .metadata(json!({"found_while_sealing": found}))
        .end();
    let path = trace.write();
    seal(&path, Value::Null, &mut |_, _| ()).unwrap();
    let reader = Reader::open(&path).unwrap();
    let found = reader.diagnostics();
    let [newer, empty] = found else {
        panic!("{found:?}");
    };
    assert_eq!(
        (newer.kind, newer.severity, newer.count),
        (DiagnosticKind::UnknownFlaw, Severity::Error, 3)
    );
    assert_eq!(empty.severity, Severity::Warning);
    assert_eq!(reader.metadata().found_while_sealing[0].kind, "newer");
}

/// What a reader tells of the trace at `path`.
fn told(path: &Path) -> Vec<String> {
    let reader = Reader::open(path).unwrap();
    let diagnostics = reader.diagnostics().iter();
    diagnostics.map(ToString::to_string).collect()
}

#[test]
fn follows_no_link_in_the_place_of_the_unfinished_file() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).end();
    let path = trace.write();
    let victim = path.with_file_name("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, temporary(&path)).unwrap();
    seal(&path, json!({}), &mut |_, _| ()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!path.is_symlink() && Reader::open(&path).unwrap().summary().sealed);
}

#[test]
fn a_trace_with_the_longest_name_can_be_sealed() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).end();
    let path = trace.write();
    let long = path.with_file_name("x".repeat(255));
    fs::rename(&path, &long).unwrap();
    seal(&long, json!({}), &mut |_, _| ()).unwrap();
    assert!(Reader::open(&long).unwrap().summary().sealed);
}
