//! What is measured: a program on a number of threads.

use std::path::PathBuf;

/// A program of `tests/benches/programs`.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The number of places of its source that its loop has its construct at; the name ends with it, where there are several.
    pub(super) places: u32,
    /// The number of times that it executes its construct on one thread, to raise some two million events in some 0.1 s.
    pub(super) count: u64,
    /// The number of times on all processors, where a construct takes longer.
    pub(super) team_count: u64,
    /// Whether it is all constructs and no work: the goals for costs per event are about these.
    pub(super) fine: bool,
    /// Events of each time, where the counting tool has none of them: annotations.
    pub(super) own_events: Option<u64>,
}

impl Program {
    /// The name of its source.
    pub(super) fn source(&self) -> &'static str {
        self.name.split('-').next().expect("a first part")
    }
}

/// A program on a number of threads.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) program: &'a Program,
    pub(super) executable: PathBuf,
    pub(super) threads: usize,
    pub(super) count: u64,
    /// Events that `count` raises, as the counting tool has them.
    pub(super) events: u64,
}

impl Case<'_> {
    /// Such as `tasks/2`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.program.name, self.threads)
    }
}
