//! Phases that are complete, and who schedules them: this thread, or others.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::list_scheduler::Scheduler;
use super::phase::Phase;
use super::region_scaling::Scaling;
use crate::model::place_id::PlaceId;

/// Steps of the phases that another thread gets at once: as many as spare most of the hand-overs.
const BATCH: usize = 1 << 12;

/// A phase of a region at a place, which `size` threads had.
#[derive(Debug)]
struct Complete {
    place: PlaceId,
    size: u32,
    phase: Phase,
}

/// The times of phases on other numbers of threads, added up by place.
#[derive(Debug)]
struct Times {
    numbers: Vec<u32>,
    scheduler: Scheduler,
    places: BTreeMap<PlaceId, Scaling>,
}

impl Times {
    fn new(numbers: Vec<u32>) -> Times {
        Times { numbers, scheduler: Scheduler::default(), places: BTreeMap::new() }
    }

    /// Adds a phase; gives its memory back.
    fn add(&mut self, complete: Complete) -> Phase {
        let Complete { place, size, mut phase } = complete;
        let of_place = self.places.entry(place).or_default();
        of_place.add(&phase, size, &self.numbers, &mut self.scheduler);
        phase.clear();
        phase
    }
}

/// Schedules phases. Their times are added up, so that it does not matter who schedules which.
#[derive(Debug)]
pub(crate) struct Scheduling {
    here: Times,
    spare: Vec<Phase>,
    /// How many phases there were.
    phases: u64,
    others: Others,
}

/// Other threads that schedule; there may be none.
#[derive(Debug)]
struct Others {
    workers: Vec<Worker>,
    /// The one that gets the next batch.
    next: usize,
    batch: Vec<Complete>,
    /// The steps of its phases.
    steps: usize,
    /// Phases that were scheduled.
    spare: Receiver<Vec<Phase>>,
}

#[derive(Debug)]
struct Worker {
    batches: SyncSender<Vec<Complete>>,
    thread: JoinHandle<BTreeMap<PlaceId, Scaling>>,
}

impl Worker {
    /// `None` where there can be no more threads.
    fn new(numbers: Vec<u32>, to_spare: Sender<Vec<Phase>>) -> Option<Worker> {
        // Phases may be large: one batch waits.
        let (batches, of_thread) = sync_channel::<Vec<Complete>>(1);
        let work = move || {
            let mut times = Times::new(numbers);
            for batch in of_thread {
                let spare = batch.into_iter().map(|complete| times.add(complete));
                // Nobody takes it where the work has ended.
                let _ = to_spare.send(spare.collect());
            }
            times.places
        };
        let thread = thread::Builder::new().name("omptrace-schedule".into());
        let thread = thread.spawn(work).ok()?;
        Some(Worker { batches, thread })
    }
}

impl Scheduling {
    /// Schedules on these `numbers` of threads; at most `threads` others do it, this one where there are none.
    pub(crate) fn new(numbers: Vec<u32>, threads: usize) -> Scheduling {
        let (to_spare, spare) = channel();
        let worker = |_| Worker::new(numbers.clone(), to_spare.clone());
        Scheduling {
            others: Others {
                workers: (0..threads).map_while(worker).collect(),
                next: 0,
                batch: Vec::new(),
                steps: 0,
                spare,
            },
            here: Times::new(numbers),
            spare: Vec::new(),
            phases: 0,
        }
    }

    /// Forgets the phases of before, which only this thread has scheduled.
    pub(crate) fn forget(&mut self) {
        self.here.places.clear();
    }

    /// An empty phase.
    pub(crate) fn phase(&mut self) -> Phase {
        if self.spare.is_empty()
            && let Ok(spare) = self.others.spare.try_recv()
        {
            self.spare = spare;
        }
        self.phases += 1;
        let mut phase = self.spare.pop().unwrap_or_default();
        phase.number = self.phases;
        phase
    }

    /// A phase of a region at `place` is complete, which `size` threads had.
    pub(crate) fn add(&mut self, place: PlaceId, size: u32, phase: Phase) {
        let steps = phase.steps();
        let complete = Complete { place, size, phase };
        if self.others.workers.is_empty() {
            let spare = self.here.add(complete);
            self.spare.push(spare);
            return;
        }
        let others = &mut self.others;
        others.batch.push(complete);
        others.steps += steps + 1;
        if others.steps >= BATCH {
            others.send();
        }
    }

    /// The times by place.
    pub(crate) fn places(mut self) -> BTreeMap<PlaceId, Scaling> {
        self.others.send();
        let mut places = self.here.places;
        // All have got all before the first is waited for.
        let workers = self.others.workers.into_iter();
        let threads: Vec<_> = workers.map(|worker| worker.thread).collect();
        for thread in threads {
            let of_thread = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            for (place, scaling) in of_thread {
                places.entry(place).or_default().merge(&scaling);
            }
        }
        places
    }
}

impl Others {
    fn send(&mut self) {
        let (batch, workers) = (std::mem::take(&mut self.batch), &self.workers);
        self.steps = 0;
        if let Some(worker) = workers.get(self.next) {
            // It takes no more only when it panicked, which its end reports.
            let _ = worker.batches.send(batch);
            self.next = (self.next + 1) % workers.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::At;
    use super::*;

    /// Phases of two places, whose work differs.
    fn places(threads: usize) -> BTreeMap<PlaceId, Scaling> {
        let mut scheduling = Scheduling::new(vec![1, 2, 3], threads);
        for number in 0..20_000 {
            let mut phase = scheduling.phase();
            phase.work(0, At::Member, 10 + number);
            let chunk = At::Strand(phase.share());
            phase.work(1, chunk, 5 * number);
            scheduling.add(number as PlaceId % 2, 2, phase);
        }
        scheduling.places()
    }

    #[test]
    fn times_are_the_same_whoever_schedules() {
        let here = places(0);
        assert_eq!(here.len(), 2);
        for threads in [1, 2, 5] {
            assert_eq!(places(threads), here, "{threads}");
        }
    }
}
