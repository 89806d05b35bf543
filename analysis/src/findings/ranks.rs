//! The rules about ranks of an MPI job that wait for each other, and about threads that do nothing meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_timeline::Ranks;

use super::rule_table::MIN_GAIN;
use super::{at, finding};
use crate::model::answers::{Answers, Finding};
use crate::model::cause::Cause;
use crate::model::process_stats::ProcessStats;
use crate::model::rank_waits::{Charge, RankWait, RankWaits};
use crate::model::sum::{Sum as _, sum};
use crate::overview::mpi_efficiency::outside_ns;

/// A rank: its time outside of MPI, and how long it waited for others.
#[derive(Clone, Copy, Debug)]
struct Rank {
    number: u32,
    outside_ns: u64,
    waits_ns: u64,
}

/// That one rank works longer than the mean, and others wait for it. `None` unless there are traces of all ranks: nobody knows then how
/// long calls wait. Also where the CPUs were busy, since then ranks differ by who got one.
pub(crate) fn rank_imbalance(
    ranks: Option<&Ranks>,
    waits: Option<&RankWaits>,
    processes: &[ProcessStats],
    answers: &Answers,
) -> Option<Finding> {
    if answers.cpu_note.is_some() {
        return None;
    }
    let all = outside_ns(ranks?, processes)?.into_iter().zip(processes).map(|(outside_ns, process)| {
        Some(Rank { number: process.rank?, outside_ns, waits_ns: process.accounting[Cause::MpiWait] })
    });
    let first_causes = waits.map_or(&[][..], |waits| &waits.first_causes);
    of_ranks(&all.collect::<Option<Vec<Rank>>>()?, first_causes, answers)
}

fn of_ranks(ranks: &[Rank], first_causes: &[Charge], answers: &Answers) -> Option<Finding> {
    let count = ranks.len() as u64;
    let longest = ranks.iter().max_by_key(|rank| (rank.outside_ns, Reverse(rank.number)))?;
    let mean_ns = sum(ranks.iter().map(|rank| rank.outside_ns)) / count;
    let waits_ns = sum(ranks.iter().map(|rank| rank.waits_ns));
    // With equal work, nobody waits longer than the mean rank does for the longest.
    let gain_ns = (longest.outside_ns - mean_ns).min(waits_ns / count);
    if (gain_ns as f64) < MIN_GAIN * answers.duration_ns as f64 {
        return None;
    }
    // Where the others wait for this rank, and what it does meanwhile.
    let mut of_rank = first_causes.iter().filter(|charge| charge.rank == longest.number && is_work(charge));
    let why = of_rank.next();
    let place = match why {
        Some(charge) => &charge.waits_at,
        None => &answers.blame.iter().find(|row| row.cause == Cause::MpiWait)?.place,
    };
    let why = why.and_then(Charge::what).map_or(String::new(), |what| format!(", mostly for its {what}"));
    let seconds = |ns: u64| ns as f64 / 1e9;
    let figures = [
        ("rank", longest.number.into()),
        ("outside_mpi_ns", longest.outside_ns),
        ("mean_outside_mpi_ns", mean_ns),
        ("waits_ns", waits_ns),
    ];
    let text = format!(
        "rank {} works for {:.2} s outside MPI, but the ranks work for only {:.2} s on average, so other ranks wait {}{why}: divide the work more evenly among the ranks",
        longest.number,
        seconds(longest.outside_ns),
        seconds(mean_ns),
        at(place)
    );
    Some(finding("rank_imbalance", place.clone(), gain_ns, text, &figures))
}

/// That a rank waits for messages that another one sends late. Sending earlier saves at most the waits during which the
/// sender worked: a sender in an MPI call waits for other ranks itself. It also saves at most the shortest time that any
/// rank waits, because a rank that never waits would not finish sooner.
pub(crate) fn late_sender(
    waits: Option<&RankWaits>,
    processes: &[ProcessStats],
    answers: &Answers,
) -> Option<Finding> {
    let waits = waits.filter(|_| answers.cpu_note.is_none())?;
    let least_ns = processes.iter().map(|process| process.accounting[Cause::MpiWait]).min()?;
    let is_of_message = |row: &&RankWait| matches!(row.state, "late_sender" | "wrong_order" | "completion");
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in waits.waits.iter().filter(is_of_message) {
        pairs.entry((row.rank, row.waits_for)).or_default().grow_by(row.ns);
    }
    let (pair, waits_ns) = pairs.into_iter().max_by_key(|(pair, ns)| (*ns, Reverse(*pair)))?;
    let (rank, sender) = pair;
    let is_of_pair = |row: &&RankWait| (row.rank, row.waits_for) == pair;
    let rows: Vec<&RankWait> = waits.waits.iter().filter(is_of_message).filter(is_of_pair).collect();
    let during_work_ns = sum(rows.iter().map(|row| during_work(row, &waits.charged)));
    let gain_ns = during_work_ns.min(least_ns);
    if (gain_ns as f64) < MIN_GAIN * answers.duration_ns as f64 {
        return None;
    }
    let longest = rows.iter().max_by_key(|row| during_work(row, &waits.charged))?;
    let why = charges_of(longest, &waits.charged).find(|charge| is_work(charge)).and_then(Charge::what);
    let why = why.map_or(String::new(), |what| format!(", mostly during rank {sender}'s {what}"));
    let advice = match longest.state {
        "wrong_order" => {
            "receive the messages in the order in which they are sent, or in the order in which they arrive (MPI_Waitany)"
        }
        _ => {
            "send the messages as soon as their data is available, or let the receiver do other work before it waits"
        }
    };
    let text = format!(
        "rank {rank} waits for {:.2} s for messages of rank {sender} {}{why}: {advice}",
        waits_ns as f64 / 1e9,
        at(&longest.place)
    );
    let figures = [
        ("rank", rank.into()),
        ("sender", sender.into()),
        ("waits_ns", waits_ns),
        ("during_work_ns", during_work_ns),
        ("least_waits_of_a_rank_ns", least_ns),
    ];
    Some(finding("late_sender", longest.place.clone(), gain_ns, text, &figures))
}

/// What the awaited rank did during these waits, and during those of other ranks in the same call.
fn charges_of<'a>(wait: &RankWait, charged: &'a [Charge]) -> impl Iterator<Item = &'a Charge> {
    charged.iter().filter(|charge| {
        (charge.rank, charge.state) == (wait.waits_for, wait.state) && charge.waits_at == wait.place
    })
}

/// Whether the awaited rank was not in an MPI call.
fn is_work(charge: &Charge) -> bool {
    charge.cause.is_some_and(|cause| !cause.is_mpi_call())
}

/// The part of a wait during which the awaited rank was not in an MPI call.
fn during_work(wait: &RankWait, charged: &[Charge]) -> u64 {
    let all = sum(charges_of(wait, charged).map(|charge| charge.ns));
    let work = sum(charges_of(wait, charged).filter(|charge| is_work(charge)).map(|charge| charge.ns));
    (u128::from(wait.ns) * u128::from(work) / u128::from(all.max(1))) as u64
}

/// That threads have nothing to do while one is in MPI calls, which the work of parallel regions could fill.
pub(crate) fn idle_during_mpi(answers: &Answers) -> Option<Finding> {
    let threads = u64::from(answers.threads.max(1));
    // No thread can work while MPI is initialised or finalised.
    let is_at_edge = |name: &str| name.starts_with("MPI_Init") || name.starts_with("MPI_Finalize");
    let rows = answers.blame.iter().filter(|row| row.cause == Cause::IdleInMpi);
    let rows = rows.filter(|row| !is_at_edge(&row.place.construct));
    let longest = rows.clone().max_by_key(|row| row.ns)?;
    let idle_ns = sum(rows.map(|row| row.ns));
    let work_ns = sum(answers.regions.iter().map(|region| region.accounting[Cause::Useful]));
    // What some threads do in this time, all of them need not do later.
    let gain_ns = idle_ns.min(work_ns) / threads;
    if (gain_ns as f64) < MIN_GAIN * answers.duration_ns as f64 || answers.cpu_note.is_some() {
        return None;
    }
    let text = format!(
        "threads have nothing to do for {:.2} s while other threads are in MPI calls, mostly {}: communicate on one thread of a parallel region (in a masked region or a task). The other threads can meanwhile do work that does not need the received data",
        idle_ns as f64 / 1e9,
        at(&longest.place)
    );
    let figures = [("idle_ns", idle_ns), ("work_in_regions_ns", work_ns)];
    Some(finding("idle_during_mpi", longest.place.clone(), gain_ns, text, &figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::{Blame, RegionAnswer};
    use crate::model::place::Place;

    const MS: u64 = 1_000_000;

    fn found(outside: &[u64], waits: &[u64]) -> Option<(u64, String)> {
        let ranks = outside.iter().zip(waits).enumerate().map(|(number, (outside, waits))| Rank {
            number: number as u32,
            outside_ns: outside * MS,
            waits_ns: waits * MS,
        });
        let blame = Blame {
            cause: Cause::MpiWait,
            place: Place::new("MPI_Allreduce"),
            ns: MS,
            functions: Vec::new(),
            no_sample_ns: None,
        };
        let answers = Answers { duration_ns: 2000 * MS, blame: vec![blame], ..Answers::default() };
        let finding = of_ranks(&ranks.collect::<Vec<_>>(), &[], &answers)?;
        Some((finding.gain_ns / MS, finding.text))
    }

    #[test]
    fn the_longest_rank_is_compared_with_the_mean() {
        let (gain, text) = found(&[600, 1800], &[1200, 0]).expect("a finding");
        assert_eq!(gain, 600);
        assert!(
            text.starts_with(
                "rank 1 works for 1.80 s outside MPI, but the ranks work for only 1.20 s on average"
            ),
            "{text}"
        );
    }

    #[test]
    fn it_saves_no_more_than_the_waits() {
        assert_eq!(found(&[600, 1800], &[200, 0]).map(|(gain, _)| gain), Some(100));
        assert_eq!(found(&[600, 1800], &[100, 0]), None);
        assert_eq!(found(&[1000, 1000], &[900, 900]), None);
        assert_eq!(found(&[], &[]), None);
    }

    /// Rank 0 waits for rank 1, which waits as well, for this long.
    fn late(waits_ms: u64, sender_waits_ms: u64) -> Option<Finding> {
        late_during(Cause::Useful, waits_ms, sender_waits_ms)
    }

    fn late_during(cause: Cause, waits_ms: u64, sender_waits_ms: u64) -> Option<Finding> {
        let place = Place::at("MPI_Recv", Some("/src/halo.c"), Some(20), None);
        let work = Place::at("!$omp parallel", Some("/src/solve.c"), Some(41), None);
        let row = |state, ns| RankWait { rank: 0, state, place: place.clone(), waits_for: 1, ns, count: 1 };
        let waits = RankWaits {
            waits: vec![row("late_sender", waits_ms * MS), row("wait_at_barrier", 9000 * MS)],
            charged: vec![Charge {
                rank: 1,
                cause: Some(cause),
                place: Some(work),
                state: "late_sender",
                waits_at: place.clone(),
                ns: waits_ms * MS,
                ranks: 1,
            }],
            ..RankWaits::default()
        };
        let processes = [9000 + waits_ms, sender_waits_ms].map(|ms| {
            let mut process = ProcessStats::default();
            process.accounting.add(Cause::MpiWait, ms * MS);
            process
        });
        let answers = Answers { duration_ns: 2000 * MS, ..Answers::default() };
        late_sender(Some(&waits), &processes, &answers)
    }

    #[test]
    fn a_late_sender_that_waits_itself_could_send_before() {
        let finding = late(700, 300).expect("a finding");
        assert_eq!((finding.gain_ns, finding.place.line), (300 * MS, Some(20)));
        let words = "rank 0 waits for 0.70 s for messages of rank 1 at halo.c:20, mostly during rank 1's work at solve.c:41: send";
        assert!(finding.text.starts_with(words), "{}", finding.text);
        assert_eq!(late(200, 300).map(|finding| finding.gain_ns), Some(200 * MS));
    }

    /// The sender's next message depends on the result of the call that it is in.
    #[test]
    fn a_sender_in_an_mpi_call_cannot_send_before() {
        assert_eq!(late_during(Cause::MpiTransfer, 700, 300), None);
        assert_eq!(late_during(Cause::MpiWait, 700, 300), None);
        assert!(late_during(Cause::Imbalance, 700, 300).is_some());
    }

    #[test]
    fn a_sender_that_never_waits_has_no_time_to_send_before() {
        assert_eq!(late(700, 0), None);
    }

    fn idle(idle_ms: u64, work_ms: u64) -> Option<u64> {
        let mut answers = Answers { threads: 4, duration_ns: 1000 * MS, ..Answers::default() };
        for (call, ns) in [("MPI_Recv", idle_ms * MS), ("MPI_Init_thread", 500 * MS)] {
            answers.accounting.add(Cause::IdleInMpi, ns);
            let (place, no_sample_ns) = (Place::new(call), None);
            answers.blame.push(Blame {
                cause: Cause::IdleInMpi,
                place,
                ns,
                functions: Vec::new(),
                no_sample_ns,
            });
        }
        let mut region = RegionAnswer::default();
        region.accounting.add(Cause::Useful, work_ms * MS);
        answers.regions.push(region);
        idle_during_mpi(&answers).map(|finding| finding.gain_ns / MS)
    }

    #[test]
    fn idle_threads_can_do_no_more_than_the_work_of_regions() {
        assert_eq!(idle(1200, 3000), Some(300));
        assert_eq!(idle(1200, 400), Some(100));
        assert_eq!(idle(1200, 0), None);
        assert_eq!(idle(100, 3000), None);
    }
}
