//! Answers from traces, in numbers: statistics of constructs, teams, locks and devices ([`Stats`]), a summary
//! ([`Info`]), whether a trace is sound ([`check()`]).
//!
//! ```text
//! model          what the numbers are: answers, places, causes, sums
//! states         one state per thread, from event to event; its time goes to a cause, and waits are blamed on threads
//! critical_path  the longest chain of work; what_if: when threads would have reached each event after a change
//! scaling        the work of teams, scheduled on other numbers of threads
//! devices        operations of devices, and their overlap
//! constructs     sums per construct, thread, lock, function, counter and phase
//! rank_waits     waits of MPI ranks for each other, and what they are charged to
//! job            critical path of an MPI job, and its replay with changes
//! overview       states, devices and counters over time; comparison of ranks
//! findings       rules that find possible improvements
//! answers        results of all processes together
//! passes         reads a timeline once or twice, in windows and segments, for all of these
//! summary        the results that are stored in a trace; compare: comparison of several runs
//! ```
#![forbid(unsafe_code)]

pub mod answers;
mod check;
pub mod compare;
mod constructs;
mod critical_path;
mod devices;
mod findings;
mod info;
mod job;
mod model;
mod mpi_job;
mod overview;
mod passes;
mod rank_waits;
mod scaling;
mod states;
pub mod summary;
mod talp;
mod what_if;

pub use check::{check, check_job};
pub use constructs::counters::CounterStats;
pub use constructs::flame::{FlameFrame, FlameGraph};
pub use constructs::functions::{FunctionStats, SampledTime};
pub use constructs::phases::RECORDED;
pub use constructs::ranges::RangeStats;
pub use constructs::steps::{Step, StepBin, Steps};
pub use devices::{DeviceUse, PlaceMemory, PlaceTransfers, Site, Transfers};
pub use info::{ClockInfo, DeviceInfo, ENDED, Info, MachineInfo, RuntimeInfo, StreamInfo};
pub use model::job_gains::{JobChange, JobGain, JobGains};
pub use model::job_path::{JobPath, JobPathRow, PathCause, PathRank};
pub use model::mpi::{MPI_NOT_SEEN, calls_hidden_by};
pub use model::numbers::with_commas;
pub use model::process_stats::{ProcessStats, program_of};
pub use model::rank_traffic::{
    CollectiveCalls, MatrixCell, MessageMatrix, PairTraffic, RankTests, RankTraffic,
};
pub use model::rank_waits::{Charge, RankWait, RankWaits, WaitState};
pub use model::stats::{
    Analysed, BasedOn, ConstructStats, DeviceStats, LockStats, LoopStats, NEAR_EVENT_COST, PhaseStats, Stats,
    TeamStats, ThreadStats, Times,
};
pub use model::sum;
pub use mpi_job::MpiJob;
pub use omptrace_symbols::printable::{is_unprintable, printable};
pub use overview::additive::AdditiveEfficiency;
pub use overview::mpi_efficiency::MpiEfficiency;
pub use overview::ranks::{Outlier, Ranks};
pub use passes::{Input, NoAnswer, Options};
