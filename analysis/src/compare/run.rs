//! The part of a run's results that comparisons use.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::constructs::steps::Steps;
use crate::model::answers::{Answers, FunctionName};
use crate::{FunctionStats, MpiEfficiency, Stats};

/// A run of a program: the answers of all of its processes.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The user's name for the run: its trace, or its directory.
    pub name: String,
    /// The run's answers.
    pub answers: Answers,
    /// The number of processes.
    pub processes: usize,
    /// The programs of these processes, each once.
    pub programs: BTreeSet<String>,
    /// The functions' own times, by samples; `None` if the run was not sampled.
    pub functions: Option<Vec<FunctionTime>>,
    /// The time steps; `None` if no range repeats.
    pub steps: Option<Steps>,
    /// The efficiency of the processes of an MPI job; `None` unless there were traces of all ranks.
    pub mpi_efficiency: Option<MpiEfficiency>,
}

impl Run {
    /// The run with these results.
    pub fn of(name: String, stats: Stats) -> Run {
        let functions = stats.functions.into_iter();
        let functions = functions.map(FunctionTime::from).collect();
        Run {
            name,
            answers: stats.answers,
            processes: stats.processes.len(),
            programs: stats.processes.iter().map(|process| process.program().to_owned()).collect(),
            functions: stats.sampling.is_some().then_some(functions),
            steps: stats.steps,
            mpi_efficiency: stats.mpi_efficiency,
        }
    }
}

/// A function's own CPU time in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FunctionTime {
    /// The function.
    #[serde(flatten)]
    pub name: FunctionName,
    /// Its own CPU time.
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
