//! The recorded dependences, replayed with other durations.
//!
//! Each thread carries, for each scenario, the time at which it would have reached its present. Work moves that time on by
//! the work's duration, which the scenario may change. Where threads meet, the time is that of the last of them and what
//! the meeting itself took. With nothing changed, each predicted time is the recorded one. Which thread runs which task,
//! chunk or section, and in which order threads get a mutex, stays as recorded.

use omptrace_timeline::sink::Ns;

use crate::answers::Cause;

/// Scenarios that are replayed at once.
pub(crate) const MAX_SCENARIOS: usize = 16;

/// A change of durations. Places are given by [`Marks`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// At barriers whose last member comes from the place, the members' work since the last barrier is spread evenly.
    Balanced,
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
pub(super) struct Marks {
    /// The region itself.
    pub(super) place: u16,
    /// Serial code before it.
    pub(super) before: u16,
}

/// The scenarios of a replay.
#[derive(Clone, Debug)]
pub(super) struct Scenarios<const S: usize> {
    pub(super) changes: [Change; S],
    /// By region.
    pub(super) marks: Vec<Marks>,
    /// The marks of the serial code before the process's end.
    pub(super) at_end: u16,
}

impl<const S: usize> Default for Scenarios<S> {
    fn default() -> Self {
        Scenarios {
            changes: [Change::Nothing; S],
            marks: Vec::new(),
            at_end: 0,
        }
    }
}

impl<const S: usize> Scenarios<S> {
    fn of(&self, region: u32) -> Marks {
        self.marks.get(region as usize).copied().unwrap_or_default()
    }

    fn is_at(&self, scenario: usize, region: u32) -> bool {
        self.of(region).place & 1 << scenario != 0
    }
}

/// When a thread, or whatever it left for others, would have been there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp<const S: usize> {
    /// The predicted times, in the order of the scenarios.
    times: [Ns; S],
    /// The part of those times that was waited for others since the last barrier.
    waited: [Ns; S],
    /// The recorded time.
    recorded: Ns,
}

impl<const S: usize> Stamp<S> {
    pub(super) fn new(time: Ns) -> Self {
        Stamp {
            times: [time; S],
            waited: [0; S],
            recorded: time,
        }
    }

    /// The predicted times.
    pub(super) fn times(&self) -> [Ns; S] {
        self.times
    }

    /// The thread works until `time`, of which `place` is the region, and `team` the outermost region around it with the
    /// threads of its team.
    pub(super) fn work(
        &mut self,
        time: Ns,
        ns: u64,
        place: u32,
        around: Option<(u32, u32)>,
        cause: Cause,
        scenarios: &Scenarios<S>,
    ) {
        self.catch_up(time - ns.cast_signed());
        self.recorded = time;
        let ns = ns.cast_signed();
        for scenario in 0..S {
            let here = scenarios.is_at(scenario, place);
            let new = match (scenarios.changes[scenario], cause) {
                (Change::Faster(share), Cause::Useful) if here => scaled(ns, share),
                (Change::Without(other), cause) if here && other == cause => 0,
                (Change::Shorter(other, share), cause) if here && other == cause => {
                    scaled(ns, share)
                }
                (Change::Wider(threads), _) => match around {
                    Some((region, team)) if here || scenarios.is_at(scenario, region) => {
                        let team = f64::from(team.min(threads));
                        scaled(ns, team / f64::from(threads.max(1)))
                    }
                    _ => ns,
                },
                _ => ns,
            };
            self.times[scenario] += new;
        }
    }

    /// The thread works until `time`, at a place that is not known yet.
    pub(super) fn advance(&mut self, time: Ns, ns: u64) {
        self.catch_up(time - ns.cast_signed());
        self.catch_up(time);
    }

    /// Serial work of this length, which was advanced by, lay before this region.
    pub(super) fn was_serial(&mut self, ns: u64, before: Option<u32>, scenarios: &Scenarios<S>) {
        let ns = ns.cast_signed();
        let before = before.map_or(scenarios.at_end, |id| scenarios.of(id).before);
        for scenario in 0..S {
            let here = before & 1 << scenario != 0;
            if let (true, Change::Faster(share)) = (here, scenarios.changes[scenario]) {
                self.times[scenario] -= ns - scaled(ns, share);
            }
        }
    }

    /// A wait that nothing explains takes as long as it did.
    fn catch_up(&mut self, time: Ns) {
        if time > self.recorded {
            let ns = time - self.recorded;
            self.recorded = time;
            self.times.iter_mut().for_each(|at| *at += ns);
        }
    }

    /// The thread goes on at `time`, for which `other` had to be there. In `costless` scenarios the meeting takes no time.
    pub(super) fn meet(&mut self, time: Ns, other: &Stamp<S>, costless: u16) {
        for (scenario, waited) in self.waited.iter_mut().enumerate() {
            let now = self.times[scenario];
            *waited += other.times[scenario].max(now) - now;
        }
        self.acquire(time, other, costless, 0);
    }

    /// Like [`Stamp::meet`], where even work spread evenly waits for `other`: a mutex. In `ignored` scenarios nobody does.
    pub(super) fn acquire(&mut self, time: Ns, other: &Stamp<S>, costless: u16, ignored: u16) {
        let cost = (time - self.recorded.max(other.recorded)).max(0);
        for scenario in 0..S {
            let bit = 1 << scenario;
            let before = self.times[scenario];
            let met = match ignored & bit {
                0 => before.max(other.times[scenario]),
                _ => before,
            };
            self.times[scenario] = met + if costless & bit != 0 { 0 } else { cost };
        }
        self.recorded = self.recorded.max(time);
    }

    /// The later of two, which are both awaited.
    pub(super) fn max(&self, other: &Stamp<S>) -> Stamp<S> {
        let mut later = *self;
        later.recorded = later.recorded.max(other.recorded);
        for scenario in 0..S {
            later.times[scenario] = later.times[scenario].max(other.times[scenario]);
        }
        later
    }

    /// The thread's time without waiting since the last barrier.
    pub(super) fn unwaited(&self) -> [Ns; S] {
        std::array::from_fn(|scenario| self.times[scenario] - self.waited[scenario])
    }

    /// The thread's time of waiting for others since the last barrier.
    pub(super) fn waited(&self) -> [Ns; S] {
        self.waited
    }

    /// The thread is back in the team around, where it had waited this.
    pub(super) fn leave_team(&mut self, waited: [Ns; S]) {
        self.waited = waited;
    }

    /// A barrier was left: what is waited from now on counts for the next.
    pub(super) fn leave_barrier(&mut self) {
        self.waited = [0; S];
    }

    /// Sets the times of those `scenarios`, where the recorded time is `recorded`.
    pub(super) fn set(&mut self, which: u16, times: &[Ns; S]) {
        for (scenario, (at, new)) in self.times.iter_mut().zip(times).enumerate() {
            if which & 1 << scenario != 0 {
                *at = *new;
            }
        }
    }
}

fn scaled(ns: Ns, share: f64) -> Ns {
    (ns as f64 * share) as Ns
}

impl<const S: usize> Scenarios<S> {
    /// The scenarios that change this, at `region`.
    pub(super) fn which(&self, region: u32, is_it: impl Fn(Change) -> bool) -> u16 {
        let mut bits = 0;
        for scenario in 0..S {
            let change = self.changes[scenario];
            let everywhere = change == Change::OverheadFree;
            if is_it(change) && (everywhere || self.is_at(scenario, region)) {
                bits |= 1 << scenario;
            }
        }
        bits
    }
}
