//! What takes part in each session ([`crate::session::part`]).

use crate::dialects::old::collector_counts;
use crate::runtime_faults::{lock_after_exit, undeferred_dependences};
use crate::session::part::Part;
use crate::{annotations, calls, counters, devices, samples, waits};

/// In the order in which they are called.
pub(super) static PARTS: &[&dyn Part] = &[
    &lock_after_exit::PART,
    &undeferred_dependences::PART,
    &samples::PART,
    &counters::PART,
    &counters::cpu_time::PART,
    &devices::PART,
    &waits::PART,
    &calls::PART,
    &annotations::PART,
    &collector_counts::PART,
];
