//! This machine, and the files of programs and libraries on it. Nothing is run but `probe`.
//!
//! ```text
//! directories              files of directories
//! elf                  what is read of ELF files; symbol_versions: functions that one file calls and another has
//! executable           a program: found as the shell does, what it needs
//! library_search       libraries: found as the dynamic loader does
//! openmp_runtime       what a file says of the OpenMP runtime that it is; installed_runtimes: those that are here
//! python_packages      runtimes and a copy of the UI that an interpreter's packages bring along
//! offloading           devices, and libraries that offload to them
//! probe                the callbacks that a runtime grants: asked in a process of its own
//! CPU            the CPU: names of its directories, and what is not recorded there
//! recording_clock      the clock that events are recorded by, and what an event costs
//! fd_limit, free_space descriptors that may be open, room on a disk
//! ```

pub(crate) mod elf;
pub(crate) mod executable;
pub(crate) mod fd_limit;
pub(crate) mod folders;
pub(crate) mod free_space;
pub(crate) mod installed_runtimes;
#[cfg(test)]
pub(crate) mod io_counts;
pub(crate) mod library_search;
pub(crate) mod mpi_libraries;
pub(crate) mod offloading;
pub(crate) mod openmp_runtime;
pub(crate) mod probe;
pub(crate) mod processor;
pub(crate) mod python_packages;
pub(crate) mod recording_clock;
pub(crate) mod symbol_versions;
