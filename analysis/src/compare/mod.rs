//! Comparison of several runs' answers: two sets of runs ([`Diff`]), or runs of different sizes ([`Scaling`]).
//!
//! ```text
//! Run --> pairs (places that belong together) --> sample (means and their noise) --> Diff, condition
//!    \--> Scaling
//! ```

mod condition;
mod diff;
mod functions;
mod metric;
mod named_place;
mod pairs;
mod run;
mod sample;
mod scaling;
#[cfg(test)]
mod simulated;
mod steps;
mod useful;

pub use condition::{Condition, Conditions, Unmet};
pub use diff::{Diff, Options, Side, UnknownPlace};
pub use functions::FunctionPair;
pub use metric::{Metric, RegionPair, Row, StepNumbers};
pub use run::{FunctionTime, Run};
pub use sample::Summary;
pub use scaling::{Column, Falling, Scaling};
pub use useful::UsefulGrowth;
