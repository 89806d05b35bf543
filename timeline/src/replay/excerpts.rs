//! Excerpts of a process: parts of its run that begin and end where no parallel region is open, so that reading can
//! begin there although the trace has no checkpoints.
//!
//! ```text
//! main     [region 1][region 2]  [region 3][region 4][region 5]  ...
//! windows         |-|                 |------|
//! excerpts        [region 2]     [region 3][region 4]
//! ```
//!
//! The beginning of the trace, before its first region, is always read, because the threads introduce themselves there.

use ompt_sys as ompt;
use omptrace_trace_format::event::{Event, Module};
use omptrace_trace_format::field::Id;
use omptrace_trace_format::reader::{Reader, Stream};

use crate::model::session_clock::SessionClock;
use crate::model::thread_introduction::ThreadIntroduction;
use crate::model::{Ns, ThreadRole};
use crate::replay::report::is_overwritten;
use crate::replay::stream::Extent;
use crate::runtime_quirks::capabilities::Reports;
use crate::threads::locations::introductions;

/// Maximum number of chunks of the initial thread that are searched for the begin of a region.
const MAX_CHUNKS: usize = 4;
/// Maximum number of events of the initial thread that are searched for the begin of a region.
const MAX_EVENTS: usize = 1 << 15;

/// Parts of a process that are read, in order and without overlap.
#[derive(Debug)]
pub struct Excerpts {
    /// The index of the initial thread's stream.
    main: usize,
    parts: Vec<Part>,
}

/// A part, in raw ticks: from the begin of a region to that of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) until: u64,
}

impl Part {
    /// What is read of each stream: also how threads leave what is over.
    pub(crate) fn extent(&self, clock: SessionClock<'_>) -> Extent {
        let until = match self.until {
            u64::MAX => Ns::MAX,
            ticks => clock.time(ticks).saturating_add(1),
        };
        Extent { from: self.from, until }
    }
}

impl Excerpts {
    /// The parts that contain these windows, which are in order and in raw ticks. `None` if a window lies in a region
    /// that is too long to be read from its begin to its end, or if it is not known where regions begin.
    pub fn around(reader: &Reader, windows: &[(u64, u64)]) -> Option<Excerpts> {
        let regions = Regions::of(reader)?;
        let mut parts: Vec<Part> = vec![Part { from: 0, until: regions.at_or_after(0)? }];
        for (begin, end) in windows {
            let part = Part { from: regions.before(*begin)?, until: regions.at_or_after(*end)? };
            match parts.last_mut() {
                Some(last) if part.from <= last.until => last.until = last.until.max(part.until),
                _ => parts.push(part),
            }
        }
        Some(Excerpts { main: regions.main, parts })
    }

    /// Whether an outermost parallel region is known to begin not long after all threads together had recorded this many
    /// bytes of events.
    pub fn can_begin_after(reader: &Reader, event_bytes: u64) -> bool {
        let after = |regions: Regions<'_>| regions.at_or_after(reader.ticks_at_event_bytes(event_bytes)?);
        Regions::of(reader).and_then(after).is_some_and(|ticks| ticks < u64::MAX)
    }

    /// The total time of all parts between `begin` and `end`, in raw ticks.
    pub fn ticks(&self, begin: u64, end: u64) -> u64 {
        let each = self.parts.iter().map(|part| part.until.min(end).saturating_sub(part.from.max(begin)));
        each.fold(0, u64::saturating_add)
    }

    /// The modules that the initial thread reports early in the run. They are reported once, possibly between two parts.
    pub(crate) fn first_modules(&self, reader: &Reader) -> impl Iterator<Item = Box<Module<'static>>> {
        let events = reader.streams().get(self.main).map(|stream| reader.events(stream));
        events.into_iter().flatten().take(MAX_EVENTS).filter_map(|record| match record.event {
            Event::Module(module) => Some(module),
            _ => None,
        })
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether the stream at this index is that of the initial thread.
    pub(crate) fn is_main(&self, stream: usize) -> bool {
        stream == self.main
    }
}

/// The outermost parallel regions of a process with one initial thread.
struct Regions<'r> {
    reader: &'r Reader,
    main: usize,
    stream: &'r Stream,
    /// The initial task, which encounters the outermost regions.
    task: Id,
}

impl<'r> Regions<'r> {
    fn of(reader: &'r Reader) -> Option<Regions<'r>> {
        let is_known = Reports::of(reader.metadata()).members && !is_overwritten(reader.diagnostics());
        let introductions = introductions(reader);
        let is_late = |of: &ThreadIntroduction| of.device_num.is_some() || of.samples_of.is_some();
        let goes_alone =
            |of: &&ThreadIntroduction| !matches!(of.role(), ThreadRole::Worker | ThreadRole::Helper);
        let is_simple =
            introductions.iter().filter(goes_alone).count() == 1 && !introductions.iter().any(is_late);
        let main = introductions.iter().position(|of| goes_alone(&of)).filter(|_| is_known && is_simple)?;
        let initial_task = reader.first_records(main).iter().find_map(|record| match &record.event {
            Event::ImplicitTaskBegin(begin) if begin.flags.contains(ompt::ompt_task_initial) => {
                Some(begin.task_data)
            }
            _ => None,
        });
        Some(Regions { reader, main, stream: reader.streams().get(main)?, task: initial_task? })
    }

    fn begins_here(&self, event: &Event<'_>) -> bool {
        matches!(event, Event::ParallelBegin(begin) if begin.encountering_task_data == self.task)
    }

    /// The begin of the last region that begins before `ticks`; 0 if that would be before the first region.
    fn before(&self, ticks: u64) -> Option<u64> {
        let mut end = ticks;
        for _ in 0..MAX_CHUNKS {
            let events = self.reader.events_from(self.stream, end);
            let begin = events.begin();
            let earlier = events.take_while(|record| record.ticks < ticks);
            let last = earlier.filter(|record| self.begins_here(&record.event)).last();
            match last {
                Some(record) => return Some(record.ticks),
                None if begin == 0 || begin >= end => return Some(0),
                None => end = begin - 1,
            }
        }
        None
    }

    /// The begin of the first region that begins at `ticks` or later; the end of time if there is none.
    fn at_or_after(&self, ticks: u64) -> Option<u64> {
        let mut later = self.reader.events_from(self.stream, ticks).filter(|record| record.ticks >= ticks);
        for _ in 0..MAX_EVENTS {
            match later.next() {
                Some(record) if self.begins_here(&record.event) => return Some(record.ticks),
                Some(_) => {}
                None => return Some(u64::MAX),
            }
        }
        None
    }
}
