//! Charges each nanosecond of a wait to what the awaited thread did in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;
use omptrace_timeline::{Ranks, WaitKind};

use crate::model::place::Place;
use crate::model::rank_waits::{Charge, RankWait, RankWaits, WaitState};
use crate::model::sum::Sum as _;
use crate::rank_waits::activity::{Activity, Done, Part};
use crate::rank_waits::call_waits::CallWaits;
use crate::rank_waits::spans::ProcessSpans;

/// Maximum number of rows per list.
const MAX_ROWS: usize = 1000;
/// Maximum number of ranks through which a wait is passed on: threads of several ranks may wait for each other in a circle.
const MAX_PASSED: usize = 128;

/// A wait, as it was accounted for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) begin: Ns,
    pub(super) end: Ns,
    /// The call, by its number in the job.
    pub(super) place: u32,
    pub(super) kind: WaitKind,
    /// The awaited thread.
    pub(super) of: Strand,
    /// The first wait of its call. Interruptions divide the wait of a call into parts.
    pub(super) is_first: bool,
}

/// A thread of a rank.
pub(super) type Strand = (u32, u32);

/// All waits of a job, and what the awaited threads did meanwhile.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) places: Vec<Place>,
    /// By rank and thread, in chronological order.
    pub(super) waits: BTreeMap<Strand, Vec<Wait>>,
    activity: FastMap<Strand, Activity>,
}

impl RankWaits {
    /// The waits of a job. `processes` has the spans of its processes in the timeline's order; `at` maps times to the timeline
    /// that is analysed.
    pub(crate) fn of(
        ranks: &Ranks,
        processes: Vec<ProcessSpans>,
        at: impl Fn(Ns) -> Ns,
    ) -> (RankWaits, CallWaits) {
        let job = Job::of(ranks, processes, at);
        (job.charged(), job.of_calls())
    }
}

impl Job {
    fn of_calls(&self) -> CallWaits {
        let mut all = CallWaits::default();
        for ((rank, _), waits) in &self.waits {
            let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
            for wait in waits {
                sums.entry(wait.place).or_default().grow_by(wait.begin.abs_diff(wait.end));
            }
            for (place, ns) in sums {
                let place = self.places[place as usize].clone();
                all.by_call.entry((*rank, place)).or_default().grow_by(ns);
            }
        }
        (all.serialised, all.serialised_ranks) = self.serialised();
        all
    }

    fn of(ranks: &Ranks, processes: Vec<ProcessSpans>, at: impl Fn(Ns) -> Ns) -> Job {
        let mut job = Job::default();
        let mut numbers: FastMap<Place, u32> = FastMap::default();
        for (number, process) in processes.into_iter().enumerate() {
            let Some(of_rank) = ranks.process(number) else { continue };
            let places: Vec<u32> = process
                .places
                .into_iter()
                .map(|place| {
                    *numbers.entry(place).or_insert_with_key(|place| {
                        job.places.push(place.clone());
                        job.places.len() as u32 - 1
                    })
                })
                .collect();
            let rank = of_rank.rank;
            for (thread, spans) in process.activity {
                let spans = spans
                    .into_iter()
                    .map(|it| (it.begin, it.end, it.cause, it.place.map(|place| places[place as usize])));
                job.activity.insert((rank, thread), Activity::of(spans.collect()));
            }
            // Each wait is a part of the wait of a call, or all of it if nothing interrupted the call.
            let joints = of_rank.joints().all();
            let mut last = None;
            for wait in process.waits {
                let (mut begin, place) = (wait.begin, places[wait.place as usize]);
                let of_thread = |thread: u32| joints.partition_point(|it| it.thread < thread);
                let own = &joints[of_thread(wait.thread)..of_thread(wait.thread + 1)];
                while begin < wait.end {
                    let next = own.partition_point(|joint| at(joint.begin) <= begin);
                    let Some(joint) = own.get(next.saturating_sub(1)) else { break };
                    let end = own.get(next).map_or(wait.end, |next| at(next.begin).min(wait.end));
                    let call = (joint.thread, joint.begin);
                    job.waits.entry((rank, wait.thread)).or_default().push(Wait {
                        begin,
                        end,
                        place,
                        kind: joint.kind,
                        of: (joint.rank, joint.of_thread),
                        is_first: last.replace(call) != Some(call),
                    });
                    begin = end;
                }
            }
        }
        job
    }

    fn charged(&self) -> RankWaits {
        let mut all = RankWaits::default();
        let mut states: BTreeMap<WaitKind, (u64, u64)> = BTreeMap::new();
        let mut rows: FastMap<(u32, WaitKind, u32, u32), (u64, u64)> = FastMap::default();
        let (mut direct, mut first) = (Charges::default(), Charges::default());
        for ((rank, _), waits) in &self.waits {
            for wait in waits {
                let ns = wait.begin.abs_diff(wait.end);
                all.total_ns.grow_by(ns);
                let key = (*rank, wait.kind, wait.place, wait.of.0);
                for sums in [states.entry(wait.kind).or_default(), rows.entry(key).or_default()] {
                    sums.0.grow_by(ns);
                    sums.1 += u64::from(wait.is_first);
                }
                let of_wait = (wait.kind, wait.place);
                let mut charge_first = |rank_of, done, ns| first.add((rank_of, done, of_wait), *rank, ns);
                self.parts(wait.of, (wait.begin, wait.end), &mut |part| {
                    direct.add((wait.of.0, part.done(), of_wait), *rank, part.ns());
                    self.charge_first(wait.of, part, MAX_PASSED, &mut charge_first);
                });
            }
        }
        let known = WaitKind::ALL.iter().filter_map(|kind| Some((kind, states.get(kind)?)));
        let state = |(kind, (ns, count)): (&WaitKind, &(u64, u64))| WaitState {
            state: kind.state(),
            ns: *ns,
            count: *count,
        };
        all.states = known.map(state).collect();
        let waits = rows.into_iter().map(|((rank, kind, place, waits_for), (ns, count))| RankWait {
            rank,
            state: kind.state(),
            place: self.places[place as usize].clone(),
            waits_for,
            ns,
            count,
        });
        let mut waits: Vec<RankWait> = waits.collect();
        waits.sort_by(|a, b| {
            let key = |row: &RankWait| (Reverse(row.ns), row.rank, row.waits_for, row.state);
            key(a).cmp(&key(b)).then_with(|| a.place.cmp(&b.place))
        });
        (all.waits, all.more_waits_ns) = listed(waits, |row| row.ns);
        (all.charged, all.more_charged_ns) = listed(direct.rows(&self.places), |row| row.ns);
        (all.first_causes, all.more_first_causes_ns) = listed(first.rows(&self.places), |row| row.ns);
        all
    }

    /// The parts of a time by what a thread did in them.
    fn parts(&self, of: Strand, time: (Ns, Ns), each: &mut dyn FnMut(Part)) {
        match self.activity.get(&of) {
            Some(activity) => activity.parts(time, each),
            None => each(Part::Other(None, time.0.abs_diff(time.1))),
        }
    }

    /// Charges a part of a thread's time. The thread's own waits are passed on to at most `passed` other ranks.
    fn charge_first(&self, of: Strand, part: Part, passed: usize, charge: &mut dyn FnMut(u32, Done, u64)) {
        match part {
            Part::Wait(done, time) if passed > 0 => self.pass_on(of, time, done, passed, charge),
            part => charge(of.0, part.done(), part.ns()),
        }
    }

    /// Passes on a time in which a thread waits itself.
    fn pass_on(
        &self,
        of: Strand,
        (begin, end): (Ns, Ns),
        done: Done,
        passed: usize,
        charge: &mut dyn FnMut(u32, Done, u64),
    ) {
        let waits = self.waits.get(&of).map_or(&[][..], |waits| &waits[..]);
        let mut until = begin;
        let first = waits.partition_point(|wait| wait.end <= begin);
        for wait in waits[first..].iter().take_while(|wait| wait.begin < end) {
            let (from, to) = (wait.begin.max(until), wait.end.min(end));
            if from < to {
                if until < from {
                    charge(of.0, done, until.abs_diff(from));
                }
                until = to;
                self.parts(wait.of, (from, to), &mut |part| {
                    self.charge_first(wait.of, part, passed - 1, charge)
                });
            }
        }
        if until < end {
            charge(of.0, done, until.abs_diff(end));
        }
    }
}

/// What a row of charges is about: the rank, what it did, and the wait state and call of the waiting ranks.
type Key = (u32, Done, (WaitKind, u32));

/// Sums of what is charged.
#[derive(Debug, Default)]
struct Charges(FastMap<Key, (u64, BTreeSet<u32>)>);

impl Charges {
    fn add(&mut self, key: Key, waiting: u32, ns: u64) {
        let (sum, ranks) = self.0.entry(key).or_default();
        sum.grow_by(ns);
        ranks.insert(waiting);
    }

    /// The rows, the longest first.
    fn rows(self, places: &[Place]) -> Vec<Charge> {
        let place = |number: u32| places[number as usize].clone();
        let row = |((rank, done, (kind, wait)), (ns, ranks)): (Key, (u64, BTreeSet<u32>))| Charge {
            rank,
            cause: done.map(|(cause, _)| cause),
            place: done.and_then(|(_, at)| at).map(place),
            state: kind.state(),
            waits_at: place(wait),
            ns,
            ranks: ranks.len() as u64,
        };
        let mut rows: Vec<Charge> = self.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &Charge| (Reverse(row.ns), row.rank, row.cause, row.state);
            let places = || (&a.place, &a.waits_at).cmp(&(&b.place, &b.waits_at));
            key(a).cmp(&key(b)).then_with(places)
        });
        rows
    }
}

/// The rows that are listed, and the time in all others.
fn listed<R>(mut rows: Vec<R>, ns: impl Fn(&R) -> u64) -> (Vec<R>, u64) {
    let more = rows.split_off(rows.len().min(MAX_ROWS));
    let mut sum = 0_u64;
    more.iter().for_each(|row| sum.grow_by(ns(row)));
    (rows, sum)
}
