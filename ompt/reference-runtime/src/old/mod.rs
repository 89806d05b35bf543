//! Runtimes of the generations before OpenMP 5.0.

pub mod collector;
pub mod tr2;
