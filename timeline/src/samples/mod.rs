//! Measurements other than events: samples of functions, hardware counters, energy.

pub(crate) mod availability;
pub(crate) mod energy;
pub(crate) mod functions;
