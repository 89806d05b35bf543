//! Schedules completed phases, on this thread or on a pool of other threads.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::list_scheduler::Scheduler;
use super::phase::Phase;
use super::region_scaling::Scaling;
use crate::model::place_id::PlaceId;

/// Number of steps that are passed to another thread at once, which keeps the number of hand-overs low.
const BATCH: usize = 1 << 12;

/// A completed phase of a region, recorded with `size` threads.
#[derive(Debug)]
struct Complete {
    place: PlaceId,
    size: u32,
    phase: Phase,
}

/// The times of phases on other numbers of threads, summed by place.
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

    /// Adds a phase; returns it for reuse of its memory.
    fn add(&mut self, complete: Complete) -> Phase {
        let Complete { place, size, mut phase } = complete;
        let of_place = self.places.entry(place).or_default();
        of_place.add(&phase, size, &self.numbers, &mut self.scheduler);
        phase.clear();
        phase
    }
}

/// Schedules phases. Times are summed, so the result does not depend on which thread schedules a phase.
#[derive(Debug)]
pub(crate) struct Scheduling {
    here: Times,
    spare: Vec<Phase>,
    /// The number of phases so far.
    phases: u64,
    others: Others,
}

/// The other scheduling threads, if any.
#[derive(Debug)]
struct Others {
    workers: Vec<Worker>,
    /// The index of the thread that receives the next batch.
    next: usize,
    batch: Vec<Complete>,
    /// The number of steps in the batch.
    steps: usize,
    /// Scheduled phases, returned for reuse.
    spare: Receiver<Vec<Phase>>,
}

#[derive(Debug)]
struct Worker {
    batches: SyncSender<Vec<Complete>>,
    thread: JoinHandle<BTreeMap<PlaceId, Scaling>>,
}

impl Worker {
    /// `None` if no more threads can be created.
    fn new(numbers: Vec<u32>, to_spare: Sender<Vec<Phase>>) -> Option<Worker> {
        // Phases may be large, so only one batch is queued.
        let (batches, of_thread) = sync_channel::<Vec<Complete>>(1);
        let work = move || {
            let mut times = Times::new(numbers);
            for batch in of_thread {
                let spare = batch.into_iter().map(|complete| times.add(complete));
                // Fails if the receiver has ended, which does not matter.
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
    /// Schedules phases on these `numbers` of threads, using up to `threads` other threads, or this one if there are
    /// none.
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

    /// Forgets earlier phases. Only this thread may have scheduled any.
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

    /// Adds a completed phase of a region at `place`, recorded with `size` threads.
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
        // Closes the queues of all workers before waiting for the first.
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
            // Fails only if the worker panicked, which joining it will report.
            let _ = worker.batches.send(batch);
            self.next = (self.next + 1) % workers.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::At;
    use super::*;

    /// The result for phases of two places with different work.
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
