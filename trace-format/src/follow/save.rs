//! The newest part of a trace as a trace of its own, while its program runs: a flight recorder from outside.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::block::{Codec, FileHeader};
use crate::chunks::is_same_chunk;
use crate::reader::Reader;
use crate::writer::{chunk_header, metadata_block, push_words};

/// The keys of the metadata that hold for the whole trace alone.
const OF_WHOLE_TRACE: &[&str] = &["lock", "record", "end", "found_while_sealing"];

/// Writes to `out` a trace of the events from `from` on, in raw ticks. Some earlier ones are in it, since chunks stay whole. The
/// first chunk of each stream is in it, where its thread introduces itself. It is a trace of a flight recorder, which is not
/// sealed. Gives how many chunks it has.
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
    metadata.insert("end".to_owned(), json!({ "how": "saved while it ran" }));
    let start = reader.metadata_clocks().first().copied();
    out.write_all(&metadata_block(
        session,
        start.unwrap_or_default(),
        &metadata,
    ))?;
    let (mut chunks, mut payload, mut saved) = (reader.chunks(), Vec::new(), 0);
    for stream in reader.streams() {
        let of_stream: Vec<_> = reader.copies_of(stream).chunk_by(is_same_chunk).collect();
        // A chunk ends before the next one begins.
        let is_over = |place: usize| {
            let next = of_stream.get(place + 1);
            next.is_some_and(|next| next[0].chunk().clock.ticks < from)
        };
        for (place, copies) in of_stream.iter().enumerate() {
            let is_first = copies[0].chunk().sequence == 0;
            if is_over(place) && !is_first {
                continue;
            }
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
