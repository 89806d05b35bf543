//! The place where useful time grows most, in words.

use omptrace_analysis::compare::UsefulGrowth;

use super::table::time;

/// The place and its times in words.
pub(crate) fn growth_words(growth: &UsefulGrowth) -> String {
    let place = growth.place.in_words();
    let (before, after) = (time(growth.before_ns), time(growth.after_ns));
    format!("grows most in {place}, from {before} to {after}")
}
