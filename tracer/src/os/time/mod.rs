//! Clocks, timers and the use of processor time.

pub(crate) mod clock;
#[cfg(target_arch = "x86_64")]
pub(crate) mod timer;
pub(crate) mod usage;
mod vdso;
