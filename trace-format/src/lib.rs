//! The omptrace trace file: event table, chunks, codecs, writer, reader, diagnostics.
//!
//! ```text
//!  event table (event, field, predict)          one row per event
//!      |                        |
//!      v encode                 v decode
//!  words of a chunk --codec--> block --writer--> +-------------+-------+-----+-------+- - - - -+
//!      |                                         | file header | block | ... | block |  index  |
//!      v when the process dies                   +-------------+-------+-----+-------+- - - - -+
//!   spool ----------------------------------------------+ reader (scan, spool, clock)
//!                                                       v
//!                                        streams of events, and diagnostics
//! ```
//!
//! [`block`] describes the bytes of the file and the spool, [`codec`] those of packed chunks, and [`event`] the words
//! of events; `docs/format.md` describes all of them. Three promises:
//!
//! - **Reading never panics**, and takes no more memory than [`Limits`] allows, whatever the file contains.
//! - **Everything readable is read**: from a damaged trace, the reader returns all undamaged parts, and a
//!   [`Diagnostic`] for each damaged one.
//! - The crate reads facts and does not interpret them: it reports that `sync_region` was called, not what the program
//!   waited for.
//!
//! An example that writes and reads a trace of one event:
//!
//! ```
//! use omptrace_trace_format::block::{Chunk, ClockPair, Codec, FileHeader};
//! use omptrace_trace_format::event::ThreadBegin;
//! use omptrace_trace_format::field::Id;
//! use omptrace_trace_format::predict::State;
//! use omptrace_trace_format::blocks::{chunk_header, metadata_block, push_words};
//! use omptrace_trace_format::{Event, Reader};
//!
//! // The tracer's part: the words of an event, 20 ticks after its chunk's base.
//! let event = Event::from(ThreadBegin { thread_type: ompt_sys::ompt_thread_t(1), thread_data: Id(7) });
//! let mut words = [0; 16];
//! let len = event.encode(&mut State::new(0), 20, &mut words).expect("16 words suffice");
//!
//! // The writer's part: header, metadata, one chunk.
//! let session = 42;
//! let clock = ClockPair { ticks: 1000, monotonic_raw_ns: 5000, realtime_ns: 1_700_000_000_000_000_000 };
//! let header = FileHeader::of_trace(session, 1, &[]);
//! let mut payload = Vec::new();
//! push_words(&mut payload, &words[..len]);
//! let chunk = Chunk { stream: 1, sequence: 0, clock, first_id: 0 };
//! let mut file = header.encode();
//! file.extend(metadata_block(session, clock, &serde_json::json!({"end": {"how": "finalize"}})));
//! file.extend(chunk_header(session, &chunk, len as u32, 1, Codec::RAW, &payload));
//! file.extend(payload);
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("a.omptrace");
//! std::fs::write(&path, file)?;
//!
//! // The reader's part.
//! let reader = Reader::open(&path)?;
//! let mut events = reader.events(&reader.streams()[0]);
//! let record = events.next().expect("the event");
//! assert_eq!((record.ticks, record.event), (1020, event));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod clock;
pub mod event;
mod layout;
mod live;
pub mod metadata;
mod read;
pub mod wildcards;
mod write;

pub use clock::ClockMap;
pub use event::Event;
pub use event::{field, predict, stack};
pub use layout::{block, codec};
pub use live::follow::Follower;
pub use live::liveness::Doubt;
pub use live::{follow, liveness, spool};
pub use metadata::Metadata;
pub use read::diagnostic::{Diagnostic, DiagnosticKind, Severity};
pub use read::file_kind::{FileKind, kind_of};
pub use read::finding::Finding;
pub use read::first_metadata::first_metadata;
pub use read::limits::Limits;
pub use read::reader::{Ending, Events, OpenError, Reader, Record, Stream, Summary};
pub use read::regular_file::open_regular;
pub use read::{checkpoint, diagnostic, limits, reader, summary};
pub use write::copy::{Fate, SealError, Sealed};
pub use write::seal::{InDoubt, copy_changed, seal};
pub use write::{blocks, lock, seal};
