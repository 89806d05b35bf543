//! Follows a running program's trace from outside: what its threads did most recently.
//!
//! ```text
//! spool --poll--> newest events of each stream --excerpt--> a small trace, complete in itself
//!                    | older events
//!                    v
//!                 what they began and did not end
//! ```
//!
//! The program is not disturbed: no lock is taken, no file is changed, and its threads execute no extra instruction. A
//! chunk's published length tells which of its words are complete. The work is bounded: if there are more new events
//! than the caller wants to read, each stream continues in its newest chunk.

mod bounds;
mod encoder;
mod open;
mod save;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::event::field::{Address, Id};
use crate::event::{Event, Flush};
use crate::layout::block::FileHeader;
pub use crate::live::follow::bounds::Bounds;
use crate::live::follow::encoder::Encoder;
pub use crate::live::follow::save::save;
use crate::live::follow::stream::Followed;
use crate::live::liveness;
use crate::live::spool::SpoolEntry;
use crate::read::reader::{Ending, OpenError, Reader, Record};
use crate::write::blocks::metadata_block;

/// Keys of the metadata that are useless in an excerpt, or true only of the whole trace.
const NOT_IN_EXCERPTS: &[&str] =
    &["schema", "symbols", "environment", "lock", "record", "end", "found_while_sealing", "messages"];
/// Number of chunks read at the end of each stream of a trace that is no longer written.
const END_CHUNKS: usize = 2;

/// The counts of one poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Words published since the previous poll, including those of skipped chunks. Chunks that came and went between
    /// two polls count with their capacity.
    pub words: u64,
    /// Words that were read.
    pub words_read: u64,
    /// Events in the words that were read.
    pub events_read: u64,
    /// Events lost since the session's start that no event reports.
    pub unreported: u64,
}

/// A reader that follows the trace of a running program.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    streams: BTreeMap<u32, Followed>,
    /// Code addresses of the events in all excerpts so far.
    codes: BTreeSet<u64>,
    has_begun: bool,
    bytes: Vec<u8>,
    words: Vec<u64>,
}

impl Follower {
    /// Follows the trace at `path`.
    ///
    /// # Errors
    /// Like [`Reader::open`].
    pub fn open(path: &Path) -> Result<Follower, OpenError> {
        Ok(Follower {
            reader: Reader::open(path)?,
            streams: BTreeMap::new(),
            codes: BTreeSet::new(),
            has_begun: false,
            bytes: Vec::new(),
            words: Vec::new(),
        })
    }

    /// The trace as it was when it was last opened.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Whether the process runs and its spool can be read; otherwise there is nothing to follow.
    pub fn is_followable(&self) -> bool {
        self.reader.ending() == Ending::Running && self.reader.spool().is_some()
    }

    /// Whether the process still runs and its spool still exists. Once this is false, [`Follower::renew`] shows how the
    /// trace ended.
    pub fn is_still_written(&self) -> bool {
        self.reader.still_runs()
    }

    /// Current size of the trace file and of its spool, in bytes.
    pub fn bytes(&self) -> (u64, u64) {
        let of_file = self.reader.file_metadata().map_or(0, |file| file.len());
        let of_spool = self.reader.spool().map_or(0, |spool| spool.bytes_now());
        (of_file, of_spool)
    }

    /// Opens the trace again, because its metadata and its ending may have changed. Keeps what was read of its streams.
    ///
    /// # Errors
    /// Like [`Reader::open`].
    pub fn renew(&mut self) -> Result<(), OpenError> {
        self.reader = Reader::open(self.reader.path())?;
        Ok(())
    }

    /// Number of different code addresses of the events in all excerpts so far.
    pub fn code_addresses(&self) -> usize {
        self.codes.len()
    }

    /// How far the program's `CLOCK_MONOTONIC_RAW` is ahead of this process's, in nanoseconds: each time namespace has
    /// its own (time_namespaces(7)). `now` is this process's readings of `CLOCK_MONOTONIC_RAW` and of `CLOCK_REALTIME`;
    /// the latter is the same in all namespaces.
    pub fn clock_ahead(&self, now: (u64, u64)) -> i64 {
        let reader = &self.reader;
        liveness::clock_ahead(reader.header().pid, reader.metadata()).unwrap_or_else(|| {
            // The program runs in another container: compare both clocks' distances from `CLOCK_REALTIME`, whose
            // occasional corrections are smaller than a second.
            const CORRECTED_NS: u64 = 1_000_000_000;
            let between = |(raw_ns, realtime_ns): (u64, u64)| raw_ns.wrapping_sub(realtime_ns);
            let clock = reader.clock();
            let theirs = between((clock.start_raw_ns(), clock.start_realtime_ns()));
            let ahead = theirs.wrapping_sub(between(now)).cast_signed();
            if ahead.unsigned_abs() < CORRECTED_NS { 0 } else { ahead }
        })
    }

    /// Converts a reading of the program's `CLOCK_MONOTONIC_RAW` to raw ticks.
    pub fn ticks_at(&self, raw_ns: u64) -> u64 {
        let clock = self.reader.clock();
        let near = self.streams.values().map(Followed::clock);
        let near = near.max_by_key(|pair| pair.ticks).unwrap_or_default();
        // Compute the rate over a billion ticks, for precision.
        let ns = clock.ns(near.ticks.saturating_add(1_000_000_000)) - clock.ns(near.ticks);
        let ticks_per_ns = 1e9 / (ns.max(1) as f64);
        let distance = raw_ns as i64 - near.monotonic_raw_ns as i64;
        near.ticks.saturating_add_signed((distance as f64 * ticks_per_ns) as i64)
    }

    /// The time of the newest event, in raw ticks.
    pub fn newest(&self) -> u64 {
        let newest = self.streams.values().map(Followed::newest);
        newest.max().unwrap_or(0)
    }

    /// Time from which the events of all threads are complete, in raw ticks.
    pub fn covered_from(&self) -> u64 {
        let covered = self.streams.values().map(Followed::covered_from);
        covered.max().unwrap_or(0)
    }

    /// The earliest time, not before `from`, after which there are at most `most` events, in raw ticks.
    pub fn begin_of_last(&self, most: usize, from: u64) -> u64 {
        let count = |since: u64| {
            let streams = self.streams.values();
            streams.map(|stream| stream.count_from(since)).sum::<usize>()
        };
        let (mut low, mut high) = (from, self.newest().max(from));
        if count(low) <= most {
            return low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match count(middle) <= most {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// Reads what the program has published since the previous poll.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn poll(&mut self, bounds: Bounds) -> io::Result<Polled> {
        let Some(spool) = self.reader.spool() else {
            return Ok(Polled::default());
        };
        let (places, unreported) = spool.places()?;
        let capacity = spool.capacity();
        let mut by_stream: BTreeMap<u32, Vec<SpoolEntry>> = BTreeMap::new();
        for place in places {
            let chunk = place.header.chunk;
            by_stream.entry(chunk.stream).or_default().push(place);
        }
        self.begin(&by_stream, bounds);
        let Some(spool) = self.reader.spool() else {
            return Ok(Polled::default());
        };
        let mut polled = Polled { unreported, ..Polled::default() };
        let mut pending = 0;
        for (number, chunks) in &mut by_stream {
            chunks.sort_by_key(|place| place.header.chunk.sequence);
            let stream = self.streams.entry(*number).or_default();
            let (new, unread) = stream.new_words(chunks, capacity);
            polled.words += new;
            pending += unread;
        }
        let reads_all = pending <= bounds.most_words;
        for (number, chunks) in &by_stream {
            let Some(stream) = self.streams.get_mut(number) else {
                continue;
            };
            for place in stream.next_chunks(chunks, reads_all, capacity) {
                let from = stream.enter(&place.header.chunk);
                let read = spool.words(place, from as u64, &mut self.bytes, &mut self.words)?;
                // The chunk was recycled in the meantime: its events are in the file, and are skipped here.
                if read.is_err() {
                    stream.lose();
                    continue;
                }
                polled.words_read += self.words.len() as u64;
                polled.events_read += stream.read(&self.words, bounds);
            }
        }
        Ok(polled)
    }

    /// For streams seen for the first time, reads the first chunk, which contains the thread's id and name.
    fn begin(&mut self, by_stream: &BTreeMap<u32, Vec<SpoolEntry>>, bounds: Bounds) {
        let is_unknown = |number: &&u32| !self.streams.contains_key(number);
        let unknown: Vec<u32> = by_stream.keys().filter(is_unknown).copied().collect();
        if unknown.is_empty() && self.has_begun {
            return;
        }
        let is_in_spool = |number: &u32| {
            let chunks = by_stream.get(number);
            chunks.is_some_and(|chunks| chunks.iter().any(|place| place.header.chunk.sequence == 0))
        };
        // The first chunk of a thread that started since is in the spool, or already in the file.
        if self.has_begun && !unknown.iter().all(is_in_spool) {
            let _ = self.renew();
        }
        for stream in self.reader.streams() {
            let number = stream.number;
            let is_new = unknown.contains(&number) && is_in_spool(&number);
            if is_new || self.streams.contains_key(&number) {
                continue;
            }
            let mut followed = Followed::default();
            followed.begin(self.reader.first_events(stream), bounds);
            self.streams.insert(number, followed);
        }
        self.has_begun = true;
    }

    /// Reads the end of a trace that is no longer written: the last chunks of each stream, and the first one, which
    /// contains the thread's id and name.
    pub fn take_end(&mut self, bounds: Bounds) {
        for stream in self.reader.streams() {
            let mut followed = Followed::default();
            followed.begin(self.reader.first_events(stream), bounds);
            let chunks = END_CHUNKS.min(stream.chunks().saturating_sub(1));
            if chunks > 0 {
                followed.resume();
                followed.take(self.reader.last_events(stream, chunks), bounds);
            }
            self.streams.insert(stream.number, followed);
        }
    }

    /// Returns a trace of what every thread did from `from` to `until`, in raw ticks, including the regions and tasks
    /// that were open before. It looks like the trace of a flight recorder whose process ended at `until`. Drops the
    /// events before `from`.
    pub fn excerpt(&mut self, from: u64, until: u64) -> Vec<u8> {
        let session = self.reader.header().session;
        let header = FileHeader::of_trace(session, self.reader.header().pid, &[]);
        let mut file = header.encode();
        let mut metadata = self.reader.metadata_object();
        metadata.retain(|key, _| !NOT_IN_EXCERPTS.contains(&&key[..]));
        let settings = metadata.entry("settings").or_insert_with(|| json!({}));
        if let Value::Object(settings) = settings {
            settings.insert("OMPTRACE_MODE".to_owned(), "flight".into());
        }
        metadata.insert("end".to_owned(), json!({ "how": "excerpt" }));
        let start = self.reader.metadata_clocks().first().copied();
        file.extend(metadata_block(session, start.unwrap_or_default(), &metadata));
        // A last event without meaning, so that the excerpt extends to `until`.
        let mut last = Some(Record {
            ticks: until,
            event: Event::from(Flush { thread_data: Id::NULL, codeptr_ra: Address(0) }),
        });
        self.streams.values_mut().for_each(|stream| stream.forget_before(from));
        let live = self.streams.values().filter(|stream| stream.is_live());
        let regions: BTreeSet<Id> = live.flat_map(Followed::regions).collect();
        // Modules seen by threads that have ended.
        let gone = self.streams.values().filter(|stream| !stream.is_live());
        let mut gone = Some(gone.flat_map(Followed::modules));
        for (number, stream) in self.streams.iter().filter(|(_, stream)| stream.is_live()) {
            let mut chunks = Encoder::new(session, *number, self.reader.clock(), &mut file);
            let gone = gone.take_if(|_| stream.is_of_thread() && stream.is_cut());
            let prefix = stream.prefix(&regions, gone.into_iter().flatten());
            prefix.iter().for_each(|record| chunks.push(record));
            chunks.end_chunk();
            if stream.is_cut() {
                chunks.pass_over();
            }
            for record in stream.events() {
                self.codes.extend(record.event.codes());
                chunks.push(record);
            }
            for open in &prefix {
                self.codes.extend(open.event.codes());
            }
            if stream.is_of_thread() && stream.newest() <= until {
                last.take().iter().for_each(|last| chunks.push(last));
            }
            chunks.end_chunk();
        }
        file
    }
}
