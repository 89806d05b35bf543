//! Clocks, timers and CPU time.

pub(crate) mod clock;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod timer;
pub(crate) mod usage;
mod vdso;
