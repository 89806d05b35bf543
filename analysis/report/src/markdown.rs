//! The report as Markdown, for tickets and summaries of CI.

use std::fmt::Write;

use omptrace_analysis::printable;

use crate::text::diff::{Shown, diff_text};
use crate::text::scaling::scaling_text;
use crate::text::stats::stats_tables;
use crate::text::table::{Layout, Style, markdown};

use crate::input::Report;

/// The longest Markdown.
pub const MAX_MARKDOWN: usize = 64 << 10;

pub(crate) fn of(report: &Report<'_>) -> String {
    let mut text = String::new();
    for rows in [100, 30, 10, 5, 2, 1] {
        text = with_rows(report, rows);
        if text.len() <= MAX_MARKDOWN {
            return text;
        }
    }
    // Names of any length.
    let note = "\n\ncut: the report was too long\n";
    let mut end = MAX_MARKDOWN - note.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(text[..end].rfind('\n').unwrap_or(end));
    text + note
}

fn with_rows(report: &Report<'_>, rows: usize) -> String {
    let layout = Layout { top: Some(rows), is_short: true, style: Style::Markdown, ..Layout::default() };
    let mut text = String::new();
    // Writing to memory does not fail.
    let _infallible = write!(text, "# {}\n\n{}", markdown(&report.title), stats_tables(report.stats, layout));
    if let Some(diff) = report.diff {
        let shown = Shown { all: false };
        let _infallible = write!(text, "\n## compared\n\n{}", diff_text(diff, layout, shown));
    }
    if let Some(scaling) = report.scaling {
        let _infallible = write!(text, "\n## scaling\n\n{}", scaling_text(scaling, layout));
    }
    let instances = report.stats.answers.findings.iter().take(3);
    let commands: Vec<String> = instances
        .filter_map(|finding| finding.instances.first())
        .map(|moment| crate::html::sections::view_command(&report.view, moment))
        .collect();
    if !commands.is_empty() {
        text += "\n## where to look\n\n```sh\n";
        for command in commands {
            text += &one_line(&command);
            text.push('\n');
        }
        text += "```\n";
    }
    text += "\n## run details\n\n";
    for (name, value) in crate::html::sections::provenance(report) {
        let _infallible = writeln!(text, "- {name}: {}", inline_code(&value));
    }
    text
}

/// A line of code between lines of three backquotes.
fn one_line(text: &str) -> String {
    printable(text).replace("```", "'''")
}

/// Text between backquotes, whatever is in it.
fn inline_code(text: &str) -> String {
    let text = one_line(text).replace('`', "'");
    format!("`{text}`")
}
