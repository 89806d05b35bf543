//! Locks, critical, atomic and ordered regions: waits and holds.

use std::num::NonZeroU32;

use super::*;

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn mutex_acquire(&mut self, thread: usize, time: Ns, e: &MutexAcquire) {
        if !self.selection.mutex_waits {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let construct = Construct::MutexWait(e.kind);
        let holder = self.locks.holder(e.wait_id.0);
        let holder = holder.filter(|(holder, ..)| *holder != thread);
        let frame = Frame::new(construct, e.wait_id.0, self.region(thread, construct, e.codeptr_ra))
            .with(Meaning::Wait(Awaited::Mutex {
                lock: LockId(e.wait_id.0),
                held: holder.and_then(|(_, order, _)| NonZeroU32::new(order)),
            }))
            .after(holder.map_or(0, |(.., event)| event));
        let all = arguments![
            "wait_id": hex(e.wait_id.0),
            "held_by": Value::Text(holder.map_or("", |(holder, ..)| &self.thread_names[holder])),
        ];
        let arguments = if holder.is_some() { &all[..] } else { &all[..1] };
        self.threads[thread].open(self.stage, time, frame, arguments);
    }

    /// Ends waits whose end is visible only from the thread's next event.
    ///
    /// A waiting thread has no other events. So an event other than the wait's own end shows that the thread did not
    /// acquire the mutex: `omp_test_lock` failed, or the thread already held the nested lock.
    #[inline(always)]
    pub(super) fn settle_unended(&mut self, thread: usize, time: Ns, event: &Event<'_>) {
        let Some(top) = self.threads[thread].stack().last() else {
            return;
        };
        match top.construct {
            Construct::MutexWait(kind) if !matches!(event, Event::MutexAcquired(_)) => {
                let key = top.key;
                self.event_of_waiting(thread, time, event, kind, key);
            }
            Construct::Work(ompt::ompt_work_single_other) => {
                self.event_in_single_other(thread, event);
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn event_of_waiting(
        &mut self,
        thread: usize,
        time: Ns,
        event: &Event<'_>,
        kind: ompt::ompt_mutex_t,
        key: u64,
    ) {
        let construct = Construct::MutexWait(kind);
        match event {
            Event::BufferFlush(_) | Event::Lost(_) | Event::Module(_) => {}
            Event::Monitoring(_) | Event::ThreadInfo(_) | Event::ThreadState(_) => {}
            Event::MutexWait(_) | Event::Counters(_) => {}
            Event::NestLock(e) if e.wait_id.0 == key => self.close(thread, time, construct, key),
            _ => {
                // The duration of the attempt is unknown.
                let begin = self.threads[thread].last();
                let failed = arguments!["acquired": Value::Text("no")];
                self.threads[thread].close(self.stage, begin, construct, key, failed);
                if is_block_structured(kind) {
                    self.repair(thread, time, Cause::MissingEnd);
                }
            }
        }
    }

    #[inline(never)]
    pub(super) fn mutex_acquired(&mut self, thread: usize, time: Ns, e: &MutexAcquired) {
        let is_wait = |frame: &&Frame| match frame.construct {
            Construct::MutexWait(kind) => {
                frame.key == e.wait_id.0 || kind == e.kind && is_one_unset(frame.key, e.wait_id.0)
            }
            _ => false,
        };
        let wait = self.threads[thread].stack().last().filter(is_wait);
        let waited_since = wait.map_or(time, Frame::begin);
        let wait = wait.map(|frame| (frame.construct, frame.key));
        let wait_id = match (e.wait_id.0, wait) {
            (UNSET, Some((_, key))) => key,
            (wait_id, _) => wait_id,
        };
        let has_track = !is_block_structured(e.kind);
        let region = match wait {
            Some(_) => self.threads[thread].regions().nth(1),
            None => self.threads[thread].regions().next(),
        };
        let acquisition = Acquisition {
            wait_id,
            kind: e.kind,
            holder: thread,
            at: self.threads[thread].point(time),
            waited_since,
            region,
            has_track,
        };
        let names = &self.thread_names;
        // The end of the wait comes next.
        let release = match self.selection.mutex_holds {
            true => self.locks.acquired(self.stage, names, acquisition),
            false => None,
        };
        match wait {
            Some((construct, key)) => self.close(thread, time, construct, key),
            None if self.dialect.mutexes_without_wait || !self.selection.mutex_waits => {}
            None => self.repair(thread, time, Cause::EndWithoutBegin),
        }
        if !self.selection.mutex_holds {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        if !has_track {
            let construct = Construct::MutexHold(e.kind);
            let frame = Frame::new(construct, wait_id, self.region(thread, construct, e.codeptr_ra));
            let wait_id = arguments!["wait_id": hex(wait_id)];
            self.threads[thread].open(self.stage, time, frame, wait_id);
        }
        if let Some(release) = release {
            let effect = if has_track { Anchor::Moment } else { Anchor::Begin };
            self.stage.link(LinkKind::MutexRelease, release, (acquisition.at, effect));
        }
    }

    #[inline(never)]
    pub(super) fn mutex_released(&mut self, thread: usize, time: Ns, e: &MutexReleased) {
        if !self.selection.mutex_holds {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let hold = Construct::MutexHold(e.kind);
        let wait_id = self.held(thread, hold, e.wait_id.0);
        let is_it = |frame: &Frame| frame.construct == hold && frame.key == wait_id;
        let anchor = self.threads[thread].anchor_of_end(self.stage, time, is_it);
        let release = (self.threads[thread].point(time), anchor);
        let names = &self.thread_names;
        let was_held = self.locks.released(self.stage, names, wait_id, thread, release);
        if self.dialect.mutexes_without_wait {
            let is_open = self.threads[thread].close(self.stage, time, hold, wait_id, &[]);
            if !was_held && !is_open {
                self.released_unseen(thread, time, e);
            }
        } else if is_block_structured(e.kind) {
            self.close(thread, time, hold, wait_id);
        } else if !was_held {
            self.repair(thread, time, Cause::EndWithoutBegin);
        }
    }

    /// The wait id of the innermost `hold` of the thread, if the event does not contain it.
    fn held(&self, thread: usize, hold: Construct, wait_id: u64) -> u64 {
        if wait_id != UNSET {
            return wait_id;
        }
        let mut open = self.threads[thread].stack().iter().rev();
        let innermost = open.find(|frame| frame.construct == hold);
        innermost.map_or(UNSET, |frame| frame.key)
    }

    /// A mutex is released whose acquisition was not reported, so its time is unknown.
    fn released_unseen(&mut self, thread: usize, time: Ns, e: &MutexReleased) {
        let construct = Construct::MutexReleased(e.kind);
        let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
        let release = ThreadEvent::ReleaseUnseen {
            lock: LockId(e.wait_id.0),
            kind: e.kind,
            region: self.region(thread, construct, e.codeptr_ra),
        };
        self.thread_event(thread, time, release);
        self.instant(thread, time, construct, e.codeptr_ra, wait_id);
        self.repair(thread, time, Cause::ReleaseWithoutAcquire);
    }
}

/// The wait id that runtimes pass if they do not know it (TR2, 4.4).
pub(super) const UNSET: u64 = 0;

/// Whether exactly one of the two events of a mutex lacks the wait id. LLVM up to 5.0 passes it only for waits for
/// ordered regions.
fn is_one_unset(one: u64, other: u64) -> bool {
    one == UNSET || other == UNSET
}

/// Tells critical, atomic and ordered regions, which nest on their thread, from locks, which do not.
fn is_block_structured(kind: ompt::ompt_mutex_t) -> bool {
    matches!(kind, ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered)
}
