//! The programs that are measured, and how much of each.

use std::path::{Path, PathBuf};

use crate::process::{command, root, run};
use crate::result::Result;
use crate::setup::tools::openmp_flags;

use super::case::{Case, Program};
use super::machine;
use super::runs;
use super::tools::Tools;

/// EPCC's constructs, and a program as people have them.
const PROGRAMS: &[Program] = &[
    fine("parallel", 500_000, 100_000),
    fine("for", 300_000, 100_000),
    fine("barrier", 500_000, 100_000),
    Program { places: 20, ..fine("barrier-20", 500_000, 100_000) },
    Program { places: 200, ..fine("barrier-200", 500_000, 100_000) },
    fine("critical", 600_000, 300_000),
    fine("lock", 600_000, 300_000),
    fine("tasks", 120, 60),
    Program { fine: false, ..fine("stencil", 2_000, 2_000) },
];

/// A range is begun and ended. Other tools than ours hear nothing of it.
const ANNOTATIONS: Program = Program { own_events: Some(2), ..fine("annotations", 500_000, 0) };

const fn fine(name: &'static str, count: u64, team_count: u64) -> Program {
    Program { name, places: 1, count, team_count, fine: true, own_events: None }
}

/// All programs, compiled.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// # Errors
    /// The compiler cannot be run.
    pub(super) fn build(folder: &Path) -> Result<Programs> {
        let sources = root().join("tests/benches/programs");
        for program in PROGRAMS.iter().chain([&ANNOTATIONS]) {
            // No debug information: valgrind 3.19 cannot read clang-22's.
            let places = format!("-DPLACES={}", program.places);
            run(command("clang-22", ["-O2", "-Wall", "-Wextra", "-Werror", "-Iinclude", &places])
                .args(openmp_flags())
                .arg("-o")
                .arg(folder.join(program.name))
                .arg(sources.join(program.source()).with_extension("c"))
                .arg(sources.join("measure.c")))?;
        }
        Ok(Programs { folder: folder.to_owned() })
    }

    /// Every program on one thread and on all processors, if its case's name contains `filter`.
    ///
    /// # Errors
    /// The counting tool cannot be run.
    pub(super) fn cases(&self, filter: &str, tools: &Tools) -> Result<Vec<Case<'_>>> {
        let mut teams = vec![1, machine::processors()];
        teams.dedup();
        let mut cases = Vec::new();
        for &threads in &teams {
            for program in PROGRAMS {
                let mut case = Case {
                    program,
                    executable: self.folder.join(program.name),
                    threads,
                    count: if threads == 1 { program.count } else { program.team_count },
                    events: 0,
                };
                if case.name().contains(filter) {
                    case.events = events(&case, tools)?;
                    cases.push(case);
                }
            }
        }
        Ok(cases)
    }

    /// The program of annotations, on one thread, if its case's name contains `filter`.
    pub(super) fn annotations(&self, filter: &str) -> Option<Case<'_>> {
        let program = &ANNOTATIONS;
        let executable = self.folder.join(program.name);
        let events = program.own_events.unwrap_or(0) * program.count;
        let case = Case { program, executable, threads: 1, count: program.count, events };
        Some(case).filter(|case| case.name().contains(filter))
    }
}

/// Events of the case.
///
/// # Errors
/// The counting tool cannot be run.
fn events(case: &Case<'_>, tools: &Tools) -> Result<u64> {
    match case.program.own_events {
        Some(events) => Ok(case.count * events),
        None => runs::events(case, tools),
    }
}

/// The case with another count.
///
/// # Errors
/// The counting tool cannot be run.
pub(super) fn with_count<'a>(case: &Case<'a>, count: u64, tools: &Tools) -> Result<Case<'a>> {
    let mut other = Case { executable: case.executable.clone(), count, ..*case };
    other.events = events(&other, tools)?;
    Ok(other)
}
