//! The list of the parts of each session ([`crate::session::part`]).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::annotations;
use crate::dialects::old::collector_counts;
use crate::runtime_faults::{lock_after_exit, undeferred_dependences};
use crate::session::part::Part;
use crate::{calls, counters, devices, samples, waits};

/// In calling order.
pub(super) static PARTS: &[&dyn Part] = &[
    &lock_after_exit::PART,
    &undeferred_dependences::PART,
    &samples::PART,
    &counters::PART,
    &counters::cpu_time::PART,
    &devices::PART,
    &waits::PART,
    &calls::PART,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    &annotations::PART,
    &collector_counts::PART,
];
