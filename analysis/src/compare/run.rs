//! What of a run is compared.

use serde::Deserialize;

use crate::constructs::steps::Steps;
use crate::model::answers::{Answers, FunctionName};
use crate::{FunctionStats, Stats};

/// A run of a program: the answers of all of its processes.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The user's name for it: the trace, or the directory.
    pub name: String,
    /// Its answers.
    pub answers: Answers,
    /// How many processes it had.
    pub processes: usize,
    /// The functions' own times, by samples; `None` where there are no samples.
    pub functions: Option<Vec<FunctionTime>>,
    /// The time steps; `None` where no range repeats.
    pub steps: Option<Steps>,
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
            steps: stats.steps,
        }
    }
}

/// A function's own CPU time in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FunctionTime {
    /// Which.
    #[serde(flatten)]
    pub name: FunctionName,
    /// How long.
    pub self_ns: u64,
}

impl From<FunctionStats> for FunctionTime {
    fn from(stats: FunctionStats) -> FunctionTime {
        FunctionTime {
            name: FunctionName { function: stats.function, module: stats.module, file: stats.file },
            self_ns: stats.self_ns,
        }
    }
}
