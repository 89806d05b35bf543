//! A sample trace of each format version is kept, and must remain readable.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use omptrace_trace_format::{Reader, seal, summary};
use serde_json::Value;

use crate::build::{Trace, chunk, encode, is_blessing, read_all, some_events};

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

/// The sample's content as text, with a line for each event.
fn dump(reader: &Reader) -> String {
    let found = read_all(reader);
    let mut text = format!("{:?}\n{:?}\n{:?}\n", reader.header(), reader.summary(), reader.metadata().tracer);
    for diagnostic in &found.diagnostics {
        writeln!(text, "{diagnostic}").unwrap();
    }
    for (stream, ticks, event) in &found.events {
        let ns = reader.clock().ns(*ticks);
        write!(text, "{stream} {ns} {}", event.name()).unwrap();
        event.visit(&mut |name, value| write!(text, " {name}={value:?}").unwrap());
        text.push('\n');
    }
    text
}

/// Every row of version 1, raw and packed chunks, an index, and an event of a later tracer.
fn make_v1() -> Vec<u8> {
    let later = [1 << 6 | 63, 4000, 5];
    let words = |stream, sequence| {
        let chunk = chunk(stream, sequence);
        encode(chunk.first_id, &some_events(u64::from(stream * 8 + sequence)))
    };
    // Sealing stores a chunk raw if its last event is cut off.
    let cut = [&words(2, 0)[..], &[63]].concat();
    let trace = Trace::new()
        .packed(chunk(1, 0), &words(1, 0))
        .raw(chunk(1, 1), &[&words(1, 1)[..], &later].concat())
        .raw(chunk(2, 0), &cut)
        .end();
    let path = trace.write();
    seal(&path, Value::Null, omptrace_trace_format::InDoubt::Refuse, &mut |_, _| ()).unwrap();
    fs::read(path).unwrap()
}

/// The sample's header is a page; later versions gave sealed files a short header.
#[test]
fn version_1_is_read() {
    check("v1");
    check("v1-short");
}

/// A reader that does not use the summary skips its block.
#[test]
fn version_1_with_a_summary_is_read() {
    const TEXT: &[u8] = b"{\"version\":0}\n{\"of\":\"nobody, nobody, nobody, nobody, nobody\"}";

    let (trace, short) = (sample("v1-summary.omptrace"), sample("v1-short.omptrace"));
    if is_blessing() && !trace.exists() {
        fs::copy(&short, &trace).unwrap();
        summary::write(&Reader::open(&trace).unwrap(), TEXT, &[]).unwrap();
    }
    check("v1-summary");
    let packed = summary::read(&trace).unwrap().expect("a summary");
    assert_eq!(packed.text().as_deref(), Some(TEXT));
    assert!(summary::read(&short).unwrap().is_none());
    let events = |path: &Path| read_all(&Reader::open(path).unwrap()).events;
    assert_eq!(events(&trace), events(&short));
}

/// If any byte of the summary or of the index after it is damaged, all events are still read.
#[test]
fn a_damaged_summary_is_none_and_harms_no_event() {
    let sound = fs::read(sample("v1-summary.omptrace")).unwrap();
    let short = fs::read(sample("v1-short.omptrace")).unwrap();
    let events = |path: &Path| read_all(&Reader::open(path).unwrap()).events.len();
    let all = events(&sample("v1-short.omptrace"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.omptrace");
    // The summary starts where the index was.
    let common = sound.iter().zip(&short).take_while(|(a, b)| a == b).count();
    for at in (common..sound.len()).step_by(7) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(events(&path), all, "byte {at} is another one");
        summary::read(&path).unwrap();
        fs::write(&path, &sound[..at]).unwrap();
        assert_eq!(events(&path), all, "cut at {at}");
        assert!(summary::read(&path).unwrap().is_none());
    }
}

fn check(name: &str) {
    let (trace, text) = (sample(&format!("{name}.omptrace")), sample(&format!("{name}.txt")));
    if is_blessing() && !trace.exists() {
        fs::write(&trace, make_v1()).unwrap();
    }
    let found = dump(&Reader::open(&trace).unwrap());
    if is_blessing() {
        fs::write(&text, &found).unwrap();
    }
    let expected = fs::read_to_string(&text).unwrap();
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
