//! Every text, table and page that is made of answers. Nothing is read here: the caller brings numbers and sources.
//!
//! ```text
//! Stats, Diff, Scaling, Info --> text: first screen, tables, sentences
//! Report --> html: sections of escaped text + state_raster (threads over time) + assets --> one page of MAX_PAGE bytes at most
//!       \--> markdown, of MAX_MARKDOWN bytes at most
//! ```
#![forbid(unsafe_code)]

mod html;
mod input;
mod markdown;
mod text;

pub use html::MAX_PAGE;
pub use html::palette::{GROUPS, Group};
pub use html::source::SourceFile;
pub use input::Report;
pub use markdown::MAX_MARKDOWN;
pub use text::diff::{Shown, diff_text, row_label, row_subject};
pub use text::first_screen::{
    doubts, efficiency_bars, finding_cards, first_screen, help_command, help_for_causes, useful_percent,
};
pub use text::info::{end_words, info_text};
pub use text::job::{job_gain_line, job_path_lines};
pub use text::overview::{finding_line, headline};
pub use text::rank_waits::{rank_wait_lines, wait_state_words};
pub use text::ranks::rank_lines;
pub use text::scaling::scaling_text;
pub use text::stats::{By, stats_tables, table_by};
pub use text::styled::{Line, Lines, Look, Tint, shortened};
pub use text::table::{Layout, Style, bytes, counted, markdown, percent, time, with_commas};

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
