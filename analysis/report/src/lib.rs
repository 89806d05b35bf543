//! A page to hand on: what `omptrace report` makes of answers. Nothing is read here: who calls it brings numbers and sources.
//!
//! ```text
//! Report --> html: sections of escaped text + state_raster (threads over time) + assets --> one page of MAX_PAGE bytes at most
//!       \--> markdown, of MAX_MARKDOWN bytes at most
//! ```
#![forbid(unsafe_code)]

mod html;
mod input;
mod markdown;

pub use html::MAX_PAGE;
pub use html::palette::{GROUPS, Group};
pub use html::source::SourceFile;
pub use input::Report;
pub use markdown::MAX_MARKDOWN;

use html::source;
use omptrace_analysis::Stats;
use omptrace_analysis::answers::Overview;

impl Report<'_> {
    /// The page: HTML of at most [`MAX_PAGE`] bytes, which needs nothing else.
    pub fn page(&self) -> String {
        html::of(self)
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
