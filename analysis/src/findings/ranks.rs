//! The rule about ranks of an MPI job that work longer than others.

use omptrace_timeline::Ranks;

use super::rules::MIN_GAIN;
use super::{at, finding};
use crate::model::answers::{Answers, Finding};
use crate::model::cause::Cause;
use crate::model::process_stats::ProcessStats;
use crate::model::sum::sum;
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
    processes: &[ProcessStats],
    answers: &Answers,
) -> Option<Finding> {
    if answers.cpu_note.is_some() {
        return None;
    }
    let all = outside_ns(ranks?, processes)?.into_iter().zip(processes).map(|(outside_ns, process)| {
        Some(Rank { number: process.rank?, outside_ns, waits_ns: process.accounting[Cause::MpiWait] })
    });
    of_ranks(&all.collect::<Option<Vec<Rank>>>()?, answers)
}

fn of_ranks(ranks: &[Rank], answers: &Answers) -> Option<Finding> {
    let count = ranks.len() as u64;
    let longest = ranks.iter().max_by_key(|rank| (rank.outside_ns, std::cmp::Reverse(rank.number)))?;
    let mean_ns = sum(ranks.iter().map(|rank| rank.outside_ns)) / count;
    let waits_ns = sum(ranks.iter().map(|rank| rank.waits_ns));
    // With equal work, nobody waits longer than the mean rank does for the longest.
    let gain_ns = (longest.outside_ns - mean_ns).min(waits_ns / count);
    if (gain_ns as f64) < MIN_GAIN * answers.duration_ns as f64 {
        return None;
    }
    let waits = answers.blame.iter().find(|row| row.cause == Cause::MpiWait)?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let figures = [
        ("rank", longest.number.into()),
        ("outside_mpi_ns", longest.outside_ns),
        ("mean_outside_mpi_ns", mean_ns),
        ("waits_ns", waits_ns),
    ];
    let text = format!(
        "rank {} works for {:.2} s outside MPI, and the mean rank for {:.2} s, so other ranks wait {}: divide the work more evenly among the ranks",
        longest.number,
        seconds(longest.outside_ns),
        seconds(mean_ns),
        at(&waits.place)
    );
    Some(finding("rank_imbalance", waits.place.clone(), gain_ns, text, &figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::answers::Blame;
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
        let finding = of_ranks(&ranks.collect::<Vec<_>>(), &answers)?;
        Some((finding.gain_ns / MS, finding.text))
    }

    #[test]
    fn the_longest_rank_is_compared_with_the_mean() {
        let (gain, text) = found(&[600, 1800], &[1200, 0]).expect("a finding");
        assert_eq!(gain, 600);
        assert!(
            text.starts_with("rank 1 works for 1.80 s outside MPI, and the mean rank for 1.20 s"),
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
}
