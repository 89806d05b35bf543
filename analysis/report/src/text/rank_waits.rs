//! Waits of ranks for each other, in words.

use super::table::{counted, time};
use omptrace_analysis::{Charge, RankWaits, WaitState};

/// Rows that are shown have this share of all waits, at least: one in so many.
const MIN_SHARE: u64 = 100;

/// The name of a wait state for people.
pub fn wait_state_words(state: &str) -> String {
    state.replace("nxn", "N x N").replace('_', " ")
}

/// What a rank does: `rank 3's work at solve.c:41`.
pub(super) fn activity_words(rank: u32, what: Option<String>) -> String {
    match what {
        Some(what) => format!("rank {rank}'s {what}"),
        None => format!("rank {rank}, whose activity was not recorded"),
    }
}

/// `rank 3's work at solve.c:41 kept 5 ranks waiting 12.0 s in MPI_Allreduce at main.c:88`.
fn charge_words(charge: &Charge) -> String {
    let comma = if charge.cause.is_none() { "," } else { "" };
    format!(
        "{}{comma} kept {} waiting {} in {}",
        activity_words(charge.rank, charge.what()),
        counted(charge.ranks, "rank"),
        time(charge.ns),
        charge.waits_at.with_line()
    )
}

/// How long ranks waited, and why: a sentence, and one for each of the `top` first causes.
pub fn rank_wait_lines(waits: &RankWaits, top: usize) -> Vec<String> {
    if waits.total_ns == 0 {
        return Vec::new();
    }
    let mut states: Vec<&WaitState> = waits.states.iter().filter(|state| state.ns > 0).collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.ns));
    let states: Vec<String> = states
        .into_iter()
        .map(|state| format!("{} {}", wait_state_words(state.state), time(state.ns)))
        .collect();
    let all = format!("ranks waited for each other for {}: {}", time(waits.total_ns), states.join(", "));
    let rows = waits.first_causes.iter().take(top);
    let rows = rows.filter(|row| row.ns.saturating_mul(MIN_SHARE) >= waits.total_ns);
    std::iter::once(all).chain(rows.map(charge_words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use omptrace_analysis::answers::{Cause, Place};

    fn charge(cause: Option<Cause>, place: Option<Place>) -> Charge {
        let waits_at = Place::at("MPI_Allreduce", Some("/src/main.c"), Some(88), None);
        Charge { rank: 3, cause, place, state: "wait_at_nxn", waits_at, ns: 12_000_000_000, ranks: 5 }
    }

    #[test]
    fn who_kept_others_waiting_is_a_sentence() {
        let at = |name: &str| Some(Place::at(name, Some("/src/solve.c"), Some(41), None));
        let before = at("!$omp parallel").map(|place| Place::serial(None, Some(&place)));
        for (cause, place, words) in [
            (Some(Cause::Useful), at("!$omp for"), "rank 3's work at solve.c:41"),
            (Some(Cause::Useful), before, "rank 3's serial code before solve.c:41"),
            (Some(Cause::Useful), None, "rank 3's serial code"),
            (Some(Cause::Imbalance), at("!$omp for"), "rank 3's load imbalance at solve.c:41"),
            (Some(Cause::MpiWait), at("MPI_Recv"), "rank 3's wait in MPI_Recv at solve.c:41"),
            (Some(Cause::MpiTransfer), at("MPI_Send"), "rank 3's MPI_Send at solve.c:41"),
            (None, None, "rank 3, whose activity was not recorded,"),
        ] {
            let expected = format!("{words} kept 5 ranks waiting 12.0 s in MPI_Allreduce at main.c:88");
            assert_eq!(charge_words(&charge(cause, place)), expected);
        }
    }

    #[test]
    fn short_waits_are_not_shown() {
        let mut waits = RankWaits { total_ns: 12_000_000_000, ..RankWaits::default() };
        waits.states.push(WaitState { state: "wait_at_nxn", ns: waits.total_ns, count: 7 });
        waits.first_causes.push(charge(None, None));
        waits.first_causes.push(Charge { ns: 1, ..charge(None, None) });
        let lines = rank_wait_lines(&waits, 9);
        assert_eq!(lines[0], "ranks waited for each other for 12.0 s: wait at N x N 12.0 s");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(rank_wait_lines(&RankWaits::default(), 9).is_empty());
    }
}
