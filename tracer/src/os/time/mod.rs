//! Clocks, timers and the use of processor time.

pub(crate) mod clock;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod timer;
pub(crate) mod usage;
mod vdso;
