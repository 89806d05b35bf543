//! Where the critical path of a job goes: backwards from the end of the last rank. In a wait, it goes to the rank that ended the
//! wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_timeline::Ranks;
use omptrace_timeline::model::Ns;

/// The critical path of a job, as times of its ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// From the begin of the first rank to the end of the last one.
    pub(crate) life: (Ns, Ns),
    /// By process in the timeline's order and by the index of the thread's stream: when it is on the path, in chronological order.
    pub(crate) times: Vec<BTreeMap<u32, Vec<(Ns, Ns)>>>,
    /// How often the path goes from one rank to another.
    pub(crate) changes: u64,
}

impl Walk {
    /// The path of a job with this number of processes; `None` unless all ranks are there.
    pub(crate) fn of(ranks: &Ranks, processes: usize) -> Option<Walk> {
        let of_job: Vec<_> =
            (0..processes).filter_map(|number| Some((number, ranks.process(number)?))).collect();
        let numbers: BTreeMap<u32, usize> = of_job.iter().map(|(number, it)| (it.rank, *number)).collect();
        let begin = of_job.iter().map(|(_, it)| it.life.0).min()?;
        let (mut number, last) = *of_job.iter().max_by_key(|(_, it)| (it.life.1, Reverse(it.rank)))?;
        let (mut thread, mut time) = (last.thread, last.life.1);
        let mut walk = Walk { life: (begin, time), times: vec![BTreeMap::new(); processes], changes: 0 };
        let mut since_step = 0;
        while let Some(rank) = ranks.process(number) {
            let mut add = |from: Ns, to: Ns| {
                if from < to {
                    walk.times[number].entry(thread).or_default().push((from, to));
                }
            };
            let next = rank.wait_before(thread, time);
            let Some((wait, other)) = next.and_then(|wait| Some((wait, *numbers.get(&wait.rank)?))) else {
                add(rank.life.0, time);
                break;
            };
            let until = wait.until.min(time);
            since_step = if until < time { 0 } else { since_step + 1 };
            if since_step > numbers.len() {
                // Threads that wait for each other in a circle: no one ended the wait.
                add(wait.begin, time);
                (time, since_step) = (wait.begin, 0);
                continue;
            }
            add(until, time);
            walk.changes += u64::from(other != number);
            (number, thread, time) = (other, wait.of_thread, until);
        }
        walk.times.iter_mut().flat_map(BTreeMap::values_mut).for_each(|times| times.reverse());
        Some(walk)
    }
}
