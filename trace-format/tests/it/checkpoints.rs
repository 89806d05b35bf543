//! Checkpoints in a file: with and without a summary, written once and repeatedly, and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use omptrace_trace_format::checkpoint::{Checkpoint, Packed};
use omptrace_trace_format::seal::InDoubt;
use omptrace_trace_format::{Reader, seal, summary};
use serde_json::Value;
use tempfile::TempDir;

use crate::build::{Trace, chunk, encode, read_all, some_events};

const SUMMARY: &[u8] = b"a summary, a summary, a summary, a summary, a summary, a summary";

/// A sealed trace of two streams.
fn sealed(folder: &TempDir) -> PathBuf {
    let words = |stream, sequence| {
        let chunk = chunk(stream, sequence);
        encode(chunk.first_id, &some_events(u64::from(stream * 8 + sequence)))
    };
    let trace = Trace::new()
        .packed(chunk(1, 0), &words(1, 0))
        .packed(chunk(1, 1), &words(1, 1))
        .packed(chunk(2, 0), &words(2, 0))
        .end();
    let path = trace.write();
    seal(&path, Value::Null, InDoubt::Refuse, &mut |_, _| ()).unwrap();
    let own = folder.path().join("a.omptrace");
    fs::copy(path, &own).unwrap();
    own
}

/// Checkpoints at these ticks, containing the first events of the trace.
fn checkpoints(reader: &Reader, ticks: &[u64]) -> Vec<Packed> {
    let of = |ticks: &u64| {
        let first = &reader.streams()[0];
        let events = reader.events(first).take(20);
        let checkpoint = Checkpoint {
            ticks: *ticks,
            words: format!("at {ticks}, {}", "and so on".repeat(20)).into_bytes(),
            events: events.map(|record| (first.number, record)).collect(),
        };
        checkpoint.pack().expect("a small one")
    };
    ticks.iter().map(of).collect()
}

fn write(path: &Path, text: &[u8], ticks: &[u64]) -> bool {
    let reader = Reader::open(path).unwrap();
    let checkpoints = checkpoints(&reader, ticks);
    summary::write(&reader, text, &checkpoints).is_ok()
}

fn ticks(path: &Path) -> Vec<u64> {
    let reader = Reader::open(path).unwrap();
    let all: Vec<u64> = reader.checkpoint_ticks().collect();
    for ticks in &all {
        let checkpoint = reader.checkpoint(*ticks).expect("a sound one");
        let first = reader.events(&reader.streams()[0]).take(20);
        let events: Vec<_> = checkpoint.events.into_iter().map(|(_, record)| record).collect();
        assert_eq!(events, first.collect::<Vec<_>>());
        assert!(checkpoint.words.starts_with(format!("at {ticks},").as_bytes()));
    }
    all
}

#[test]
fn the_newest_checkpoints_replace_those_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = sealed(&folder);
    let bytes = fs::read(&path).unwrap();
    assert!(ticks(&path).is_empty());

    assert!(write(&path, SUMMARY, &[500, 700, 900]));
    assert_eq!(ticks(&path), [500, 700, 900]);
    assert!(summary::read(&path).unwrap().is_some());
    let summary = *Reader::open(&path).unwrap().summary();
    let more = fs::metadata(&path).unwrap().len() - bytes.len() as u64;
    assert_eq!(summary.checkpoints, 3);
    assert_eq!(summary.summary_bytes + summary.checkpoint_bytes, more);

    // An empty summary is not written, but does not prevent writing checkpoints.
    assert!(!write(&path, b"", &[800]));
    assert_eq!(ticks(&path), [800]);
    assert!(summary::read(&path).unwrap().is_none());

    assert!(write(&path, SUMMARY, &[]));
    assert!(ticks(&path).is_empty());
    assert!(summary::read(&path).unwrap().is_some());
}

/// If any byte after the chunks is damaged, all events are still read, and no other data appears.
#[test]
fn damaged_checkpoints_are_none_and_harm_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = sealed(&folder);
    let plain = fs::read(&path).unwrap();
    let all = read_all(&Reader::open(&path).unwrap()).events.len();
    assert!(write(&path, SUMMARY, &[500, 700]));
    let sound = fs::read(&path).unwrap();
    let common = sound.iter().zip(&plain).take_while(|(a, b)| a == b).count();
    let mut read = 0;
    for at in (common..sound.len()).step_by(5) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x20;
        fs::write(&path, &bytes).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(read_all(&reader).events.len(), all, "byte {at} is another one");
        for ticks in [500, 700] {
            let checkpoint = reader.checkpoint(ticks);
            read += usize::from(checkpoint.is_some());
            let is_whole = |checkpoint: Checkpoint| checkpoint.events.len() == 20;
            assert!(checkpoint.is_none_or(is_whole), "byte {at} is another one");
        }
        fs::write(&path, &sound[..at]).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(read_all(&reader).events.len(), all, "cut at {at}");
        assert_eq!(reader.checkpoint_ticks().count(), 0);
    }
    assert!(read > 0, "a block that is sound was never read");
}

#[test]
fn events_are_read_from_the_last_chunk_that_has_begun() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(&sealed(&folder)).unwrap();
    let stream = &reader.streams()[0];
    let all: Vec<_> = reader.events(stream).collect();
    let second = chunk(1, 1).clock.ticks;
    let late: Vec<_> = reader.events_from(stream, second).collect();
    assert!(!late.is_empty() && late.len() < all.len());
    assert_eq!(late[..], all[all.len() - late.len()..]);
    for ticks in [0, second - 1] {
        assert_eq!(reader.events_from(stream, ticks).count(), all.len());
    }
    assert_eq!(reader.events_from(stream, u64::MAX).count(), late.len());
}
