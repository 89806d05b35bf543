//! This machine, and the files of programs and libraries on it. Only `probe` runs anything.
//!
//! ```text
//! folders              files in directories
//! elf                  data from ELF files; symbol_versions: functions that one file calls and another defines
//! executable           programs: found as the shell does, and what they need
//! library_search       libraries: found as the dynamic loader does
//! openmp_runtime       OpenMP runtimes, by their files; installed_runtimes: those on this machine
//! python_packages      runtimes and a copy of the UI in an interpreter's packages
//! offloading           devices, and libraries for offloading
//! probe                the callbacks that a runtime grants, found by running it in a separate process
//! processor            the CPU: names of its directories, and what cannot be recorded on it
//! recording_clock      the clock of recorded events, and the cost of an event
//! fd_limit, free_space the limit of open files, the free space on a disk
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
