//! A running program's trace, followed from outside: what its threads did in the last moments.
//!
//! ```text
//! spool --poll--> newest events of each stream --excerpt--> a small trace, complete in itself
//!                    | those that are older
//!                    v
//!                 what they began and did not end
//! ```
//!
//! Nothing is asked of the program: no lock is taken, no file is changed, its threads run no instruction more. A chunk's
//! published length says which of its words are whole. The work is bounded. Where more events come than the caller wants to
//! read, each stream goes on in its newest chunk.

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

/// The keys of the metadata that an excerpt has no use for, and those that are true of the whole trace alone.
const NOT_IN_EXCERPTS: &[&str] =
    &["schema", "symbols", "environment", "lock", "record", "end", "found_while_sealing", "messages"];
/// Chunks at the end of a stream that nobody writes any more.
const END_CHUNKS: usize = 2;

/// The sums of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Words that the program published since the poll before, those of chunks that were passed over included. Of chunks that
    /// nobody saw, it is as many as they hold at most.
    pub words: u64,
    /// Those that were read.
    pub words_read: u64,
    /// Events in them.
    pub events_read: u64,
    /// Events that were lost since the session's start and that no event reports.
    pub unreported: u64,
}

/// A trace that a program writes.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    streams: BTreeMap<u32, Followed>,
    /// Code addresses of the events in excerpts so far.
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

    /// The trace as it was when it was opened.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// True where the process runs and its spool can be read: else there is nothing to follow.
    pub fn is_followable(&self) -> bool {
        self.reader.ending() == Ending::Running && self.reader.spool().is_some()
    }

    /// True as long as the process that was seen to run does, and has its spool: [`Follower::renew`] shows what came of it.
    pub fn is_still_written(&self) -> bool {
        self.reader.still_runs()
    }

    /// Bytes of the trace's file and of its spool now.
    pub fn bytes(&self) -> (u64, u64) {
        let of_file = self.reader.file_metadata().map_or(0, |file| file.len());
        let of_spool = self.reader.spool().map_or(0, |spool| spool.bytes_now());
        (of_file, of_spool)
    }

    /// Opens the trace again: its metadata, and how it ended, may be others by now. What was read of its streams stays.
    ///
    /// # Errors
    /// Like [`Reader::open`].
    pub fn renew(&mut self) -> Result<(), OpenError> {
        self.reader = Reader::open(self.reader.path())?;
        Ok(())
    }

    /// How many different code addresses the events of all excerpts so far have.
    pub fn code_addresses(&self) -> usize {
        self.codes.len()
    }

    /// How far `CLOCK_MONOTONIC_RAW` of the program is ahead of this process's, in nanoseconds: each time namespace has its own
    /// (time_namespaces(7)). `now` are this process's readings of it and of `CLOCK_REALTIME`, which all have in common.
    pub fn clock_ahead(&self, now: (u64, u64)) -> i64 {
        let reader = &self.reader;
        liveness::clock_ahead(reader.header().pid, reader.metadata()).unwrap_or_else(|| {
            // In another container. The wall clock is corrected now and then, by less.
            const CORRECTED_NS: u64 = 1_000_000_000;
            let between = |(raw_ns, realtime_ns): (u64, u64)| raw_ns.wrapping_sub(realtime_ns);
            let clock = reader.clock();
            let theirs = between((clock.start_raw_ns(), clock.start_realtime_ns()));
            let ahead = theirs.wrapping_sub(between(now)).cast_signed();
            if ahead.unsigned_abs() < CORRECTED_NS { 0 } else { ahead }
        })
    }

    /// The time of the program's `CLOCK_MONOTONIC_RAW`, in raw ticks.
    pub fn ticks_at(&self, raw_ns: u64) -> u64 {
        let clock = self.reader.clock();
        let near = self.streams.values().map(Followed::clock);
        let near = near.max_by_key(|pair| pair.ticks).unwrap_or_default();
        // A second of ticks, as many as there are between two times that lie a billion ticks apart.
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

    /// From when on all that every thread did is known, in raw ticks.
    pub fn covered_from(&self) -> u64 {
        let covered = self.streams.values().map(Followed::covered_from);
        covered.max().unwrap_or(0)
    }

    /// The earliest time from `from` on after which no more than `most` events came.
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

    /// Takes in what the program has published since.
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
                // Somebody took the chunk meanwhile: its events are in the file, and passed over here.
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

    /// Reads, of streams that are seen for the first time, the first chunk: there a thread says who it is.
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
        // A thread that began since has its first chunk in the spool, or in the file by now.
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

    /// Takes in the end of a trace that nobody writes: the last chunks of each stream, and the first one, where its thread
    /// introduces itself.
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

    /// A trace of what every thread did from `from` to `until`, in raw ticks, with what was open before. It is a trace of a
    /// flight recorder whose process ended at `until`. Events before `from` are forgotten.
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
        // Nothing happens at the end, but that time passes until then.
        let mut last = Some(Record {
            ticks: until,
            event: Event::from(Flush { thread_data: Id::NULL, codeptr_ra: Address(0) }),
        });
        self.streams.values_mut().for_each(|stream| stream.forget_before(from));
        let live = self.streams.values().filter(|stream| stream.is_live());
        let regions: BTreeSet<Id> = live.flat_map(Followed::regions).collect();
        // Modules that threads met which are gone.
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
