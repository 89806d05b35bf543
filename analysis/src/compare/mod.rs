//! Answers of several runs, compared: two sets of runs ([`Diff`]), or runs of different sizes ([`Scaling`]).
//!
//! ```text
//! Run --> pairs (places that belong together) --> sample (means and their noise) --> Diff, condition
//!    \--> Scaling
//! ```

mod condition;
mod diff;
mod diff_text;
mod functions;
mod pairs;
mod sample;
mod scaling;
#[cfg(test)]
mod simulated;

pub use condition::{Condition, Unmet};
pub use diff::{Diff, Metric, Options, RegionPair, Row, Side};
pub use diff_text::Shown;
pub use functions::{FunctionPair, FunctionTime};
pub use sample::Summary;
pub use scaling::{Column, Scaling};

use crate::Stats;
use crate::answers::Answers;

/// A run of a program: the answers of all of its processes.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The user's name for it: the trace, or the folder.
    pub name: String,
    /// Its answers.
    pub answers: Answers,
    /// How many processes it had.
    pub processes: usize,
    /// The functions' own times, by samples; `None` where there are no samples.
    pub functions: Option<Vec<FunctionTime>>,
}

impl Run {
    /// The run of these numbers.
    pub fn of(name: String, stats: Stats) -> Run {
        let functions = stats.functions.into_iter();
        let functions = functions.map(FunctionTime::from).collect();
        Run {
            name,
            answers: stats.answers,
            processes: stats.processes.len(),
            functions: stats.sampling.is_some().then_some(functions),
        }
    }
}
