//! End-to-end tests, programs

pub mod env;
pub mod generator;
pub mod otf2;
pub mod trace;
pub mod tracy;
pub mod viewers;
pub mod windows;
