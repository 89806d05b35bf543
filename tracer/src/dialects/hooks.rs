//! The modules with hooks of sessions ([`crate::session::hooks`]).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::annotations;
use crate::dialects::old::collector_counts;
use crate::runtime_faults::{lock_after_exit, undeferred_dependences};
use crate::session::hooks::SessionHooks;
use crate::{calls, counters, devices, samples, waits};

/// In calling order.
pub(super) static HOOKS: &[&dyn SessionHooks] = &[
    &lock_after_exit::SESSION_HOOKS,
    &undeferred_dependences::SESSION_HOOKS,
    &samples::SESSION_HOOKS,
    &counters::SESSION_HOOKS,
    &counters::cpu_time::SESSION_HOOKS,
    &devices::SESSION_HOOKS,
    &waits::SESSION_HOOKS,
    &calls::SESSION_HOOKS,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    &annotations::SESSION_HOOKS,
    &collector_counts::SESSION_HOOKS,
];
