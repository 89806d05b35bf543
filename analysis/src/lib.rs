//! Answers from traces, in numbers and words: statistics of constructs, teams, locks and devices ([`Stats`]), a summary
//! ([`Info`]), whether a trace is sound ([`check()`]).
#![forbid(unsafe_code)]

pub mod answers;
mod check;
pub mod compare;
mod gaps;
mod info;
mod mpi;
mod segments;
mod selection;
mod stats;
mod sum;
pub mod summary;
mod table;
mod talp;
mod window;

pub use check::check;
pub use info::Info;
pub use mpi::MPI_NOT_SEEN;
pub use omptrace_symbols::printable::{is_unprintable, printable};
pub use stats::{
    Analysed, By, ConstructStats, CounterStats, DeviceStats, DeviceUse, FlameFrame, FlameGraph,
    FunctionStats, Input, LockStats, LoopStats, NoAnswer, Options, Outlier, PhaseStats, PlaceMemory,
    PlaceTransfers, ProcessStats, RECORDED, Ranks, SampledTime, Site, Stats, TeamStats, ThreadStats, Times,
    Transfers,
};
pub use table::{Layout, Style, bytes, counted, markdown, percent, time, with_commas};
