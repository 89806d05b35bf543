//! What the numbers are. Nothing here reads a timeline.
//!
//! ```text
//! answers         where the time went and what could be better, as JSON has it; stats: all other numbers
//! accounting, cause
//!                 time by cause
//! place           where code is, in words; place_id, by_place: places of a process by number, and sums by these
//! rank_waits      waits of MPI ranks for each other, as JSON has them
//! region_names    a timeline's regions; function_number: its functions
//! state_sums      what threads did, in sums of a process
//! worst_instances the instances of a loss that cost most
//! sum, sum_macro  numbers that only grow; structures of sums from rows
//! histogram       how long things took
//! ```

pub(crate) mod accounting;
pub(crate) mod answers;
pub(crate) mod by_place;
pub(crate) mod cause;
pub(crate) mod counts;
pub(crate) mod creation_times;
pub(crate) mod effort;
pub(crate) mod function_number;
pub(crate) mod histogram;
pub(crate) mod mpi;
pub(crate) mod place;
pub(crate) mod place_id;
pub(crate) mod process_stats;
pub(crate) mod rank_waits;
pub(crate) mod region_names;
#[cfg(test)]
pub(crate) mod schema;
pub(crate) mod state_sums;
pub(crate) mod stats;
pub(crate) mod sum;
pub(crate) mod sum_macro;
pub(crate) mod task_levels;
pub(crate) mod within;
pub(crate) mod worst_instances;
