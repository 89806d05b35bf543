//! Saves the newest part of a running program's trace as a trace of its own: a flight recorder from outside.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::event::Event;
use crate::layout::block::{Codec, FileHeader};
use crate::live::follow::encoder::Encoder;
use crate::read::chunks::is_same_chunk;
use crate::read::reader::{Reader, Record, Stream};
use crate::write::blocks::{chunk_header, metadata_block, push_words};

/// Keys of the metadata that are true only of the whole trace.
const OF_WHOLE_TRACE: &[&str] = &["lock", "record", "end", "found_while_sealing"];

/// Writes a trace of the events since `from` (raw ticks) to `out`, and returns its number of chunks. Some earlier
/// events are included, because chunks stay whole. From each stream's first chunk, the trace has the events that
/// describe the thread, and the modules. It looks like the trace of a flight recorder that is not sealed.
///
/// # Errors
/// `out` cannot be written to. Chunks that cannot be read are left out.
pub fn save(reader: &Reader, from: u64, out: &mut dyn Write) -> io::Result<u64> {
    let session = reader.header().session;
    let header = FileHeader::of_trace(session, reader.header().pid, &[]);
    out.write_all(&header.encode())?;
    let mut metadata = reader.metadata_object();
    metadata.retain(|key, _| !OF_WHOLE_TRACE.contains(&&key[..]));
    let settings = metadata.entry("settings").or_insert_with(|| json!({}));
    if let Value::Object(settings) = settings {
        settings.insert("OMPTRACE_MODE".to_owned(), "flight".into());
    }
    metadata.insert("end".to_owned(), json!({ "how": "saved while the program ran" }));
    let start = reader.metadata_clocks().first().copied();
    out.write_all(&metadata_block(session, start.unwrap_or_default(), &metadata))?;
    let (mut chunks, mut payload, mut saved) = (reader.chunks(), Vec::new(), 0);
    for stream in reader.streams() {
        let of_stream: Vec<_> = reader.copies_of(stream).chunk_by(is_same_chunk).collect();
        // A chunk has ended when the next one starts.
        let is_over = |place: usize| {
            let next = of_stream.get(place + 1);
            next.is_some_and(|next| next[0].chunk().clock.ticks < from)
        };
        let first = (0..of_stream.len()).find(|place| !is_over(*place));
        let Some((first, begin)) = first.zip(first.and_then(|first| of_stream.get(first))) else {
            continue;
        };
        if first > 0 {
            let begin = begin[0].chunk().clock.ticks;
            out.write_all(&introduction(reader, stream, begin))?;
        }
        for copies in &of_stream[first..] {
            let Some(stored) = chunks.read(copies) else {
                continue;
            };
            payload.clear();
            push_words(&mut payload, &chunks.words);
            let words = chunks.words.len() as u32;
            let header = chunk_header(session, &stored.chunk(), words, 0, Codec::RAW, &payload);
            out.write_all(&header)?;
            out.write_all(&payload)?;
            saved += 1;
        }
    }
    Ok(saved)
}

/// Encodes a chunk with the events of the first chunk of `stream` that describe its thread, and the modules, all at
/// time `ticks`.
fn introduction(reader: &Reader, stream: &Stream, ticks: u64) -> Vec<u8> {
    let mut chunk = Vec::new();
    let session = reader.header().session;
    let mut encoder = Encoder::new(session, stream.number, reader.clock(), &mut chunk);
    for record in reader.first_events(stream) {
        let is_wanted = matches!(
            record.event,
            Event::ThreadInfo(_)
                | Event::ThreadBegin(_)
                | Event::DeviceStream(_)
                | Event::SampleStream(_)
                | Event::Module(_)
        );
        if is_wanted {
            encoder.push(&Record { ticks, ..record });
        }
    }
    encoder.end_chunk();
    chunk
}
