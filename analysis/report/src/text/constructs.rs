//! Rows about constructs, regions, locks and phases.

use omptrace_timeline::model::short_name;

use super::cells::{cells, lost};
use super::table::{
    Column, Empty, Table, UNKNOWN, column, counted, known, known_time, percent, time, with_commas,
};
use omptrace_analysis::RangeStats;
use omptrace_analysis::answers::RegionAnswer;
use omptrace_analysis::{ConstructStats, LockStats, NEAR_EVENT_COST, PhaseStats};

/// Durations of fewer than this percentage are not shown.
const MIN_LENGTHS: f64 = 0.5;

/// Minimum number of tasks or chunks for which a distribution is shown.
const MIN_COUNT: u64 = 100;

pub(crate) const CONSTRUCT: [Column; 9] = [
    column("count", 0),
    column("total", 1),
    column("self", 0),
    column("mean", 2),
    column("self mean", 4),
    column("min", 5),
    column("max", 3),
    column("waiting %", 0),
    column("imbalance %", 0).if_empty(Empty::IfThereIsRoom),
];

pub(crate) fn construct_row(table: &mut Table, stats: &ConstructStats) {
    let [total, mean, min, max] = cells(&stats.times);
    let has_duration = stats.times.max_ns > 0;
    let own = |ns: Option<u64>| known_time(ns.filter(|_| has_duration));
    let times = &stats.times;
    let waiting = stats.wait_share().filter(|_| has_duration);
    let imbalance = stats.team.map(|team| percent(team.imbalance()));
    let cells = [
        known((!times.is_of_parts).then_some(times.count)),
        total,
        own(Some(stats.self_ns)),
        mean,
        own(stats.self_mean_ns),
        min,
        max,
        waiting.map_or_else(|| UNKNOWN.to_owned(), percent),
        imbalance.unwrap_or_default(),
    ];
    let mut name = short_name(&stats.name).to_owned();
    if stats.is_near_event_cost {
        name += &format!(" {NEAR_EVENT_COST}");
    }
    table.row_above(name, cells, loop_words(stats).or_else(|| length_words(&stats.lengths)));
}

/// The distribution of durations by powers of two, in words.
pub(crate) fn length_words(lengths: &[u64]) -> Option<String> {
    let all = lengths.iter().sum::<u64>();
    if all < MIN_COUNT {
        return None;
    }
    let shares = lengths.iter().enumerate().filter_map(|(power, count)| {
        let share = *count as f64 * 100.0 / all as f64;
        let least = time(1_u64.checked_shl(power as u32)?);
        (share >= MIN_LENGTHS).then(|| format!("{least} {share:.0} %"))
    });
    let shares: Vec<String> = shares.collect();
    (!shares.is_empty()).then(|| format!("lengths from {}", shares.join(", ")))
}

/// How the chunks of a loop were distributed, in words.
pub(crate) fn loop_words(stats: &ConstructStats) -> Option<String> {
    let schedule = stats.schedule.as_deref();
    let schedule = schedule.map(|schedule| format!("schedule {schedule}"));
    let chunks = stats.of_loop.map(|of_loop| {
        let each = of_loop.iterations_per_chunk;
        let each = if each.fract() == 0.0 {
            counted(each as u64, "iteration")
        } else {
            format!("{each:.1} iterations")
        };
        format!("{} of {each}, {} each", counted(of_loop.chunks, "chunk"), time(of_loop.chunk_mean_ns))
    });
    match (schedule, chunks) {
        (Some(schedule), Some(chunks)) => Some(format!("{schedule}, {chunks}")),
        (one, other) => one.or(other),
    }
}

pub(crate) const REGION: [Column; 7] = [
    column("visits", 1),
    column("time", 0),
    column("efficiency %", 0),
    column("load balance %", 3),
    column("lost", 0),
    column("most of it", 1),
    column("share %", 2),
];

pub(crate) fn region_row(table: &mut Table, region: &RegionAnswer) {
    let known = |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), percent);
    let [lost, greatest, share] = lost(&region.accounting);
    let cells = [
        with_commas(region.visits),
        time(region.duration_ns),
        known(region.efficiency.parallel),
        known(region.efficiency.load_balance),
        lost,
        greatest,
        share,
    ];
    table.row(region.place.long(), cells);
}

pub(crate) const PHASE: [Column; 8] = [
    column("count", 1),
    column("time", 0),
    column("threads", 2),
    column("efficiency %", 0),
    column("load balance %", 3),
    column("lost", 0),
    column("most of it", 1),
    column("share %", 2),
];

pub(crate) fn phase_row(table: &mut Table, phase: &PhaseStats) {
    let known = |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), percent);
    let [lost, greatest, share] = lost(&phase.accounting);
    let cells = [
        with_commas(phase.count),
        time(phase.duration_ns),
        phase.threads.to_string(),
        known(phase.efficiency.parallel),
        known(phase.efficiency.load_balance),
        lost,
        greatest,
        share,
    ];
    table.row(phase.name.clone(), cells);
}

pub(crate) const RANGE: [Column; 8] = [
    column("count", 0),
    column("total", 0),
    column("self", 1),
    column("mean", 1),
    column("deviation", 2),
    column("efficiency %", 0),
    column("lost", 0),
    column("most of it", 1),
];

/// The row of a range, indented by its depth. `analysed`: the losses of all ranges with its name.
pub(crate) fn range_row(table: &mut Table, range: &RangeStats, analysed: Option<&PhaseStats>) {
    let known = |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), percent);
    let [efficiency, lost, most] = match analysed {
        Some(phase) => {
            let [lost, most, _] = lost(&phase.accounting);
            [known(phase.efficiency.parallel), lost, most]
        }
        None => [(); 3].map(|()| UNKNOWN.to_owned()),
    };
    let cells = [
        with_commas(range.count),
        time(range.total_ns),
        time(range.self_ns),
        time(range.mean_ns),
        time(range.deviation_ns),
        efficiency,
        lost,
        most,
    ];
    table.row(format!("{}{}", "  ".repeat(range.path.len()), range.name), cells);
}

pub(crate) const LOCK: [Column; 8] = [
    column("got", 0),
    column("waits", 0),
    column("waited", 0),
    column("not got", 0).if_empty(Empty::Never),
    column("held", 0),
    column("mean", 1),
    column("min", 3),
    column("max", 2),
];

pub(crate) fn lock_row(table: &mut Table, stats: &LockStats) {
    let unknown = || [(); 4].map(|()| UNKNOWN.to_owned());
    let [held, mean, min, max] = stats.times.as_ref().map_or_else(unknown, cells);
    let cells = [
        stats.acquisitions.to_string(),
        known(stats.waits),
        known_time(stats.waiting_ns),
        stats.failures.to_string(),
        held,
        mean,
        min,
        max,
    ];
    let address = stats.name.strip_prefix("lock ").unwrap_or(&stats.name);
    let name = format!("L{} {address}", stats.number);
    table.row_above(name, cells, stats.place_name.clone());
}
