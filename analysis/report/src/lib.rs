//! A page to hand on: what `omptrace report` makes of answers. Nothing is read here: who calls it brings numbers and sources.
//!
//! ```text
//! Report --> sections: html (text, escaped) + picture (threads over time) + assets --> one page of MAX_PAGE bytes at most
//!       \--> markdown, of MAX_MARKDOWN bytes at most
//! ```
#![forbid(unsafe_code)]

mod group;
mod html;
mod limits;
mod markdown;
mod page;
mod picture;
mod sections;
mod source;

pub use group::{GROUPS, Group};
pub use markdown::MAX_MARKDOWN;
pub use page::MAX_PAGE;
pub use source::SourceFile;

use omptrace_analysis::answers::Overview;
use omptrace_analysis::compare::{Diff, Scaling};
use omptrace_analysis::{Info, Stats};

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

impl Report<'_> {
    /// The page: HTML of at most [`MAX_PAGE`] bytes, which needs nothing else.
    pub fn page(&self) -> String {
        page::of(self)
    }

    /// Markdown of at most [`MAX_MARKDOWN`] bytes.
    pub fn markdown(&self) -> String {
        markdown::of(self)
    }

    /// The source files that the answers name, those with the most time first.
    pub fn files(stats: &Stats, overview: &Overview) -> Vec<String> {
        source::files(&source::by_line(stats, overview))
    }
}
