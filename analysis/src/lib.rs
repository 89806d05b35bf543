//! Answers from traces, in numbers and words: statistics of constructs, teams, locks and devices ([`Stats`]), a summary
//! ([`Info`]), whether a trace is sound ([`check()`]).
#![forbid(unsafe_code)]

mod check;
mod info;
mod stats;

pub use check::check;
pub use info::Info;
pub use stats::{
    ConstructStats, DeviceStats, Layout, LockStats, LoopStats, ProcessStats, Stats, TeamStats,
    ThreadStats, Times,
};
