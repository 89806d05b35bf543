//! The interfaces before OpenMP 5.0.

pub mod collector;
pub mod tr2;
pub mod tr4;
pub mod tr6;
pub mod tr7;
