//! Table cells that several tables use.

use super::table::{UNKNOWN, percent, time};
use omptrace_analysis::Times;
use omptrace_analysis::answers::Accounting;
use omptrace_analysis::answers::Cause;

/// Total, mean, min, max.
pub(crate) fn cells(times: &Times) -> [String; 4] {
    let has_duration = times.max_ns > 0;
    let cell = |ns, is_known| match is_known {
        true => time(ns),
        false => UNKNOWN.to_owned(),
    };
    let has_whole = has_duration && !times.is_of_parts;
    [
        cell(times.total_ns, has_duration),
        cell(times.mean_ns, has_whole),
        cell(times.min_ns, has_whole),
        cell(times.max_ns, has_whole),
    ]
}

/// The lost time, its largest cause, and that cause's share of all time.
pub(crate) fn lost(accounting: &Accounting) -> [String; 3] {
    let losses = accounting.iter();
    let losses = losses.filter(|(cause, ns)| cause.is_loss() && *ns > 0);
    let greatest = losses.max_by_key(|(cause, ns)| (*ns, std::cmp::Reverse(*cause)));
    let words = |(cause, _): (Cause, u64)| cause.title().to_owned();
    let share = |(cause, _): (Cause, u64)| accounting.share(cause).map(percent);
    [
        time(accounting.lost()),
        greatest.map_or_else(String::new, words),
        greatest.and_then(share).unwrap_or_default(),
    ]
}
