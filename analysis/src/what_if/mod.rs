//! Replays the recorded dependences with other durations.
//!
//! In each scenario, each thread carries the time at which it would have reached its current event. Work advances this
//! time by its duration, which the scenario may change. When threads meet, the time is that of the last of them, plus
//! the cost of the meeting itself. Without changes, each predicted time equals the recorded one. Which thread runs
//! which task, chunk or section, and the order in which threads acquire a mutex, stay as recorded.
//!
//! Most work takes its recorded time in every scenario. So a predicted time is stored as the sum of a base, common to
//! all scenarios, and a deviation per scenario; unchanged work only advances the base.
//!
//! If a trace contains invalid times, the arithmetic wraps around. Checking for this in each step would cost more than
//! the steps.

pub(crate) mod scenario;

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;

/// Maximum number of scenarios that are replayed at once.
pub(crate) const MAX_SCENARIOS: usize = 16;

/// A hypothetical change of durations. Places are given by [`ChangedPlaces`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// No change.
    Nothing,
    /// At barriers whose last member comes from this place, the members' work since the last barrier is spread evenly.
    Balanced,
    /// At barriers in which a task from this place was run, tasks are spread evenly. The barrier still waits for its
    /// last member.
    TasksBalanced,
    /// Members do not wait at barriers inside regions whose last member comes from this place.
    Nowait,
    /// No thread waits for a mutex that is held from this place.
    LockFree,
    /// Work at this place takes this share of its time.
    Faster(f64),
    /// Work in a region at this place is spread over this number of threads.
    Wider(u32),
    /// Losses with this cause at this place take no time.
    Without(Cause),
    /// Losses with this cause at this place take this share of their time.
    Shorter(Cause, f64),
    /// Starting and ending regions at this place takes no time.
    RegionsFree,
    /// Starting and ending any region and leaving any barrier takes no time.
    OverheadFree,
}

/// The scenarios in which a region is the changed place, as bit sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedPlaces {
    /// The region itself.
    pub(crate) place: u16,
    /// Serial code before the region.
    pub(crate) before: u16,
}

/// The scenarios of a replay.
#[derive(Clone, Debug)]
pub(crate) struct Scenarios<const S: usize> {
    changes: [Change; S],
    /// By kind of change: the scenarios of this kind, as bit sets.
    bits: Bits,
    /// By region.
    pub(crate) marks: Vec<ChangedPlaces>,
    /// The scenarios that change the serial code before the process's end.
    at_end: u16,
}

/// Bit sets of scenarios, by kind of change.
#[derive(Clone, Debug, Default)]
struct Bits {
    balanced: u16,
    tasks_balanced: u16,
    nowait: u16,
    lock_free: u16,
    faster: u16,
    wider: u16,
    without_fork: u16,
    regions_free: u16,
    overhead_free: u16,
    /// Scenarios that change the duration of states with a cause, at their place.
    by_cause: [u16; Cause::COUNT],
}

impl<const S: usize> Default for Scenarios<S> {
    fn default() -> Self {
        Scenarios::new([Change::Nothing; S], 0)
    }
}

/// The indexes of the bits that are set.
fn each(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(first)
    })
}

impl<const S: usize> Scenarios<S> {
    /// Scenarios with these changes. `at_end`: the scenarios that change the serial code before the process's end.
    pub(crate) fn new(changes: [Change; S], at_end: u16) -> Self {
        let mut bits = Bits::default();
        for (scenario, change) in changes.iter().enumerate() {
            let bit = 1 << scenario;
            let kind = match change {
                Change::Nothing => continue,
                Change::Balanced => &mut bits.balanced,
                Change::TasksBalanced => &mut bits.tasks_balanced,
                Change::Nowait => &mut bits.nowait,
                Change::LockFree => &mut bits.lock_free,
                Change::Wider(_) => &mut bits.wider,
                Change::RegionsFree => &mut bits.regions_free,
                Change::OverheadFree => &mut bits.overhead_free,
                Change::Faster(_) => {
                    for cause in Cause::ALL.iter().filter(|cause| cause.is_work()) {
                        bits.by_cause[*cause as usize] |= bit;
                    }
                    &mut bits.faster
                }
                Change::Without(cause) => {
                    if *cause == Cause::Fork {
                        bits.without_fork |= bit;
                    }
                    &mut bits.by_cause[*cause as usize]
                }
                Change::Shorter(cause, _) => &mut bits.by_cause[*cause as usize],
            };
            *kind |= bit;
        }
        Scenarios { changes, bits, marks: Vec::new(), at_end }
    }

    fn of(&self, region: u32) -> ChangedPlaces {
        self.marks.get(region as usize).copied().unwrap_or_default()
    }

    /// The scenarios that change the duration of a state with this cause. See [`PredictedTimes::work`].
    fn changed(&self, cause: Cause, place: u32, around: Option<(u32, u32)>) -> u16 {
        let here = self.of(place).place;
        let wider = match around {
            Some((region, _)) if self.bits.wider != 0 => self.bits.wider & (here | self.of(region).place),
            _ => 0,
        };
        self.bits.by_cause[cause as usize] & here | wider
    }

    /// The scenarios that spread work evenly if the last member comes from this place.
    pub(crate) fn balanced(&self, place: u32) -> u16 {
        self.bits.balanced & self.of(place).place
    }

    /// The scenarios that spread tasks evenly at barriers in which a task from this place was run.
    pub(crate) fn tasks_balanced(&self, place: u32) -> u16 {
        self.bits.tasks_balanced & self.of(place).place
    }

    /// The scenarios without waits at barriers inside a region if the last member comes from this place.
    pub(crate) fn nowait(&self, place: u32) -> u16 {
        self.bits.nowait & self.of(place).place
    }

    /// The scenarios that spread any work evenly.
    pub(crate) fn spread(&self) -> u16 {
        self.bits.balanced | self.bits.tasks_balanced
    }

    /// The scenarios without waits for a mutex that is held from this place.
    pub(crate) fn lock_free(&self, place: u32) -> u16 {
        self.bits.lock_free & self.of(place).place
    }

    /// The scenarios in which starting this region takes no time.
    pub(crate) fn without_fork(&self, region: u32) -> u16 {
        let kinds = self.bits.regions_free | self.bits.without_fork;
        self.bits.overhead_free | kinds & self.of(region).place
    }

    /// The scenarios in which ending this region, or leaving its barriers, takes no time.
    pub(crate) fn without_cost(&self, region: u32) -> u16 {
        self.bits.overhead_free | self.bits.regions_free & self.of(region).place
    }
}

/// A time before all others, for chain ends that do not exist.
const NEVER: Ns = Ns::MIN / 2;

/// The recorded time of a chain end, and its predicted time in each scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PredictedTimes<const S: usize> {
    /// The recorded time.
    recorded: Ns,
    /// The predicted time in a scenario is the sum of `base` and the scenario's deviation.
    base: Ns,
    /// By scenario.
    deviations: [Ns; S],
}

impl<const S: usize> PredictedTimes<S> {
    pub(crate) fn new(time: Ns) -> Self {
        PredictedTimes { recorded: time, base: time, deviations: [0; S] }
    }

    /// A stamp in the distant past: it delays nobody.
    pub(crate) fn never() -> Self {
        PredictedTimes::new(NEVER)
    }

    /// The predicted time in a scenario.
    pub(crate) fn time(&self, scenario: usize) -> Ns {
        self.base.wrapping_add(self.deviations[scenario])
    }

    /// The predicted times.
    pub(crate) fn times(&self) -> [Ns; S] {
        self.deviations.map(|deviation| self.base.wrapping_add(deviation))
    }

    /// The thread works until `time`. `place`: the region of the work. `around`: the outermost region around it, and
    /// the size of its team.
    pub(crate) fn work(
        &mut self,
        time: Ns,
        ns: u64,
        place: u32,
        around: Option<(u32, u32)>,
        cause: Cause,
        scenarios: &Scenarios<S>,
    ) {
        let ns = ns.cast_signed();
        self.catch_up(time - ns);
        self.recorded = time;
        self.base = self.base.wrapping_add(ns);
        for scenario in each(scenarios.changed(cause, place, around)) {
            let new = match scenarios.changes[scenario] {
                Change::Faster(share) | Change::Shorter(_, share) => scaled(ns, share),
                Change::Without(_) => 0,
                Change::Wider(threads) => {
                    let team = around.map_or(threads, |(_, team)| team.min(threads));
                    scaled(ns, f64::from(team) / f64::from(threads.max(1)))
                }
                _ => ns,
            };
            let more = new.wrapping_sub(ns);
            self.deviations[scenario] = self.deviations[scenario].wrapping_add(more);
        }
    }

    /// The thread works until `time`, at a place that is not known yet.
    pub(crate) fn advance(&mut self, time: Ns, ns: u64) {
        self.catch_up(time - ns.cast_signed());
        self.catch_up(time);
    }

    /// Corrects the prediction once the place of serial work is known: work of length `ns`, already added by `advance`,
    /// lay before region `before`.
    pub(crate) fn was_serial(&mut self, ns: u64, before: Option<u32>, scenarios: &Scenarios<S>) {
        let ns = ns.cast_signed();
        let before = before.map_or(scenarios.at_end, |id| scenarios.of(id).before);
        for scenario in each(before & scenarios.bits.faster) {
            if let Change::Faster(share) = scenarios.changes[scenario] {
                let less = ns - scaled(ns, share);
                self.deviations[scenario] = self.deviations[scenario].wrapping_sub(less);
            }
        }
    }

    /// Moves on to `time`. A wait without a known cause keeps its length in each scenario.
    fn catch_up(&mut self, time: Ns) {
        if time > self.recorded {
            self.base = self.base.wrapping_add(time - self.recorded);
            self.recorded = time;
        }
    }

    /// The thread continues at `time`, after waiting for `other`. In `costless` scenarios, the meeting takes no time.
    /// Returns its cost in the other scenarios. Adds the waiting times to `waited`.
    pub(crate) fn meet(
        &mut self,
        time: Ns,
        other: &PredictedTimes<S>,
        costless: u16,
        waited: &mut [Ns; S],
    ) -> Ns {
        let later = other.base.wrapping_sub(self.base);
        for ((own, waited), other) in self.each_with(waited).zip(&other.deviations) {
            let wait = above_zero(other.wrapping_add(later).wrapping_sub(*own));
            *own = own.wrapping_add(wait);
            *waited = waited.wrapping_add(wait);
        }
        self.take(time, other, costless)
    }

    fn each_with<'a>(
        &'a mut self,
        waited: &'a mut [Ns; S],
    ) -> impl Iterator<Item = (&'a mut Ns, &'a mut Ns)> {
        self.deviations.iter_mut().zip(waited)
    }

    /// Like [`PredictedTimes::meet`], for a mutex: even evenly spread work must wait for `other`.
    pub(crate) fn acquire(&mut self, time: Ns, other: &PredictedTimes<S>, costless: u16) {
        self.raise_times(other);
        self.take(time, other, costless);
    }

    /// Restores the times `before` in these scenarios.
    pub(crate) fn keep(&mut self, before: &PredictedTimes<S>, scenarios: u16) {
        for scenario in each(scenarios) {
            self.deviations[scenario] = before.time(scenario).wrapping_sub(self.base);
        }
    }

    /// Adds the cost of a meeting with `other`: the time left until `time`.
    fn take(&mut self, time: Ns, other: &PredictedTimes<S>, costless: u16) -> Ns {
        let cost = (time - self.recorded.max(other.recorded)).max(0);
        self.base = self.base.wrapping_add(cost);
        for scenario in each(costless) {
            self.deviations[scenario] = self.deviations[scenario].wrapping_sub(cost);
        }
        self.recorded = self.recorded.max(time);
        cost
    }

    /// The thread leaves a barrier at which `all` have arrived. In `balanced` scenarios, the time of arrival is given
    /// by `spread`, but is not later than without the change.
    pub(crate) fn leave_barrier(
        &mut self,
        time: Ns,
        all: &PredictedTimes<S>,
        costless: u16,
        (balanced, spread): (u16, impl Fn(usize) -> Ns),
        waited: &mut [Ns; S],
    ) {
        let cost = self.meet(time, all, costless, waited);
        for scenario in each(balanced) {
            let cost = match costless & 1 << scenario {
                0 => cost,
                _ => 0,
            };
            let arrived = spread(scenario).min(all.time(scenario));
            self.deviations[scenario] = arrived.wrapping_add(cost).wrapping_sub(self.base);
        }
    }

    /// Waits for both: takes the later time in each scenario.
    pub(crate) fn raise(&mut self, other: &PredictedTimes<S>) {
        self.recorded = self.recorded.max(other.recorded);
        self.raise_times(other);
    }

    /// In these scenarios, takes the earlier of both times.
    pub(super) fn lower(&mut self, other: &PredictedTimes<S>, scenarios: u16) {
        for scenario in each(scenarios) {
            let earlier = above_zero(self.time(scenario).wrapping_sub(other.time(scenario)));
            self.deviations[scenario] = self.deviations[scenario].wrapping_sub(earlier);
        }
    }

    fn raise_times(&mut self, other: &PredictedTimes<S>) {
        let later = other.base.wrapping_sub(self.base);
        for (own, other) in self.deviations.iter_mut().zip(&other.deviations) {
            let wait = above_zero(other.wrapping_add(later).wrapping_sub(*own));
            *own = own.wrapping_add(wait);
        }
    }
}

/// By scenario, the sum of the times that members have reached without waiting; only used in scenarios that spread work
/// evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwaited<const S: usize>([Ns; S]);

impl<const S: usize> Default for Unwaited<S> {
    fn default() -> Self {
        Unwaited([0; S])
    }
}

impl<const S: usize> Unwaited<S> {
    /// A member has reached `now`, after it has `waited`. `added`: its previous contribution, which is replaced.
    pub(crate) fn add(
        &mut self,
        now: &PredictedTimes<S>,
        waited: &[Ns; S],
        added: &mut [Ns; S],
        scenarios: &Scenarios<S>,
    ) {
        for scenario in each(scenarios.spread()) {
            let new = now.time(scenario).wrapping_sub(waited[scenario]);
            let more = new.wrapping_sub(std::mem::replace(&mut added[scenario], new));
            self.0[scenario] = self.0[scenario].wrapping_add(more);
        }
    }

    /// The mean over this many members.
    pub(crate) fn mean(&self, scenario: usize, members: u32) -> Ns {
        self.0[scenario] / Ns::from(members.max(1))
    }
}

/// The larger of `ns` and 0, without a branch: CPUs without a 64-bit maximum instruction would branch for each
/// scenario.
fn above_zero(ns: Ns) -> Ns {
    ns & !(ns >> (Ns::BITS - 1))
}

fn scaled(ns: Ns, share: f64) -> Ns {
    (ns as f64 * share) as Ns
}
