//! End-to-end tests, programs

pub mod env;
pub mod generator;
pub mod mpi;
pub mod mpi_generator;
pub mod mpi_player;
pub mod otf2;
mod random;
pub mod sanitized;
pub mod trace;
pub mod tracy;
pub mod viewers;
pub mod windows;
