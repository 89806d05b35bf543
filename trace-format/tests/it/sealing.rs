//! Sealing keeps every event, and changes a sealed trace only if necessary.

use std::fs;
use std::path::Path;

use omptrace_trace_format::block::{
    BLOCK_MAGIC, BlockHeader, BlockKind, Chunk, ChunkState, ClockPair, Codec, SEALED_HEADER_BYTES,
};
use omptrace_trace_format::event::{Event, Lost};
use omptrace_trace_format::field::Ticks;
use omptrace_trace_format::lock::{self, Purpose};
use omptrace_trace_format::seal::temporary;
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{
    DiagnosticKind, Doubt, Ending, InDoubt, Limits, Reader, SealError, Sealed, Severity, seal,
};
use serde_json::{Value, json};

use crate::build::{SESSION, Trace, chunk, clock, encode, read, some_events};

fn words(seed: u64) -> Vec<u64> {
    encode(chunk(1, 0).first_id, &some_events(seed))
}

/// Seals a trace, and checks that it keeps its events and that sealing again changes nothing.
fn check(trace: &Trace, additions: Value) -> Sealed {
    let path = trace.write();
    let before = read(&path);
    let sealed = seal(&path, additions.clone(), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    let after = read(&path);
    assert_eq!(after.events, before.events);
    assert_eq!(sealed.events, after.events.len() as u64);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(sealed.bytes, bytes.len() as u64);
    let again = seal(&path, additions, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!((again.events, again.lost, again.bytes), (sealed.events, sealed.lost, sealed.bytes));
    assert!(fs::read(&path).unwrap() == bytes, "sealing again changed the file");
    let folder = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1, "the trace alone is left");
    sealed
}

#[test]
fn packs_and_indexes() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).packed(chunk(2, 0), &words(2)).end();
    let sealed = check(&trace, json!({"record": {"command_line": ["true"]}}));
    assert_eq!((sealed.streams, sealed.diagnostics), (2, vec![]));
    let reader = Reader::open(&trace.path()).unwrap();
    let summary = reader.summary();
    assert!(summary.sealed && summary.chunks_raw == 0 && summary.chunks_packed == 2);
    assert_eq!(reader.metadata().record.as_ref().unwrap().command_line, ["true"]);
    assert_eq!(reader.ending(), Ending::Ended);
}

#[test]
fn packs_metadata() {
    let addresses = vec!["0x55e1d246533e"; 10_000];
    let long = json!({"settings": {"OMPTRACE_EVENTS": addresses.concat()}, "unknown": addresses});
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).metadata(long).end();
    let path = trace.write();
    let before = Reader::open(&path).unwrap();
    let sealed = check(&trace, json!({}));
    assert!(sealed.bytes < 20_000, "{} bytes", sealed.bytes);
    let after = Reader::open(&path).unwrap();
    assert_eq!(after.metadata(), before.metadata());
    assert_eq!(after.diagnostics(), before.diagnostics());

    // The limit applies to the unpacked size.
    let limits = Limits { max_metadata_bytes: 200_000, ..Limits::default() };
    let limited = Reader::open_with(&path, limits).unwrap();
    let kinds = limited.diagnostics().iter().map(|found| found.kind);
    assert!(kinds.collect::<Vec<_>>().contains(&DiagnosticKind::LimitReached));
}

/// A sealed trace has one metadata block, and only the clock pairs that matter.
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
    assert_eq!(after.metadata().process.as_ref().unwrap().executable, "/bin/true");
    let bytes = fs::read(&path).unwrap();
    let blocks = bytes.windows(8).filter(|window| *window == BLOCK_MAGIC);
    assert_eq!(blocks.count() - 1, 2 * 3, "the start's, two clocks; the index and its copies");
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
    let sealed = seal(&copy, Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!(sealed.events as usize, Event::ROWS);
    assert!(!default_path(&copy).exists());
    assert_eq!(read(&path).events.len(), Event::ROWS);
}

/// Files of other traces, or in another directory, are kept, however the trace was copied.
#[test]
fn leaves_the_spool_of_the_original_when_a_copy_without_one_is_sealed() {
    let elsewhere = tempfile::tempdir().unwrap();
    let other_folder = elsewhere.path().join("test.omptrace");
    type Bring = fn(&Path, &Path);
    let ways: [(&str, Bring); 3] = [
        ("copied", |from, to| _ = fs::copy(from, to).unwrap()),
        ("linked", |from, to| fs::hard_link(from, to).unwrap()),
        ("renamed", |from, to| fs::rename(from, to).unwrap()),
    ];
    for (way, bring) in ways {
        let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
        let same_folder = trace.path().with_file_name("copy.omptrace");
        for copy in [&other_folder, &same_folder] {
            let path = trace.write();
            let _ = fs::remove_file(copy);
            bring(&path, copy);
            let spool = default_path(&path);
            let before = fs::read(&spool).unwrap();
            let sealed = seal(copy, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
            assert_eq!(sealed.events as usize, Event::ROWS, "{way}");
            assert_eq!(fs::read(&spool).unwrap(), before, "{way}");
            assert_eq!(sealed.spool_left, Some(spool.clone()), "{way}");
            assert_eq!(read(copy).events.len(), Event::ROWS, "{way}");
            if way != "renamed" {
                assert_eq!(read(&path).events.len(), Event::ROWS, "{way}");
            }
        }
    }
}

#[test]
fn removes_a_spool_elsewhere_that_names_the_trace() {
    for names_the_trace in [true, false] {
        let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
        let elsewhere = tempfile::tempdir().unwrap();
        let path = trace.write_with_spool_in(elsewhere.path(), names_the_trace);
        let spool = elsewhere.path().join("test.omptrace.spool");
        let sealed = seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
        assert_eq!(sealed.events as usize, Event::ROWS);
        assert_eq!(spool.exists(), !names_the_trace);
        assert_eq!(sealed.spool_left, (!names_the_trace).then_some(spool));
    }
}

#[test]
fn a_spool_that_was_missing_can_be_added_later() {
    let trace = Trace::new().raw(chunk(2, 0), &words(2)).spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let (spool, away) = (default_path(&path), path.with_file_name("away"));
    fs::rename(&spool, &away).unwrap();
    for _ in 0..2 {
        let sealed = seal(&path, json!({"a": 1}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
        assert_eq!(sealed.events as usize, Event::ROWS);
        assert_eq!(findings(&path).len(), 1);
        assert!(Reader::open(&path).unwrap().summary().sealed);
    }
    fs::rename(&away, &spool).unwrap();
    let sealed = seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!(sealed.events as usize, 2 * Event::ROWS);
    assert_eq!(findings(&path), Vec::<String>::new());
    assert!(!spool.exists());
}

/// What is left if a program is killed right before each step of sealing.
#[test]
fn completes_what_a_killed_sealing_left() {
    let trace = || Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let done = trace();
    let sealed_path = done.write();
    seal(&sealed_path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    let sealed_bytes = fs::read(sealed_path).unwrap();
    for step in ["make", "write", "rename", "remove the spool"] {
        let trace = trace();
        let path = trace.write();
        // No process has this number.
        let half = path.with_file_name(format!("test.omptrace.sealing.{}", u32::MAX - 1));
        match step {
            "make" => {}
            "write" => fs::write(&half, &sealed_bytes[..sealed_bytes.len() / 2]).unwrap(),
            "rename" => fs::write(&half, &sealed_bytes).unwrap(),
            _ => fs::write(&path, &sealed_bytes).unwrap(),
        }
        let sealed = seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
        assert_eq!(sealed.events as usize, Event::ROWS, "{step}");
        assert_eq!(fs::read(&path).unwrap(), sealed_bytes, "{step}");
        let folder = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(folder.count(), 1, "{step}: the trace alone is left");
    }
}

/// As in a directory in which other users' files cannot be removed.
#[test]
fn a_spool_that_cannot_be_removed_is_no_failure() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let elsewhere = tempfile::tempdir().unwrap();
    let (folder, spool) = (elsewhere.path().join("folder"), default_path(&path));
    fs::create_dir(&folder).unwrap();
    let other = folder.join(spool.file_name().unwrap());
    fs::rename(&spool, &other).unwrap();
    // A link at the spool's path is not a spool, and its target is kept.
    std::os::unix::fs::symlink(&other, &spool).unwrap();
    let sealed = seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!(sealed.events as usize, Event::ROWS);
    assert!(Reader::open(&path).unwrap().summary().sealed);
    assert_eq!(sealed.spool_left, Some(spool));
    assert!(other.exists());
}

/// A block of a kind, or a chunk of a codec, that only a newer version knows.
#[test]
fn leaves_a_trace_alone_that_it_cannot_read_whole() {
    let newer_block = BlockHeader { kind: BlockKind(77), ..header_of(chunk(1, 1)) };
    let newer_codec = BlockHeader { codec: Codec(77), ..header_of(chunk(1, 1)) };
    for header in [newer_block, newer_codec] {
        let trace = Trace::new().raw(chunk(1, 0), &words(1)).bytes(&header.encode()).end();
        let path = trace.write();
        let before = fs::read(&path).unwrap();
        let refused = seal(&path, json!({}), InDoubt::Seal, &mut |_, _| ());
        assert!(matches!(refused, Err(SealError::Unreadable(_))));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}

fn header_of(chunk: Chunk) -> BlockHeader {
    BlockHeader {
        kind: BlockKind::CHUNK,
        codec: Codec::RAW,
        payload_bytes: 0,
        payload_crc: 0,
        stream: chunk.stream,
        sequence: chunk.sequence,
        clock: chunk.clock,
        first_id: chunk.first_id,
        words: 0,
        events: 0,
        session: SESSION,
    }
}

/// A process on another host that may still write: the trace is unchanged unless the caller insists.
#[test]
fn refuses_a_trace_whose_process_cannot_be_seen() {
    let trace = Trace::with_metadata(json!({
        "process": {"pid": 1, "started": 5},
        "machine": {"boot": "another"},
    }))
    .spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let before = (fs::read(&path).unwrap(), fs::read(default_path(&path)).unwrap());
    assert_eq!(Reader::open(&path).unwrap().ending(), Ending::Unknown(Doubt::OtherHost));
    let refused = seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ());
    assert!(matches!(refused, Err(SealError::Unknown(Doubt::OtherHost))));
    let after = (fs::read(&path).unwrap(), fs::read(default_path(&path)).unwrap());
    assert_eq!(before, after);

    // Even a caller that insists cannot seal while the process holds the lock.
    let tracer = fs::File::options().write(true).open(&path).unwrap();
    assert!(lock::take(&tracer, Purpose::Recording).unwrap());
    let refused = seal(&path, json!({}), InDoubt::Seal, &mut |_, _| ());
    assert!(matches!(refused, Err(SealError::Running)));
    drop(tracer);
    let sealed = seal(&path, json!({}), InDoubt::Seal, &mut |_, _| ()).unwrap();
    assert_eq!(sealed.events as usize, Event::ROWS);
}

#[test]
fn several_programs_seal_one_after_the_other() {
    let trace = Trace::new().raw(chunk(2, 0), &words(2)).spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    let path = trace.write();
    let sealed: Vec<_> = std::thread::scope(|scope| {
        let seal = |index| {
            let path = &path;
            scope.spawn(move || {
                let additions = json!({format!("by{index}"): index});
                seal(path, additions, InDoubt::Refuse, &mut |_, _| ())
            })
        };
        let running: Vec<_> = (0..8).map(seal).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for sealed in sealed {
        assert_eq!(sealed.unwrap().events as usize, 2 * Event::ROWS);
    }
    let reader = Reader::open(&path).unwrap();
    let additions = reader.metadata().other.keys().filter(|key| key.starts_with("by"));
    assert_eq!(additions.count(), 8);
    assert_eq!(findings(&path), Vec::<String>::new());
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
        let found = reader.metadata().failure_message().unwrap();
        assert!(found.ends_with("No space left on device (os error 28)"), "{found}");
    }
    let damaged = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(1));
    assert!(check(&damaged.failed(1 << 12), Value::Null).is_whole());
}

#[test]
fn keeps_a_chunk_with_a_cut_tail_raw() {
    let mut cut = words(1);
    cut.push(5 << 6 | 63);
    check(&Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &cut), Value::Null);
}

#[test]
fn adds_up_what_was_lost() {
    let lost = |events| Event::from(Lost { begin: Ticks(0), events });
    let words = encode(0, &[lost(3), lost(4)]);
    let sealed = check(&Trace::new().raw(chunk(1, 0), &words).end(), Value::Null);
    assert_eq!((sealed.events, sealed.lost), (2, 7));
}

#[test]
fn reports_what_it_left_out() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).bytes(b"garbage.").end();
    let sealed = check(&trace, Value::Null);
    assert_eq!(sealed.diagnostics[0].kind, DiagnosticKind::BytesSkipped);
    let found = findings(&trace.path());
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(
        found.starts_with("error: found while finishing the trace: 8 bytes do not form a block"),
        "{found}"
    );
    let again = seal(&trace.path(), Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert!(!again.is_whole());
}

#[test]
fn reports_each_damage_once() {
    // Two chunks are missing in the middle of a stream, which every reader detects.
    let gap = Trace::new().raw(chunk(1, 0), &words(1)).raw(chunk(1, 3), &words(2)).end();
    let path = gap.write();
    let before = findings(&path);
    assert_eq!(before.len(), 1);
    for _ in 0..3 {
        seal(&path, Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
        assert_eq!(findings(&path), before);
    }

    // A sealed trace is cut and sealed; then again.
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).raw(chunk(2, 0), &words(2)).end();
    let path = trace.write();
    seal(&path, Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    let mut known = 0;
    for round in 0..2 {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
        for index in 0..2 {
            seal(&path, json!({"added": round * 2 + index}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
        }
        let found = findings(&path);
        assert!(found.len() > known, "round {round}: {found:?}");
        let mut different = found.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), found.len(), "{found:?}");
        known = found.len();
    }
}

#[test]
fn knows_what_a_newer_sealing_found() {
    let found = json!([{"severity": "error", "kind": "newer", "text": "words", "count": 3}, {}]);
    let trace =
        Trace::new().raw(chunk(1, 0), &words(1)).metadata(json!({"found_while_sealing": found})).end();
    let path = trace.write();
    seal(&path, Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    let reader = Reader::open(&path).unwrap();
    let found = reader.diagnostics();
    let [newer, empty] = found else {
        panic!("{found:?}");
    };
    assert_eq!((newer.kind, newer.severity, newer.count), (DiagnosticKind::UnknownFlaw, Severity::Error, 3));
    assert_eq!(empty.severity, Severity::Warning);
    assert_eq!(reader.metadata().found_while_sealing[0].kind, "newer");
}

/// The diagnostics of a reader of the trace at `path`.
fn findings(path: &Path) -> Vec<String> {
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
    seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!path.is_symlink() && Reader::open(&path).unwrap().summary().sealed);
}

#[test]
fn a_trace_with_the_longest_name_can_be_sealed() {
    let trace = Trace::new().raw(chunk(1, 0), &words(1)).end();
    let path = trace.write();
    let long = path.with_file_name("x".repeat(255));
    fs::rename(&path, &long).unwrap();
    seal(&long, json!({}), InDoubt::Refuse, &mut |_, _| ()).unwrap();
    assert!(Reader::open(&long).unwrap().summary().sealed);
}
