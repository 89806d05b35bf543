//! One stream that is followed: where the next event is, the newest events, what was open before them.

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

/// Modules that are remembered; a program that loads more all the time is a strange one.
const MAX_MODULES: usize = 4096;

/// A stream, and how far it was read.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The chunk that was read last.
    chunk: Chunk,
    has_chunk: bool,
    /// All of it was read, as far as it goes.
    is_whole: bool,
    /// Events may have been missed since: the next chunk is no sequel.
    is_broken: bool,
    /// Its chunks come from the spool: the thread is there.
    is_live: bool,
    /// Words of the chunk that were read.
    at: usize,
    state: State,
    /// The events by which the thread introduces itself.
    introduction: Vec<Record>,
    /// The modules that it met.
    modules: Vec<Record>,
    opens: Opens,
    events: VecDeque<Record>,
    /// The first event behind chunks that were passed over, and the last event that is not kept.
    resumed: u64,
    forgotten: u64,
    newest: u64,
    /// Older events are not in `events`.
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
    /// Takes the events of the stream's first chunk in, of which later ones are not read from there.
    pub(crate) fn begin(&mut self, events: impl Iterator<Item = Record>, bounds: Bounds) {
        for record in events {
            self.push(record, bounds);
        }
        self.forget_before(u64::MAX);
        // The next one in the spool may follow on it.
        (self.has_chunk, self.is_whole) = (self.newest > 0, true);
    }

    /// Goes on behind chunks that are passed over.
    pub(crate) fn resume(&mut self) {
        self.forget_before(u64::MAX);
        self.opens.doubt();
        (self.is_cut, self.resumed) = (true, u64::MAX);
    }

    /// Takes in the events that come then.
    pub(crate) fn take(&mut self, events: impl Iterator<Item = Record>, bounds: Bounds) {
        for record in events {
            self.is_live = true;
            self.resumed = self.resumed.min(record.ticks);
            self.push(record, bounds);
        }
    }

    /// True where events of it can be in an excerpt.
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

    /// From when on all events are there, or what they began.
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

    /// The words that are new in the spool's `chunks`, and those that can be read; both since the stream was looked at last.
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
            // What came before it was followed is not new.
            false => (0, last),
        };
        let mut new: u64 = from(first_new).map(unread).sum();
        // Those between have come and gone.
        let gone = u64::from(last.saturating_sub(first_new)) + 1;
        new += gone.saturating_sub(from(first_new).count() as u64) * capacity;
        match self.is_of_samples {
            true => (new, 0),
            false => (new, from(first).map(unread).sum()),
        }
    }

    /// The chunks to read now: all that follow, or else the newest only, and the one before where that has just begun.
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
        // The rest of the chunk that was read is gone.
        if self.has_chunk && !self.is_whole && sequence(&chunks[0]) > self.chunk.sequence {
            self.is_broken = true;
        }
        // Those that follow each other up to the last one.
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

    /// Goes on in this chunk; gives the words of it that are read.
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

    /// Events of the chunk that was entered cannot be read any more.
    pub(crate) fn lose(&mut self) {
        self.is_broken = true;
    }

    /// Takes in the events of the chunk's next words; gives how many there are.
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
                // A wide event that is being written, or one of a newer format.
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

    /// Keeps of the events before `ticks` only what they began.
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

    /// The regions whose implicit tasks its thread has open.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Id> {
        self.opens.regions()
    }

    /// The events that a stream must begin with, in the order of time. By these its thread is known, what is open, and modules:
    /// its own, and those that are `gone`. Modules come behind the introduction, since readers look for a thread's name first.
    /// Of the regions that it ended, those are there that some thread has not left: `regions`.
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
                // What is over by now ends at once.
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
