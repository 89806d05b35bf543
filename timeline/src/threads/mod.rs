//! Threads: where they are shown, their open regions, and helpers of the runtime.

pub(crate) mod helpers;
pub(crate) mod locations;
pub(crate) mod open_regions;
