//! The recorded dependences, replayed with other durations.
//!
//! Each thread carries, for each scenario, the time at which it would have reached its present. Work moves that time on by
//! the work's duration, which the scenario may change. Where threads meet, the time is that of the last of them and what
//! the meeting itself took. With nothing changed, each predicted time is the recorded one. Which thread runs which task,
//! chunk or section, and in which order threads get a mutex, stays as recorded.
//!
//! Most work takes its recorded time in every scenario. So a time is the sum of one number for all scenarios and of a
//! deviation for each: such work changes only that number.
//!
//! Where the times of a trace make no sense, sums begin again at the least number. Checks for that in each step would cost more
//! than the steps.

pub(crate) mod scenario;

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;

/// Scenarios that are replayed at once.
pub(crate) const MAX_SCENARIOS: usize = 16;

/// A change of durations. Places are given by [`Marks`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// At barriers whose last member comes from the place, the members' work since the last barrier is spread evenly.
    Balanced,
    /// At barriers in which a task at the place was run, tasks are spread evenly, but none is waited for less than
    /// for the last member.
    TasksBalanced,
    /// Members go on at once at barriers inside regions whose last member comes from the place.
    Nowait,
    /// Nobody waits for a mutex that is held from the place on.
    LockFree,
    /// Work at the place takes this share of its time.
    Faster(f64),
    /// Work in a region at the place is spread over this many threads.
    Wider(u32),
    /// Losses by this cause at the place take no time.
    Without(Cause),
    /// Losses by this cause at the place take this share of their time.
    Shorter(Cause, f64),
    /// To begin and end regions at the place takes no time.
    RegionsFree,
    /// To begin and end any region and to leave any barrier takes no time.
    OverheadFree,
}

/// In which scenarios a region is the place that is meant: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The region itself.
    pub(crate) place: u16,
    /// Serial code before it.
    pub(crate) before: u16,
}

/// The scenarios of a replay.
#[derive(Clone, Debug)]
pub(crate) struct Scenarios<const S: usize> {
    changes: [Change; S],
    /// The scenarios of each kind of change: a bit for each.
    bits: Bits,
    /// By region.
    pub(crate) marks: Vec<Marks>,
    /// The marks of the serial code before the process's end.
    at_end: u16,
}

/// Scenarios by what they change.
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
    /// Those that change how long states of a cause last, where their place is.
    by_cause: [u16; Cause::COUNT],
}

impl<const S: usize> Default for Scenarios<S> {
    fn default() -> Self {
        Scenarios::new([Change::Nothing; S], 0)
    }
}

/// The numbers of the bits that are set.
fn each(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(first)
    })
}

impl<const S: usize> Scenarios<S> {
    /// Scenarios with these changes. `at_end`: those whose place is the serial code before the process's end.
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

    fn of(&self, region: u32) -> Marks {
        self.marks.get(region as usize).copied().unwrap_or_default()
    }

    /// The scenarios in which a state of this cause does not last as long as it did. See [`Stamp::work`].
    fn changed(&self, cause: Cause, place: u32, around: Option<(u32, u32)>) -> u16 {
        let here = self.of(place).place;
        let wider = match around {
            Some((region, _)) if self.bits.wider != 0 => self.bits.wider & (here | self.of(region).place),
            _ => 0,
        };
        self.bits.by_cause[cause as usize] & here | wider
    }

    /// The scenarios in which work at the last member's place is spread evenly.
    pub(crate) fn balanced(&self, place: u32) -> u16 {
        self.bits.balanced & self.of(place).place
    }

    /// The scenarios in which tasks are spread evenly at barriers in which one at the place was run.
    pub(crate) fn tasks_balanced(&self, place: u32) -> u16 {
        self.bits.tasks_balanced & self.of(place).place
    }

    /// The scenarios in which nobody waits at a barrier inside a region whose last member comes from the place.
    pub(crate) fn nowait(&self, place: u32) -> u16 {
        self.bits.nowait & self.of(place).place
    }

    /// The scenarios in which work is spread evenly somewhere.
    pub(crate) fn spread(&self) -> u16 {
        self.bits.balanced | self.bits.tasks_balanced
    }

    /// The scenarios in which nobody waits for a mutex that is held from the place on.
    pub(crate) fn lock_free(&self, place: u32) -> u16 {
        self.bits.lock_free & self.of(place).place
    }

    /// The scenarios in which to begin this region takes no time.
    pub(crate) fn without_fork(&self, region: u32) -> u16 {
        let kinds = self.bits.regions_free | self.bits.without_fork;
        self.bits.overhead_free | kinds & self.of(region).place
    }

    /// The scenarios in which to end this region, or to leave its barriers, takes no time.
    pub(crate) fn without_cost(&self, region: u32) -> u16 {
        self.bits.overhead_free | self.bits.regions_free & self.of(region).place
    }
}

/// The time of what never was: before all others.
const NEVER: Ns = Ns::MIN / 2;

/// When a thread, or whatever it left for others, would have been there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp<const S: usize> {
    /// The recorded time.
    recorded: Ns,
    /// The predicted time of a scenario is this and its deviation.
    base: Ns,
    /// In the order of the scenarios.
    deviations: [Ns; S],
}

impl<const S: usize> Stamp<S> {
    pub(crate) fn new(time: Ns) -> Self {
        Stamp { recorded: time, base: time, deviations: [0; S] }
    }

    /// The stamp of what others need not wait for.
    pub(crate) fn never() -> Self {
        Stamp::new(NEVER)
    }

    /// The predicted time of a scenario.
    pub(crate) fn time(&self, scenario: usize) -> Ns {
        self.base.wrapping_add(self.deviations[scenario])
    }

    /// The predicted times.
    pub(crate) fn times(&self) -> [Ns; S] {
        self.deviations.map(|deviation| self.base.wrapping_add(deviation))
    }

    /// The thread works until `time`, of which `place` is the region, and `around` the outermost region around it with the
    /// threads of its team.
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

    /// Serial work of this length, which was advanced by, lay before this region.
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

    /// A wait that nothing explains takes as long as it did.
    fn catch_up(&mut self, time: Ns) {
        if time > self.recorded {
            self.base = self.base.wrapping_add(time - self.recorded);
            self.recorded = time;
        }
    }

    /// The thread goes on at `time`, for which `other` had to be there. In `costless` scenarios the meeting takes no time.
    /// Gives what it takes in others. What was waited for is added to `waited`.
    pub(crate) fn meet(&mut self, time: Ns, other: &Stamp<S>, costless: u16, waited: &mut [Ns; S]) -> Ns {
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

    /// Like [`Stamp::meet`], where even work spread evenly waits for `other`: a mutex.
    pub(crate) fn acquire(&mut self, time: Ns, other: &Stamp<S>, costless: u16) {
        self.raise_times(other);
        self.take(time, other, costless);
    }

    /// In these scenarios, it stays as it was `before`.
    pub(crate) fn keep(&mut self, before: &Stamp<S>, scenarios: u16) {
        for scenario in each(scenarios) {
            self.deviations[scenario] = before.time(scenario).wrapping_sub(self.base);
        }
    }

    /// A meeting with `other` takes what is left until `time`.
    fn take(&mut self, time: Ns, other: &Stamp<S>, costless: u16) -> Ns {
        let cost = (time - self.recorded.max(other.recorded)).max(0);
        self.base = self.base.wrapping_add(cost);
        for scenario in each(costless) {
            self.deviations[scenario] = self.deviations[scenario].wrapping_sub(cost);
        }
        self.recorded = self.recorded.max(time);
        cost
    }

    /// The thread leaves a barrier at which `all` have arrived. In `balanced` scenarios, that was when `spread` says,
    /// and not later than without it.
    pub(crate) fn leave_barrier(
        &mut self,
        time: Ns,
        all: &Stamp<S>,
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

    /// Both this and `other` are awaited.
    pub(crate) fn raise(&mut self, other: &Stamp<S>) {
        self.recorded = self.recorded.max(other.recorded);
        self.raise_times(other);
    }

    /// In these scenarios, it is not later than `other`.
    pub(super) fn lower(&mut self, other: &Stamp<S>, scenarios: u16) {
        for scenario in each(scenarios) {
            let earlier = above_zero(self.time(scenario).wrapping_sub(other.time(scenario)));
            self.deviations[scenario] = self.deviations[scenario].wrapping_sub(earlier);
        }
    }

    fn raise_times(&mut self, other: &Stamp<S>) {
        let later = other.base.wrapping_sub(self.base);
        for (own, other) in self.deviations.iter_mut().zip(&other.deviations) {
            let wait = above_zero(other.wrapping_add(later).wrapping_sub(*own));
            *own = own.wrapping_add(wait);
        }
    }
}

/// The sum, by scenario, of the times that members have come to without waiting. It has those only that spread work evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwaited<const S: usize>([Ns; S]);

impl<const S: usize> Default for Unwaited<S> {
    fn default() -> Self {
        Unwaited([0; S])
    }
}

impl<const S: usize> Unwaited<S> {
    /// A member has come to `now`, after it has `waited`. `added`: what it has added so far.
    pub(crate) fn add(
        &mut self,
        now: &Stamp<S>,
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

    /// The mean of this many members.
    pub(crate) fn mean(&self, scenario: usize, members: u32) -> Ns {
        self.0[scenario] / Ns::from(members.max(1))
    }
}

/// The number, or 0 where it is below that: without a branch, which CPUs without a 64-bit maximum would take one by one.
fn above_zero(ns: Ns) -> Ns {
    ns & !(ns >> (Ns::BITS - 1))
}

fn scaled(ns: Ns, share: f64) -> Ns {
    (ns as f64 * share) as Ns
}
