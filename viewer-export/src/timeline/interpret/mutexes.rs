//! Locks, critical, atomic and ordered regions: waits and what is held.

use super::*;

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn mutex_acquire(&mut self, thread: usize, time: Ns, e: &MutexAcquire) {
        if !self.selection.mutex_waits {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let construct = Construct::MutexWait(e.kind);
        let holder = self.locks.holder(e.wait_id.0);
        let holder = holder.filter(|holder| *holder != thread);
        let frame = Frame::new(
            construct,
            e.wait_id.0,
            self.region(thread, construct, e.codeptr_ra),
        )
        .with(ThreadEvent::AwaitLock {
            lock: e.wait_id.0,
            is_held: holder.is_some(),
        });
        let all = arguments![
            "wait_id": hex(e.wait_id.0),
            "held_by": Value::Text(holder.map_or("", |holder| &self.thread_names[holder])),
        ];
        let arguments = if holder.is_some() {
            &all[..]
        } else {
            &all[..1]
        };
        self.threads[thread].open(self.stage, time, frame, arguments);
    }

    /// A thread that waits has no other events. So an event that is not the wait's own end shows that it did not get
    /// the mutex: `omp_test_lock` failed, or a nested lock was its own already.
    #[inline(always)]
    pub(super) fn settle_mutex_wait(&mut self, thread: usize, time: Ns, event: &Event<'_>) {
        if let Some(&Frame {
            construct: Construct::MutexWait(kind),
            key,
            ..
        }) = self.threads[thread].stack().last()
            && !matches!(event, Event::MutexAcquired(_))
        {
            self.event_of_waiting(thread, time, event, kind, key);
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
            Event::MutexWait(_) => {}
            Event::NestLock(e) if e.wait_id.0 == key => self.close(thread, time, construct, key),
            _ => {
                // How long the attempt took is not known.
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
        let is_wait = |frame: &&Frame| {
            matches!(frame.construct, Construct::MutexWait(_)) && frame.key == e.wait_id.0
        };
        let wait = self.threads[thread].stack().last().filter(is_wait);
        let waited_since = wait.map_or(time, Frame::begin);
        let wait = wait.map(|frame| frame.construct);
        let has_track = !is_block_structured(e.kind);
        let acquisition = Acquisition {
            wait_id: e.wait_id.0,
            holder: thread,
            at: self.threads[thread].point(time),
            waited_since,
            has_track,
        };
        let names = &self.thread_names;
        // The wait is left next.
        let release = match self.selection.mutex_holds {
            true => self.locks.acquired(self.stage, names, acquisition),
            false => None,
        };
        match wait {
            Some(construct) => self.close(thread, time, construct, e.wait_id.0),
            None if self.dialect.mutexes_without_wait || !self.selection.mutex_waits => {}
            None => self.repair(thread, time, Cause::EndWithoutBegin),
        }
        if !self.selection.mutex_holds {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        if !has_track {
            let construct = Construct::MutexHold(e.kind);
            let frame = Frame::new(
                construct,
                e.wait_id.0,
                self.region(thread, construct, e.codeptr_ra),
            );
            let wait_id = arguments!["wait_id": hex(e.wait_id.0)];
            self.threads[thread].open(self.stage, time, frame, wait_id);
        }
        if let Some(release) = release {
            self.stage
                .flow(FlowKind::MutexRelease, release, acquisition.at);
        }
    }

    #[inline(never)]
    pub(super) fn mutex_released(&mut self, thread: usize, time: Ns, e: &MutexReleased) {
        if !self.selection.mutex_holds {
            return self.repair(thread, time, Cause::CounterpartLeftOut);
        }
        let at = self.threads[thread].point(time);
        let (names, wait_id) = (&self.thread_names, e.wait_id.0);
        let was_held = self.locks.released(self.stage, names, wait_id, thread, at);
        let hold = Construct::MutexHold(e.kind);
        if self.dialect.mutexes_without_wait {
            self.threads[thread].close(self.stage, time, hold, wait_id, &[]);
        } else if is_block_structured(e.kind) {
            self.close(thread, time, hold, wait_id);
        } else if !was_held {
            self.repair(thread, time, Cause::EndWithoutBegin);
        }
    }
}

/// Tells a critical, atomic or ordered region, which nests on its thread, from a lock, which does not.
fn is_block_structured(kind: ompt::ompt_mutex_t) -> bool {
    matches!(
        kind,
        ompt::ompt_mutex_critical | ompt::ompt_mutex_atomic | ompt::ompt_mutex_ordered
    )
}
