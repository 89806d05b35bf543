//! What the processor's counters show of constructs in which threads work.

use super::case::{at, finding};
use super::rule_table::{MAX_IPC, MIN_GAIN, MIN_MISSES, MIN_STALLED};
use crate::model::answers::Finding;
use crate::model::place::Place;

/// What threads counted while they worked in a construct at one place, and in no other inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkCounts {
    pub(crate) place: Place,
    /// The time of all threads.
    pub(crate) ns: u64,
    pub(crate) instructions: u64,
    pub(crate) cycles: u64,
    /// `None` where they were not counted, as the next.
    pub(crate) cache_misses: Option<u64>,
    pub(crate) stalled_cycles: Option<u64>,
}

/// The constructs that wait for memory, in a run of `duration` on this number of `threads`.
pub(crate) fn memory_bound(counts: &[WorkCounts], threads: u64, duration: u64) -> Vec<Finding> {
    let finding = |counts: &WorkCounts| of_place(counts, threads.max(1), duration);
    counts.iter().filter_map(finding).collect()
}

fn of_place(counts: &WorkCounts, threads: u64, duration: u64) -> Option<Finding> {
    let WorkCounts { ns, instructions, cycles, cache_misses, stalled_cycles, .. } = *counts;
    let ipc = instructions as f64 / cycles as f64;
    if cycles == 0 || ipc >= MAX_IPC {
        return None;
    }
    // Divisions and long chains of dependences are slow, too. Where it is counted what the processor waits for, that decides.
    let misses = |misses: u64| misses as f64 >= MIN_MISSES * instructions as f64;
    let stalls = |stalled: u64| stalled as f64 >= MIN_STALLED * cycles as f64;
    if cache_misses.map(misses).or(stalled_cycles.map(stalls)) == Some(false) {
        return None;
    }
    let gain_ns = (ns as f64 * (1.0 - ipc / MAX_IPC)) as u64 / threads;
    if (gain_ns as f64) < MIN_GAIN * duration as f64 {
        return None;
    }
    let mut figures =
        vec![("counted_ns", ns), ("instructions", instructions), ("cycles", cycles), ("threads", threads)];
    figures.extend(cache_misses.map(|misses| ("cache_misses", misses)));
    figures.extend(stalled_cycles.map(|stalled| ("stalled_cycles_backend", stalled)));
    let text = format!(
        "threads execute {ipc:.2} instructions per cycle {}, which is typical of code that waits for memory: process data in memory order and in blocks that fit into the caches, and initialize data on the thread that uses it",
        at(&counts.place)
    );
    Some(finding("memory_bound", counts.place.clone(), gain_ns, text, &figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A loop of four threads that took one of the run's two seconds, with this many instructions in 12 billion cycles.
    fn counted(instructions: u64) -> WorkCounts {
        WorkCounts {
            place: Place::at("!$omp for", Some("/src/stream.c"), Some(20), None),
            ns: 4 * SECOND,
            instructions,
            cycles: 12 * SECOND,
            ..WorkCounts::default()
        }
    }

    fn found(counts: &WorkCounts) -> Vec<Finding> {
        memory_bound(std::slice::from_ref(counts), 4, 2 * SECOND)
    }

    #[test]
    fn a_construct_with_few_instructions_per_cycle_is_found() {
        let findings = found(&counted(3 * SECOND));
        assert_eq!(findings[0].id, "memory_bound");
        // A quarter, half of what it should be.
        assert_eq!(findings[0].gain_ns, SECOND / 2);
        assert!(findings[0].text.contains("0.25 instructions per cycle at stream.c:20"));
        assert_eq!(findings[0].evidence["instructions"], 3 * SECOND);
        assert!(!findings[0].evidence.contains_key("cache_misses"));
    }

    #[test]
    fn what_computes_or_takes_next_to_no_time_is_not() {
        assert!(found(&counted(6 * SECOND)).is_empty());
        assert!(found(&counted(12 * SECOND)).is_empty());
        let short = WorkCounts { ns: SECOND / 10, ..counted(3 * SECOND) };
        assert!(found(&short).is_empty());
        let nothing = WorkCounts { cycles: 0, ..counted(0) };
        assert!(found(&nothing).is_empty());
    }

    #[test]
    fn the_cause_decides_where_it_was_counted() {
        let with = |cache_misses, stalled_cycles| {
            let counts = WorkCounts { cache_misses, stalled_cycles, ..counted(3 * SECOND) };
            !found(&counts).is_empty()
        };
        // Divisions: few instructions, and no misses.
        assert!(!with(Some(SECOND / 1000), None));
        assert!(with(Some(SECOND / 10), None));
        assert!(!with(None, Some(SECOND)));
        assert!(with(None, Some(9 * SECOND)));
        assert!(!with(Some(0), Some(9 * SECOND)), "misses are more certain");
    }
}
