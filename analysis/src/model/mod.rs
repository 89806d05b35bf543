//! The results as data. Nothing in this module reads a timeline.
//!
//! ```text
//! answers         where the time went and what could be improved, as in JSON; stats: all other numbers
//! accounting, cause
//!                 time by cause
//! place           source locations with names; place_id, by_place: numbers of a process's places, and sums by these
//! rank_waits      waits of MPI ranks for each other; job_path, job_gains: critical path and gains of an MPI job, as in JSON
//! rank_traffic    messages and collective operations of MPI ranks, as in JSON
//! region_names    a timeline's regions; function_number: its functions
//! state_sums      sums of a process over thread states
//! upcoming        facts that are reported before the event that they are about
//! worst_instances the instances with the largest losses
//! sum, sum_macro  saturating sums; structures of sums, declared row by row
//! histogram       distribution of durations
//! intervals       sets of times, as lists of intervals
//! numbers         numbers in texts
//! ```

pub(crate) mod accounting;
pub(crate) mod answers;
pub(crate) mod by_place;
pub(crate) mod cause;
pub(crate) mod counts;
pub(crate) mod creation_times;
#[cfg(test)]
pub(crate) mod documented_fields;
pub(crate) mod effort;
pub(crate) mod function_number;
pub(crate) mod histogram;
pub(crate) mod intervals;
pub(crate) mod job_gains;
pub(crate) mod job_path;
pub(crate) mod mpi;
pub(crate) mod numbers;
pub(crate) mod place;
pub(crate) mod place_id;
pub(crate) mod process_stats;
pub(crate) mod rank_traffic;
pub(crate) mod rank_waits;
pub(crate) mod region_table;
pub(crate) mod state_sums;
pub(crate) mod stats;
pub mod sum;
pub(crate) mod sum_macro;
pub(crate) mod task_levels;
pub(crate) mod upcoming;
pub(crate) mod within;
pub(crate) mod worst_instances;
