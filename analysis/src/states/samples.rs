//! Samples: the functions to blame for waits, and the functions on the critical path.
//!
//! A sample counts for the threads that are waiting when it is taken, but its function may be known only when its
//! region ends. So the weights are noted when the sample is taken, and added when its function is known.

use omptrace_timeline::model::RuntimeActivity;

use super::*;
use crate::model::function_number::{ByFunction, FunctionNumber};
use crate::model::sum::Sum;

/// Maximum number of held mutexes per thread for which samples are charged. Programs do not nest that many.
const MAX_HELD: usize = 64;

/// A sample whose function is not known yet.
#[derive(Debug, Default)]
struct Taken {
    /// What other threads waited for: cause, place, and the sum of their waiting times.
    charges: Vec<(Cause, PlaceId, f64)>,
    /// The CPU time that the sample represents.
    weight_ns: u64,
    /// The stretch of serial code in which the sample was taken.
    serial: Option<u64>,
    /// The sample's number on chains of work, if it is on one.
    on_chain: Option<u32>,
}

/// The samples of a process.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// By location.
    taken: Vec<VecDeque<Taken>>,
    /// The number of the next sample on a chain.
    next: u32,
    /// The functions of the samples on chains, as far as they are known.
    names: FastMap<u32, FunctionNumber>,
    /// The number of the current stretch of serial code, the region before it, and the CPU time in it by function.
    stretch: u64,
    after: Option<PlaceId>,
    serial: BTreeMap<FunctionNumber, u64>,
}

impl Samples {
    /// Serial code ends with the start of region `before`, or if it is `None`, with the process.
    pub(super) fn end_serial(&mut self, before: Option<PlaceId>, sums: &mut Sums) {
        self.stretch += 1;
        let serial = std::mem::take(&mut self.serial);
        if !serial.is_empty() {
            let between = (self.after, before);
            let known = sums.serial_functions.entry(between).or_default();
            for (function, ns) in serial {
                known.entry(function).or_default().grow_by(ns);
            }
        }
    }

    /// The last open region has ended, so serial code begins.
    pub(super) fn begin_serial(&mut self, after: PlaceId) {
        self.after = Some(after);
    }

    /// The CPU time of a chain's samples by function, as far as known.
    pub(super) fn named(&self, chain: Vec<(u32, u64)>) -> ByFunction {
        let mut functions = ByFunction::new();
        for (sample, ns) in chain {
            let number = critical_path::function(sample).or_else(|| self.names.get(&sample).copied());
            if let Some(function) = number {
                functions.entry(function).or_default().grow_by(ns);
            }
        }
        functions
    }

    /// Takes the functions by sample number. Afterwards, chains refer to these samples by their functions.
    pub(super) fn take_names(&mut self) -> FastMap<u32, FunctionNumber> {
        std::mem::take(&mut self.names)
    }
}

impl<const S: usize> Threads<S> {
    /// A sample that represents this much CPU time was taken on a thread.
    pub(super) fn sampled(&mut self, location: usize, weight_ns: u64) {
        let Some(Some(thread)) = self.by_location.get(location).copied() else {
            return;
        };
        let taken = match self.is_inside {
            true => self.taken(thread, weight_ns),
            false => Taken::default(),
        };
        let of_location = &mut self.samples.taken;
        if of_location.len() <= location {
            of_location.resize_with(location + 1, VecDeque::new);
        }
        of_location[location].push_back(taken);
    }

    fn taken(&mut self, thread: usize, weight_ns: u64) -> Taken {
        let mut taken = Taken { weight_ns, ..Taken::default() };
        let state = self.threads[thread].state;
        if state == State::Rests {
            return taken;
        }
        taken.charges = self.charges(thread, weight_ns as f64);
        match self.threads[thread].memberships.first() {
            Some(outermost) => {
                let region = self.teams[outermost.team].region;
                let charge = (Cause::NarrowTeam, region, weight_ns as f64);
                taken.charges.push(charge);
            }
            None if self.by_id.is_empty() => {
                taken.serial = Some(self.samples.stretch);
            }
            None => {}
        }
        if let State::Useful(_) = state {
            let sample = self.samples.next;
            // Samples beyond the limit share one number, and are not named.
            self.samples.next = (sample + 1).min(critical_path::MAX_SAMPLES);
            let chain = &mut self.threads[thread].now.chain;
            self.chains.sample(chain, sample, weight_ns);
            taken.on_chain = (sample < critical_path::MAX_SAMPLES).then_some(sample);
        }
        taken
    }

    /// What other threads currently wait for because of this thread, by its state.
    fn charges(&mut self, thread: usize, weight: f64) -> Vec<(Cause, PlaceId, f64)> {
        let ThreadState { state, runs_task, last_region, .. } = self.threads[thread];
        let mut charges = Vec::new();
        let of_thread = &self.threads[thread];
        let is_held = |lock: &&Lock<S>| lock.location == of_thread.location;
        let held = of_thread.held.iter();
        for lock in held.map(|slot| &self.locks[*slot]).filter(is_held) {
            if let Some(place) = lock.holder
                && !lock.waiters.is_empty()
            {
                charges.push((lock.cause, place, weight * lock.waiters.len() as f64));
            }
        }
        let place = match state {
            State::Useful(Some(place)) | State::Loses(_, place) => place,
            State::Useful(None) => self.sums.serial((last_region, None)),
            State::InBarrier(_) | State::Rests => return charges,
        };
        for index in 0..self.threads[thread].memberships.len() {
            let membership = self.threads[thread].memberships[index];
            let team = &mut self.teams[membership.team];
            let (size, region) = (team.size(), team.region);
            let number = membership.inside.unwrap_or(membership.barriers);
            let Some((barrier, _)) = team.barrier(number) else {
                continue;
            };
            let is_late = barrier.arrived < size;
            let (cause, place) = match membership.inside {
                None if is_late => {
                    (Cause::Imbalance, barrier.place_before(place, region, self.reports.inlined))
                }
                Some(_) if !is_late => (Cause::TaskStarvation, place),
                _ => continue,
            };
            charges.push((cause, place, weight * barrier.kept_waiting(size)));
        }
        if let Some(innermost) = self.threads[thread].memberships.last()
            && runs_task
        {
            let team = &self.teams[innermost.team];
            let kept = f64::from(team.waiting) / f64::from(team.running.max(1));
            charges.push((Cause::TaskWait, place, weight * kept));
        }
        charges.retain(|(_, _, weight)| *weight > 0.0);
        charges
    }

    /// Names the oldest unnamed sample of a thread. `spins`: the function and the activity, if the sample may belong to
    /// a spin loop.
    pub(crate) fn name_sample(
        &mut self,
        location: usize,
        function: FunctionNumber,
        spins: Option<(FunctionNumber, RuntimeActivity)>,
    ) {
        let of_location = self.samples.taken.get_mut(location);
        let Some(taken) = of_location.and_then(VecDeque::pop_front) else {
            return;
        };
        self.sums.has_samples = true;
        for (cause, place, weight) in taken.charges {
            let known = self.sums.functions.entry((cause, place)).or_default();
            *known.entry(function).or_default() += weight;
        }
        let ns = taken.weight_ns;
        if let Some(spins) = spins {
            self.sums.spins.entry(spins).or_default().grow_by(ns);
        }
        let times = self.sums.serial_times.entry(function).or_default();
        match taken.serial {
            Some(_) => times.serial_ns.grow_by(ns),
            None => times.other_ns.grow_by(ns),
        }
        if taken.serial == Some(self.samples.stretch) {
            self.samples.serial.entry(function).or_default().grow_by(ns);
        }
        if let Some(sample) = taken.on_chain {
            self.samples.names.insert(sample, function);
        }
    }

    /// The thread has acquired a mutex.
    pub(super) fn hold_lock(&mut self, thread: usize, lock: LockSlot) {
        let held = &mut self.threads[thread].held;
        if held.len() < MAX_HELD && !held.contains(&lock) {
            held.push(lock);
        }
    }
}
