//! From a checkpoint to the state of interpretation at its time.

use omptrace_trace_format::checkpoint::Checkpoint;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::{Reader, Record};

use super::super::Interpreter;
use super::{Head, VERSION, between_regions};
use crate::model::repairs::{Cause, Place, Repair};
use crate::model::session_clock::SessionClock;
use crate::model::{Ns, ThreadRole};
use crate::runtime_quirks::issued_ids::GivenIds;

/// A checkpoint that this program can begin at.
#[derive(Debug)]
pub(crate) struct Restart {
    /// Its time in raw ticks: events from there on follow.
    pub(crate) ticks: u64,
    head: Head,
    /// The events, each with its thread's place in the list of threads.
    events: Vec<(usize, Record)>,
}

impl Restart {
    /// The newest checkpoint of `reader` that is no later than `time`.
    pub(crate) fn before(reader: &Reader, clock: SessionClock<'_>, time: Ns) -> Option<Restart> {
        let is_before = |ticks: &u64| clock.time(*ticks) <= time;
        Restart::at(reader, reader.checkpoint_ticks().rev().find(is_before)?)
    }

    /// The checkpoint of `reader` at `ticks`.
    pub(crate) fn at(reader: &Reader, ticks: u64) -> Option<Restart> {
        Restart::of(reader, reader.checkpoint(ticks)?)
    }

    /// `None` where another version wrote the checkpoint, or it makes no sense.
    pub(crate) fn of(reader: &Reader, checkpoint: Checkpoint) -> Option<Restart> {
        let head: Head = serde_json::from_slice(&checkpoint.words).ok()?;
        let place = |stream: u32| {
            let streams = reader.streams();
            streams.binary_search_by_key(&stream, |it| it.number).ok()
        };
        let events = checkpoint.events.into_iter();
        let events: Option<Vec<_>> = events.map(|(stream, record)| Some((place(stream)?, record))).collect();
        let mut resumed = head.resumed.clone();
        for (_, stream, _) in &mut resumed {
            *stream = place(*stream)? as u32;
        }
        let restart = Restart { ticks: checkpoint.ticks, head: Head { resumed, ..head }, events: events? };
        restart.is_sensible().then_some(restart)
    }

    /// The number of events before it.
    pub(crate) fn events_before(&self) -> u64 {
        self.head.events
    }

    /// Whether a parallel region has just ended, and only the initial thread goes on; by the roles of all threads.
    pub(crate) fn is_between_regions(&self, roles: &[ThreadRole]) -> bool {
        let events = self.events.iter();
        let is_main = |thread: usize| roles.get(thread).is_some_and(|role| *role != ThreadRole::Worker);
        self.head.ends_region
            && self.head.resumed.is_empty()
            && !self.head.has_proxy_tasks
            && between_regions::is_after(events.map(|(thread, record)| (is_main(*thread), &record.event)))
    }

    /// When the newest parallel region began, and when the last event before the checkpoint was, in raw ticks.
    pub(crate) fn last_region(&self) -> Option<(u64, u64)> {
        let begins = |(_, record): &&(usize, Record)| matches!(record.event, Event::ParallelBegin(_));
        let began = self.events.iter().rfind(begins)?.1.ticks;
        Some((began, self.events.last()?.1.ticks))
    }

    /// Whether all times are before it, and in order, and no number is larger than numbers get.
    fn is_sensible(&self) -> bool {
        const MAX_NS: Ns = 1 << 60;
        const MAX: u64 = 1 << 62;
        let head = &self.head;
        let counts = [head.events, head.lost, head.unset_tasks, head.unannounced_tasks];
        let counts = counts.into_iter();
        let of_repairs = head.repairs.iter().map(|(_, count, ..)| *count);
        let of_loops = head.progress.iter().map(|(_, far)| far.chunks);
        let mut all = counts.chain(of_repairs).chain(of_loops);
        let is_time = |time: &Ns| (-MAX_NS..MAX_NS).contains(time);
        head.version == VERSION
            && all.all(|count| count < MAX)
            && self.events.is_sorted_by_key(|(_, record)| record.ticks)
            && self.events.iter().all(|(_, record)| record.ticks < self.ticks)
            && head.resumed.iter().all(|(_, _, ticks)| *ticks < self.ticks)
            && head.resumed.is_sorted_by_key(|(place, ..)| *place)
            && head.progress.is_sorted_by_key(|(place, _)| *place)
            && head.repairs.iter().all(|(.., time)| is_time(time))
            && head.annotations.is_sensible(&is_time)
    }
}

impl Interpreter<'_, '_> {
    /// Interprets `restart`, after which the state is that of all events before it.
    pub(crate) fn begin_at(&mut self, restart: &Restart) {
        let head = &restart.head;
        self.given_ids = GivenIds::of(&head.given);
        let mut progress = head.progress.iter().peekable();
        let mut resumed = head.resumed.iter().peekable();
        for (place, (thread, record)) in restart.events.iter().enumerate() {
            while let Some((_, thread, ticks)) = resumed.next_if(|(at, ..)| *at <= place) {
                self.resume_wait(*thread as usize, *ticks);
            }
            let time = self.clock.time(record.ticks);
            self.kept_event(*thread, time, &record.event);
            if let Some((_, progress)) = progress.next_if(|(at, _)| *at == place) {
                self.threads[*thread].set_progress(*progress);
            }
        }
        for (_, thread, ticks) in resumed {
            self.resume_wait(*thread as usize, *ticks);
        }
        self.begin_annotations_at(&head.annotations);
        self.lost = head.lost;
        self.unset_tasks = head.unset_tasks;
        self.unannounced_tasks = head.unannounced_tasks;
        self.has_proxy_tasks = head.has_proxy_tasks;
        self.stage.event = head.events;
        self.stage.repairs = Default::default();
        for (name, count, stream, time) in &head.repairs {
            if let Some(cause) = Cause::ALL.iter().find(|cause| cause.name() == name) {
                let first = Place { stream: *stream, time: self.clock.on_timeline(*time) };
                self.stage.repairs.set(Repair { cause: *cause, count: *count, first });
            }
        }
    }

    #[inline(never)]
    fn kept_event(&mut self, thread: usize, time: Ns, event: &Event<'static>) {
        self.event(thread, time, event);
    }

    fn resume_wait(&mut self, thread: usize, ticks: u64) {
        let time = self.clock.time(ticks);
        self.threads[thread].interrupt(self.stage, time);
    }
}
