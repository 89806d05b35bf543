//! The generations before OpenMP 5.0: TR2 and the Collector API.

pub(crate) mod collector;
pub(crate) mod tr2;
