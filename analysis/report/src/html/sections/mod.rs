//! The parts of the page, and what they are made of: tables that sort, bars, headings.

mod blame;
mod comparison;
mod findings;
mod functions;
mod overview;
mod processes;
mod provenance;
mod rank_traffic;
mod ranks;
mod regions;
mod sources;
mod steps;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::text::table::{bytes, counted, time, with_commas};
use omptrace_analysis::answers::{
    Accounting, Blame, Cause, Efficiency, Moment, Place, RegionAnswer, RegionShape,
};
use serde_json::Value;

use crate::html::escape::{Text, percent, short};
use crate::html::limits::Limits;
use crate::html::palette::{self, GROUPS};
use crate::input::Report;

pub(crate) use blame::blame;
pub(crate) use comparison::comparison;
pub(crate) use findings::{findings, view_command};
pub(crate) use functions::functions;
pub(crate) use overview::{headline, timeline, tree};
pub(crate) use processes::processes;
pub(crate) use provenance::{origin, provenance};
pub(crate) use ranks::ranks;
pub(crate) use regions::regions;
pub(crate) use sources::sources;
pub(crate) use steps::steps;
use tables::heat;
pub(crate) use tables::tables;

/// A cell of a table.
enum Cell {
    /// A name.
    Name(String),
    /// A number: as it is shown, and as it is sorted.
    Number(String, f64),
    /// The causes that a time went to.
    Bar(Accounting),
    /// HTML.
    Html(String),
}

impl Cell {
    fn time(ns: u64) -> Cell {
        Cell::Number(time(ns), ns as f64)
    }

    fn known_time(ns: Option<u64>) -> Cell {
        ns.map_or(Cell::unknown(), Cell::time)
    }

    fn count(count: u64) -> Cell {
        Cell::Number(with_commas(count), count as f64)
    }

    fn known_count(count: Option<u64>) -> Cell {
        count.map_or(Cell::unknown(), Cell::count)
    }

    fn known_bytes(number: Option<u64>) -> Cell {
        number.map_or(Cell::unknown(), |number| Cell::Number(bytes(number), number as f64))
    }

    fn share(share: Option<f64>) -> Cell {
        share.map_or(Cell::unknown(), |share| Cell::Number(percent(share), share))
    }

    fn unknown() -> Cell {
        Cell::Number("\u{2013}".to_owned(), -1.0)
    }
}

/// A table that sorts by its headings; `more`: how to get the rows that are left out.
fn table(
    out: &mut String,
    id: &str,
    caption: &str,
    headings: &[&str],
    rows: Vec<Vec<Cell>>,
    (limit, more): (usize, &str),
) {
    let all = rows.len();
    let _ = write!(
        out,
        "<div class=scroll tabindex=0 role=region aria-label=\"{caption}\"><table id={id} class=sorts><caption>{caption}</caption><thead><tr>"
    );
    let numeric = |column: usize| {
        let cell = rows.first().and_then(|row| row.get(column));
        matches!(cell, Some(Cell::Number(..)))
    };
    for (column, heading) in headings.iter().enumerate() {
        let class = if numeric(column) { " class=n" } else { "" };
        let _ = write!(out, "<th scope=col{class}>{heading}</th>");
    }
    *out += "</tr></thead><tbody>";
    for row in rows.into_iter().take(limit) {
        *out += "<tr>";
        for (index, cell) in row.into_iter().enumerate() {
            let (open, close) = if index == 0 { ("<th scope=row", "</th>") } else { ("<td", "</td>") };
            let _ = match cell {
                Cell::Name(name) => write!(out, "{open}>{}{close}", Text(&short(&name))),
                Cell::Number(text, value) => {
                    write!(out, "{open} class=n data-value=\"{value}\">{}{close}", Text(&text))
                }
                Cell::Bar(sums) => write!(out, "{open} class=b>{}{close}", bar(&sums)),
                Cell::Html(html) => write!(out, "{open}>{html}{close}"),
            };
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>";
    left_out(out, all, limit, more);
}

fn left_out(out: &mut String, all: usize, shown: usize, more: &str) {
    if all > shown {
        let rest = counted((all - shown) as u64, "more row");
        let _ = write!(out, "<p class=more>and {rest}: <code>{}</code></p>", Text(more));
    }
}

/// A bar whose parts are the groups, as wide as their shares.
fn bar(sums: &Accounting) -> String {
    let groups = palette::sums(sums);
    let total: u64 = groups.iter().sum();
    if total == 0 {
        return String::new();
    }
    let share = |ns: u64| ns as f64 / total as f64;
    let shown = || GROUPS.iter().zip(groups).filter(|(_, ns)| share(*ns) >= 0.0005);
    let words: Vec<String> =
        shown().map(|(group, ns)| format!("{} {}", group.label, percent(share(ns)))).collect();
    let words = words.join(", ");
    let mut html = format!("<span class=bar role=img aria-label=\"{words}\" title=\"{words}\">");
    for (group, ns) in shown() {
        let _ = write!(html, "<i class=c-{} style=\"width:{:.2}%\"></i>", group.key, share(ns) * 100.0);
    }
    html + "</span>"
}

fn section(out: &mut String, id: &str, heading: &str, lead: &str) {
    let _ = write!(out, "<section id={id} aria-labelledby={id}-h><h2 id={id}-h>{heading}</h2>");
    if !lead.is_empty() {
        let _ = write!(out, "<p class=lead>{lead}</p>");
    }
}

/// A thread's name, with its process where there are several.
fn thread_name(report: &Report<'_>, process: &str, thread: &str) -> String {
    match report.stats.processes.len() {
        0 | 1 => thread.to_owned(),
        _ => format!("{process} {thread}"),
    }
}

/// A place in words. Serial code is named by the lines around it.
fn place(place: &Place) -> String {
    short(&place.in_words())
}
