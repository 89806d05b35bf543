//! End-to-end tests, the reference runtime, programs

pub mod env;
pub mod generator;
pub mod otf2;
pub mod reference;
pub mod trace;
pub mod tracy;
pub mod viewers;
