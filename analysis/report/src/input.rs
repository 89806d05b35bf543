//! What a report is made of.

use omptrace_analysis::answers::Overview;
use omptrace_analysis::compare::{Diff, Scaling};
use omptrace_analysis::{Info, Stats};

use crate::html::source::SourceFile;

/// All that a report is made of.
#[derive(Debug)]
pub struct Report<'a> {
    /// The subject of the page, in a few words: the program.
    pub title: String,
    /// The command that opens the same traces in a viewer, as it is typed.
    pub view: String,
    /// The command that prints the numbers, as it is typed.
    pub stats_command: String,
    /// The answers.
    pub stats: &'a Stats,
    /// The states of each thread over time.
    pub overview: &'a Overview,
    /// The summary of each trace.
    pub infos: &'a [Info],
    /// The program's sources, as far as they were found; `None` where they are not wanted.
    pub sources: Option<&'a [SourceFile]>,
    /// The differences from the runs before.
    pub diff: Option<&'a Diff>,
    /// How the program scales, where the runs have different numbers of threads.
    pub scaling: Option<&'a Scaling>,
}
