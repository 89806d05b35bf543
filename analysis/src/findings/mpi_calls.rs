//! The rules about MPI calls that cost more than they must: small messages, serialised exchanges, waits without overlap, and
//! tests that find nothing.
//!
//! What one rank saves, the job saves only if no other rank is slower. So a saving is that of the rank which waits least, because
//! this rank sets the pace, or at most the time that each rank waits.

use std::collections::BTreeMap;

use omptrace_timeline::{CallSite, RankMessages, Ranks};

use super::rule_table::MIN_GAIN;
use super::{at, finding};
use crate::model::answers::{Answers, Finding};
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::sum::{Sum as _, sum};
use crate::rank_waits::call_waits::{CallWaits, SerialisedWaits};
use crate::rank_waits::traffic::{Sites, place_of};

/// Fewer small messages are not worth a finding.
const MIN_SMALL: u64 = 100;

/// A rank, and what is known about its calls.
#[derive(Clone, Copy, Debug)]
struct Rank<'a> {
    of: &'a RankMessages,
    sites: &'a [Option<Place>],
    /// The time that it waits for other ranks in calls, and by tests.
    waits_ns: u64,
}

/// A job whose ranks are all there.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    ranks: Vec<Rank<'a>>,
    waits: &'a CallWaits,
    duration_ns: u64,
}

impl<'a> Job<'a> {
    /// `None` if there are no ranks. Ranks that wait actively make CPUs busy, so it does not matter whether these were busy: the
    /// rules are about the order of calls.
    pub(crate) fn of(
        ranks: &'a Ranks,
        (sites, waits): (&'a Sites, &'a CallWaits),
        processes: &[ProcessStats],
        answers: &Answers,
    ) -> Option<Job<'a>> {
        let all = sites.iter().zip(processes).enumerate().filter_map(|(number, (sites, process))| {
            let of = ranks.process(number)?;
            let tests = sum(of.tests.iter().map(|tests| tests.waiting_ns));
            let waits_ns = process.accounting[Cause::MpiWait].saturating_add(tests);
            Some(Rank { of, sites, waits_ns })
        });
        let ranks: Vec<Rank<'a>> = all.collect();
        (!ranks.is_empty()).then_some(Job { ranks, waits, duration_ns: answers.duration_ns })
    }

    /// The findings about the calls of all ranks.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let all = [self.small_messages(), self.serialised(), self.no_overlap(), self.unsuccessful_tests()];
        let is_much = |finding: &Finding| finding.gain_ns as f64 >= MIN_GAIN * self.duration_ns as f64;
        all.into_iter().flatten().filter(is_much).collect()
    }

    /// The rank that waits least.
    fn pacemaker(&self) -> Option<&Rank<'a>> {
        self.ranks.iter().min_by_key(|rank| (rank.waits_ns, rank.of.rank))
    }

    /// The shortest time that a rank waits.
    fn least_waits(&self) -> u64 {
        self.pacemaker().map_or(0, |rank| rank.waits_ns)
    }

    /// That messages are small which could be sent together.
    fn small_messages(&self) -> Option<Finding> {
        let rank = self.pacemaker()?;
        let sites = rank.of.sites.iter().zip(rank.sites).filter(|(site, _)| site.combinable > 0);
        let mut costs: BTreeMap<Place, (u64, u64, u64)> = BTreeMap::new();
        for (site, place) in sites {
            let place = place.clone().unwrap_or_else(|| place_of(&[], None, site.function));
            let waits = self.waits.by_call.get(&(rank.of.rank, place.clone())).copied().unwrap_or(0);
            let (messages, bytes, ns) = costs.entry(place).or_default();
            *messages += site.combinable;
            bytes.grow_by(site.combinable_bytes);
            ns.grow_by(avoidable(site, waits));
        }
        let (place, _) = costs.iter().max_by_key(|(_, (.., ns))| *ns)?;
        let messages = sum(costs.values().map(|(messages, ..)| *messages));
        let bytes = sum(costs.values().map(|(_, bytes, _)| *bytes));
        let gain_ns = sum(costs.values().map(|(.., ns)| *ns));
        if messages < MIN_SMALL {
            return None;
        }
        let text = format!(
            "rank {} spends {:.2} s on {messages} messages of {} bytes on average, mostly {}, although several of these messages could be combined: send consecutive messages to the same rank as one message (in an array, or with a datatype)",
            rank.of.rank,
            gain_ns as f64 / 1e9,
            bytes / messages,
            at(place)
        );
        let figures = [
            ("rank", rank.of.rank.into()),
            ("messages", messages),
            ("bytes", bytes),
            ("call_cost_ns", gain_ns / messages),
        ];
        Some(finding("small_messages", place.clone(), gain_ns, text, &figures))
    }

    /// That ranks wait for messages of ranks that wait for messages themselves before they send.
    fn serialised(&self) -> Option<Finding> {
        let rows = &self.waits.serialised;
        let mut by_rank: BTreeMap<u32, u64> = BTreeMap::new();
        for row in rows {
            by_rank.entry(row.rank).or_default().grow_by(row.avoidable_ns);
        }
        let (rank, avoidable_ns) =
            by_rank.into_iter().max_by_key(|(rank, ns)| (*ns, std::cmp::Reverse(*rank)))?;
        let of_rank = || rows.iter().filter(move |row| row.rank == rank);
        let SerialisedWaits { waits_for, place, .. } = of_rank().max_by_key(|row| row.avoidable_ns)?;
        let waits_ns = sum(of_rank().map(|row| row.ns));
        let least_ns = self.least_waits();
        let ranks = self.waits.serialised_ranks;
        let text = format!(
            "{ranks} ranks send their messages one after another, because rank {rank} waits for {:.2} s for rank {waits_for} {}, and rank {waits_for} first waits for another rank: start the sends before the receives (MPI_Isend, MPI_Sendrecv), if the sent data does not depend on the received data",
            waits_ns as f64 / 1e9,
            at(place)
        );
        let figures = [
            ("rank", rank.into()),
            ("waits_for", (*waits_for).into()),
            ("waits_ns", waits_ns),
            ("avoidable_ns", avoidable_ns),
            ("least_waits_of_a_rank_ns", least_ns),
            ("ranks", ranks as u64),
        ];
        Some(finding("serialised_exchange", place.clone(), avoidable_ns.min(least_ns), text, &figures))
    }

    /// That a rank waits right after it has started to send or receive, and works later.
    fn no_overlap(&self) -> Option<Finding> {
        let fillable = |rank: &Rank<'_>| sum(rank.of.idle_waits.iter().map(|waits| waits.fillable_ns));
        let rank = self.ranks.iter().max_by_key(|rank| (fillable(rank), std::cmp::Reverse(rank.of.rank)))?;
        let longest = rank.of.idle_waits.iter().max_by_key(|waits| waits.fillable_ns)?;
        let place = place_of(rank.sites, Some(longest.site), 0);
        let (fillable_ns, least_ns) = (fillable(rank), self.least_waits());
        let waits_ns = sum(rank.of.idle_waits.iter().map(|waits| waits.waits_ns));
        let text = format!(
            "rank {} waits for {:.2} s for other ranks right after it has started to send or receive, mostly {}, and works only afterwards: between the start and the wait, do the work that does not need the received data",
            rank.of.rank,
            waits_ns as f64 / 1e9,
            at(&place)
        );
        let figures = [
            ("rank", rank.of.rank.into()),
            ("waits_ns", waits_ns),
            ("work_after_waits_ns", fillable_ns),
            ("least_waits_of_a_rank_ns", least_ns),
        ];
        Some(finding("no_overlap", place, fillable_ns.min(least_ns), text, &figures))
    }

    /// That tests find nothing: they take time from the work between them, or the rank waits instead of working.
    fn unsuccessful_tests(&self) -> Option<Finding> {
        let between = |rank: &Rank<'_>| sum(rank.of.tests.iter().map(|tests| tests.between_work_ns));
        let fillable = |rank: &Rank<'_>| sum(rank.of.tests.iter().map(|tests| tests.fillable_ns));
        let slowest = self.pacemaker()?;
        let waiting =
            self.ranks.iter().max_by_key(|rank| (fillable(rank), std::cmp::Reverse(rank.of.rank)))?;
        let (between_ns, fillable_ns) = (between(slowest), fillable(waiting).min(self.least_waits()));
        let is_wait = fillable_ns > between_ns;
        let (rank, gain_ns) = if is_wait { (waiting, fillable_ns) } else { (slowest, between_ns) };
        let most = rank.of.tests.iter().max_by_key(|tests| match is_wait {
            true => tests.fillable_ns,
            false => tests.between_work_ns,
        })?;
        let place = place_of(rank.sites, most.site, most.function);
        let count = sum(rank.of.tests.iter().map(|tests| tests.count));
        let waiting_ns = sum(rank.of.tests.iter().map(|tests| tests.waiting_ns));
        let name = place.construct_name();
        let text = match is_wait {
            true => format!(
                "rank {} calls {name} {count} times without success {} and does nothing else for {:.2} s, although it has work to do later: do a part of this work between the calls",
                rank.of.rank,
                at(&place),
                waiting_ns as f64 / 1e9
            ),
            false => format!(
                "rank {} calls {name} {count} times without success {}, which slows down its work by {:.2} s: test less often, or let the MPI library receive messages in the background",
                rank.of.rank,
                at(&place),
                between_ns as f64 / 1e9
            ),
        };
        let figures = [
            ("rank", rank.of.rank.into()),
            ("tests", count),
            ("between_work_ns", between(rank)),
            ("waiting_ns", waiting_ns),
            ("work_after_waits_ns", fillable(rank)),
        ];
        Some(finding("unsuccessful_tests", place, gain_ns, text, &figures))
    }
}

/// The time that the calls of a site take for messages that could be parts of others. `waits_ns`: the calls' waits for other ranks.
fn avoidable(site: &CallSite, waits_ns: u64) -> u64 {
    let ns = u128::from(site.ns.saturating_sub(waits_ns));
    (ns * u128::from(site.combinable) / u128::from(site.calls.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use omptrace_timeline::{IdleWaits, UnsuccessfulTests};

    use super::*;

    const MS: u64 = 1_000_000;

    fn place(name: &str) -> Place {
        Place::at(name, Some("/src/halo.c"), Some(20), None)
    }

    /// Rank 0 is as told, and rank 1 waits for this long. The job takes 2 s.
    fn found(of: RankMessages, waits: &CallWaits, waits_ms: [u64; 2]) -> Vec<(String, u64)> {
        let mut other = RankMessages::default();
        other.rank = 1;
        let sites = [Some(place("MPI_Send"))];
        let ranks = vec![
            Rank { of: &of, sites: &sites, waits_ns: waits_ms[0] * MS },
            Rank { of: &other, sites: &[], waits_ns: waits_ms[1] * MS },
        ];
        let found = Job { ranks, waits, duration_ns: 2000 * MS }.findings().into_iter();
        let found = found.inspect(|it| assert!(it.place.line.is_none_or(|line| line == 20), "{it:?}"));
        found.map(|it| (it.id, it.gain_ns / MS)).collect()
    }

    fn one(id: &str, gain_ms: u64) -> Vec<(String, u64)> {
        vec![(id.to_owned(), gain_ms)]
    }

    #[test]
    fn small_messages_cost_what_their_calls_take_without_waits() {
        let mut of = RankMessages::default();
        of.sites = vec![CallSite { calls: 1000, ns: 1000 * MS, combinable: 900, ..CallSite::default() }];
        let mut waits = CallWaits::default();
        assert_eq!(found(of.clone(), &waits, [0, 0]), one("small_messages", 900));
        waits.by_call.insert((0, place("MPI_Send")), 500 * MS);
        assert_eq!(found(of.clone(), &waits, [500, 600]), one("small_messages", 450));
        // The other rank sets the pace.
        assert_eq!(found(of.clone(), &waits, [500, 400]), []);
        of.sites[0].combinable = 99;
        assert_eq!(found(of, &waits, [500, 600]), []);
    }

    #[test]
    fn waits_without_overlap_save_no_more_than_each_rank_waits() {
        let mut of = RankMessages::default();
        of.idle_waits = vec![IdleWaits { site: 0, count: 3, waits_ns: 700 * MS, fillable_ns: 600 * MS }];
        let waits = CallWaits::default();
        assert_eq!(found(of.clone(), &waits, [700, 900]), one("no_overlap", 600));
        assert_eq!(found(of.clone(), &waits, [700, 200]), one("no_overlap", 200));
        assert_eq!(found(of, &waits, [700, 0]), []);
    }

    #[test]
    fn tests_in_vain_slow_work_down_or_wait() {
        let mut of = RankMessages::default();
        let tests = UnsuccessfulTests { site: Some(0), count: 1000, ..UnsuccessfulTests::default() };
        let waits = CallWaits::default();
        of.tests = vec![UnsuccessfulTests { between_work_ns: 300 * MS, ..tests }];
        assert_eq!(found(of.clone(), &waits, [100, 400]), one("unsuccessful_tests", 300));
        assert_eq!(found(of.clone(), &waits, [400, 100]), []);
        of.tests = vec![UnsuccessfulTests { waiting_ns: 500 * MS, fillable_ns: 400 * MS, ..tests }];
        assert_eq!(found(of.clone(), &waits, [500, 600]), one("unsuccessful_tests", 400));
        assert_eq!(found(of, &waits, [500, 0]), []);
    }

    #[test]
    fn serialised_waits_save_no_more_than_each_rank_waits() {
        let row = |rank, ms| SerialisedWaits {
            rank,
            waits_for: rank - 1,
            place: place("MPI_Recv"),
            count: 1,
            ns: ms * MS,
            avoidable_ns: ms * MS,
        };
        let rows = vec![row(2, 200), row(3, 300)];
        let waits = CallWaits { serialised: rows, serialised_ranks: 4, ..CallWaits::default() };
        assert_eq!(found(RankMessages::default(), &waits, [300, 300]), one("serialised_exchange", 300));
        assert_eq!(found(RankMessages::default(), &waits, [0, 300]), []);
    }
}
