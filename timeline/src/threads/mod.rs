//! Threads: their locations and open regions, and the runtime's helpers.

pub(crate) mod helpers;
pub(crate) mod locations;
pub(crate) mod open_regions;
