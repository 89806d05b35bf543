//! A followed stream: its newest events, what was open before them, and the position of the next event.

use std::collections::{BTreeSet, VecDeque};
use std::mem::discriminant;

use crate::event::field::Id;
use crate::event::predict::State;
use crate::event::{DecodeError, Event, TICK_SHIFT, decode_into};
use crate::layout::block::{Chunk, ClockPair};
use crate::live::follow::bounds::Bounds;
use crate::live::follow::open::{Open, Opens};
use crate::live::spool::SpoolEntry;
use crate::read::reader::Record;

/// Maximum number of modules to remember per stream; hardly any program loads more.
const MAX_MODULES: usize = 4096;

/// A stream, and how far it has been read.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The chunk being read.
    chunk: Chunk,
    has_chunk: bool,
    /// The stream was read up to the end of that chunk.
    is_whole: bool,
    /// Events may have been missed, so that the next chunk does not continue this one.
    is_broken: bool,
    /// The stream has chunks in the spool, so its thread still exists.
    is_live: bool,
    /// Number of words of the chunk that have been read.
    at: usize,
    state: State,
    /// The events that describe the thread: its id and name, and the first region and task.
    introduction: Vec<Record>,
    /// Modules seen by the thread.
    modules: Vec<Record>,
    opens: Opens,
    events: VecDeque<Record>,
    /// Time of the first event after skipped chunks, and of the last dropped event, in raw ticks.
    resumed: u64,
    forgotten: u64,
    newest: u64,
    /// Some events are no longer in `events`.
    is_cut: bool,
    is_of_samples: bool,
    is_of_device: bool,
    record: Record,
}

impl Default for Followed {
    fn default() -> Followed {
        Followed {
            chunk: Chunk::default(),
            has_chunk: false,
            is_whole: false,
            is_broken: false,
            is_live: false,
            at: 0,
            state: State::new(0),
            introduction: Vec::new(),
            modules: Vec::new(),
            opens: Opens::default(),
            events: VecDeque::new(),
            resumed: 0,
            forgotten: 0,
            newest: 0,
            is_cut: false,
            is_of_samples: false,
            is_of_device: false,
            record: Record::default(),
        }
    }
}

impl Followed {
    /// Reads the events of the stream's first chunk, as found in the file or spool when the trace was opened.
    pub(crate) fn begin(&mut self, events: impl Iterator<Item = Record>, bounds: Bounds) {
        for record in events {
            self.push(record, bounds);
        }
        self.forget_before(u64::MAX);
        // The next chunk in the spool may continue this one.
        (self.has_chunk, self.is_whole) = (self.newest > 0, true);
    }

    /// Marks that chunks are skipped.
    pub(crate) fn resume(&mut self) {
        self.forget_before(u64::MAX);
        self.opens.doubt();
        (self.is_cut, self.resumed) = (true, u64::MAX);
    }

    /// Reads the events after the skipped chunks.
    pub(crate) fn take(&mut self, events: impl Iterator<Item = Record>, bounds: Bounds) {
        for record in events {
            self.is_live = true;
            self.resumed = self.resumed.min(record.ticks);
            self.push(record, bounds);
        }
    }

    /// Whether the stream can have events in an excerpt.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live && !self.is_of_samples
    }

    pub(crate) fn modules(&self) -> &[Record] {
        &self.modules
    }

    pub(crate) fn is_of_thread(&self) -> bool {
        !self.is_of_samples && !self.is_of_device
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn clock(&self) -> ClockPair {
        self.chunk.clock
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &Record> {
        self.events.iter()
    }

    /// Time from which the events are complete, including what was open before, in raw ticks.
    pub(crate) fn covered_from(&self) -> u64 {
        match self.is_live() {
            true => self.resumed.max(self.forgotten),
            false => 0,
        }
    }

    pub(crate) fn count_from(&self, since: u64) -> usize {
        let before = self.events.partition_point(|record| record.ticks < since);
        self.events.len() - before
    }

    /// Number of words in `chunks` that are new since the last poll, and number of unread words that can be read.
    pub(crate) fn new_words(&self, chunks: &[SpoolEntry], capacity: u64) -> (u64, u64) {
        let is_current =
            |place: &SpoolEntry| self.has_chunk && place.header.chunk.sequence == self.chunk.sequence;
        let unread = |place: &SpoolEntry| {
            let read = if is_current(place) { self.at as u64 } else { 0 };
            place.header.published.saturating_sub(read)
        };
        let from = |first: u32| {
            let chunks = chunks.iter();
            chunks.filter(move |place| place.header.chunk.sequence >= first)
        };
        let last = chunks.last().map_or(0, |last| last.header.chunk.sequence);
        let (first, first_new) = match self.has_chunk {
            true => (self.chunk.sequence, self.chunk.sequence),
            // Events from before the stream was followed are not new.
            false => (0, last),
        };
        let mut new: u64 = from(first_new).map(unread).sum();
        // The missing chunks came and went between two polls.
        let gone = u64::from(last.saturating_sub(first_new)) + 1;
        new += gone.saturating_sub(from(first_new).count() as u64) * capacity;
        match self.is_of_samples {
            true => (new, 0),
            false => (new, from(first).map(unread).sum()),
        }
    }

    /// The chunks to read now: all that follow, or else only the newest, preceded by the one before if the newest has
    /// just started.
    pub(crate) fn next_chunks<'c>(
        &mut self,
        chunks: &'c [SpoolEntry],
        reads_all: bool,
        capacity: u64,
    ) -> &'c [SpoolEntry] {
        let sequence = |place: &SpoolEntry| place.header.chunk.sequence;
        let first = match self.has_chunk {
            true => chunks.partition_point(|place| sequence(place) < self.chunk.sequence),
            false => 0,
        };
        let chunks = &chunks[first..];
        let (Some(last), false) = (chunks.last(), self.is_of_samples) else {
            return &[];
        };
        // The chunk being read was recycled before its last words were read.
        if self.has_chunk && !self.is_whole && sequence(&chunks[0]) > self.chunk.sequence {
            self.is_broken = true;
        }
        // Find the last consecutive run of chunks.
        let mut run = chunks.len() - 1;
        while run > 0 && sequence(&chunks[run - 1]) + 1 == sequence(&chunks[run]) {
            run -= 1;
        }
        if reads_all {
            return &chunks[run..];
        }
        let wanted = match last.header.published < capacity / 4 {
            true => 2,
            false => 1,
        };
        &chunks[run.max(chunks.len().saturating_sub(wanted))..]
    }

    /// Starts or continues reading a chunk; returns the number of its words already read.
    pub(crate) fn enter(&mut self, chunk: &Chunk) -> usize {
        if self.has_chunk && self.chunk == *chunk {
            return self.at;
        }
        let follows = match self.has_chunk {
            true => chunk.sequence == self.chunk.sequence + 1,
            false => chunk.sequence == 0,
        };
        if !follows || self.is_broken {
            self.forget_before(u64::MAX);
            self.opens.doubt();
            self.is_cut = true;
            self.resumed = chunk.clock.ticks;
        }
        self.chunk = *chunk;
        (self.has_chunk, self.is_live) = (true, true);
        (self.is_whole, self.is_broken) = (false, false);
        self.at = 0;
        self.state.reset(chunk.first_id);
        0
    }

    /// Marks that words of the current chunk can no longer be read.
    pub(crate) fn lose(&mut self) {
        self.is_broken = true;
    }

    /// Decodes the chunk's next words; returns the number of events.
    pub(crate) fn read(&mut self, words: &[u64], bounds: Bounds) -> u64 {
        let (mut at, mut events) = (0, 0);
        while let Some(head) = words.get(at) {
            let ticks = head >> TICK_SHIFT;
            let mut record = std::mem::take(&mut self.record);
            match decode_into(&mut record.event, &words[at..], &mut self.state) {
                Ok(len) => {
                    at += len;
                    events += 1;
                    record.ticks = self.chunk.clock.ticks.wrapping_add(ticks);
                    self.push(record, bounds);
                }
                Err(DecodeError::BadArguments { len }) => at += len,
                // A wide event that is still being written, or an event of a newer format.
                Err(DecodeError::Truncated | DecodeError::UnknownKind(_)) => break,
            }
        }
        self.at += at;
        events
    }

    fn push(&mut self, mut record: Record, bounds: Bounds) {
        if let Event::SampleStream(_) = record.event {
            self.is_of_samples = true;
        }
        if self.is_of_samples {
            return;
        }
        if let Event::DeviceStream(_) = record.event {
            self.is_of_device = true;
        }
        record.ticks = record.ticks.max(self.newest);
        self.newest = record.ticks;
        self.opens.check(&record);
        if record.ticks < bounds.keep_from {
            self.forget_before(u64::MAX);
            self.forget(record);
            return;
        }
        self.events.push_back(record);
        if self.events.len() > bounds.most_events
            && let Some(oldest) = self.events.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// Drops the events before `ticks`, except for what they opened.
    pub(crate) fn forget_before(&mut self, ticks: u64) {
        while let Some(oldest) = self.events.pop_front_if(|oldest| oldest.ticks < ticks) {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, record: Record) {
        self.is_cut = true;
        self.forgotten = record.ticks;
        self.introduce(&record);
        self.opens.take(record);
    }

    fn introduce(&mut self, record: &Record) {
        let is_new = || {
            let known = self.introduction.iter();
            let mut kinds = known.map(|known| discriminant(&known.event));
            !kinds.any(|kind| kind == discriminant(&record.event))
        };
        match &record.event {
            Event::Module(_) if self.modules.len() < MAX_MODULES => {
                self.modules.push(record.clone());
            }
            Event::ThreadInfo(_)
            | Event::DeviceStream(_)
            | Event::ThreadBegin(_)
            | Event::ParallelBegin(_)
            | Event::ImplicitTaskBegin(_)
                if is_new() =>
            {
                self.introduction.push(record.clone());
            }
            _ => {}
        }
    }

    /// Ids of the parallel regions whose implicit tasks the thread has open.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Id> {
        self.opens.regions()
    }

    /// The events at the start of an excerpt of the stream, in order of time: those that describe the thread, those
    /// that opened what is still open, and its modules, including those of ended threads (`gone`). Modules come after
    /// the thread's description, because readers look for a thread's name first. A parallel region that this thread
    /// ended is included if another thread's implicit task in it is still open (`regions`).
    pub(crate) fn prefix<'r>(
        &'r self,
        regions: &BTreeSet<Id>,
        gone: impl Iterator<Item = &'r Record>,
    ) -> Vec<Record> {
        let mut prefix: Vec<Record> = self.opens.ended_of(regions).cloned().collect();
        let mut introduced = 0;
        for record in &self.introduction {
            let is_open = self.opens.iter().any(|open| open.record == *record);
            if !is_open && !prefix.contains(record) {
                introduced = record.ticks;
                prefix.push(record.clone());
                // End at once what is over by now.
                prefix.extend(Open::end_of(record));
            }
        }
        prefix.extend(self.opens.iter().map(|open| open.record.clone()));
        prefix.extend(self.modules.iter().chain(gone).map(|module| Record {
            ticks: module.ticks.min(self.forgotten).max(introduced),
            event: module.event.clone(),
        }));
        prefix.sort_by_key(|record| record.ticks);
        prefix
    }
}
