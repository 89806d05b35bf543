//! The differences from the runs before, and the scaling of the program.

use super::*;
use crate::text::diff::{doubt_words, row_label, row_subject};

/// Writes the differences from the runs before, and the scaling of the program.
pub(crate) fn comparison(out: &mut String, report: &Report<'_>, limits: &Limits) {
    if let Some(diff) = report.diff {
        let lead = format!(
            "Before: {}, {} on average. After: {}, {} on average. The rest of this page is about the first run after the change.",
            counted(diff.before.runs.len() as u64, "run"),
            time(diff.before.duration_ns),
            counted(diff.after.runs.len() as u64, "run"),
            time(diff.after.duration_ns)
        );
        section(out, "compared", "Before and after", &lead);
        if !diff.is_noise_known {
            *out += "<p>At least one set has only one run, which does not show how much runs of the same program vary. Compare at least three runs per set.</p>";
        }
        let rows = diff.rows.iter().filter(|row| match diff.is_noise_known {
            _ if row.is_headline() => true,
            true => row.is_different,
            false => row.is_large,
        });
        let value = |row: &omptrace_analysis::compare::Row, value: f64| match row.metric.is_time() {
            true => Cell::time(value.max(0.0).round() as u64),
            false => Cell::share(Some(value)),
        };
        let rows = rows.map(|row| {
            let change = match row.metric.is_time() {
                true => row.relative.map(|change| (format!("{:+.1} %", change * 100.0), change)),
                false => Some((format!("{:+.1} points", row.difference * 100.0), row.difference)),
            };
            vec![
                Cell::Name(row_subject(row).unwrap_or_else(|| "whole run".to_owned())),
                Cell::Name(match doubt_words(diff, row) {
                    Some(doubt) => format!("{} ({doubt})", row_label(row)),
                    None => row_label(row),
                }),
                value(row, row.before.mean),
                value(row, row.after.mean),
                change.map_or(Cell::unknown(), |(text, value)| Cell::Number(text, value)),
            ]
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            *out += "<p>No difference is significant.</p>";
        } else {
            let headings = ["where", "what", "before", "after", "change"];
            table(
                out,
                "diff-table",
                "What differs",
                &headings,
                rows,
                (limits.rows, "omptrace diff BEFORE... -- AFTER..."),
            );
        }
        *out += "</section>";
    }
    if let Some(scaling) = report.scaling {
        section(
            out,
            "scaling",
            "Scaling",
            "The speed-up, global efficiency and computation scalability are relative to the run with the fewest threads. The efficiencies are defined by POP.",
        );
        *out += "<div id=scaling-chart aria-hidden=true></div>";
        let rows = scaling.columns.iter().map(|column| {
            vec![
                Cell::count(column.threads.into()),
                Cell::count(column.processes as u64),
                Cell::count(column.runs as u64),
                Cell::time(column.duration_ns),
                column.speed_up.map_or(Cell::unknown(), |value| Cell::Number(format!("{value:.2}"), value)),
                Cell::share(column.global_efficiency),
                Cell::share(column.efficiency.parallel),
                Cell::share(column.efficiency.load_balance),
                Cell::share(column.computation_scalability),
                Cell::Bar(column.accounting),
            ]
        });
        let headings = [
            "threads",
            "processes",
            "runs",
            "time",
            "speed-up",
            "global efficiency",
            "parallel efficiency",
            "load balance",
            "computation scalability",
            "threads\u{2019} time",
        ];
        table(
            out,
            "scaling-table",
            "Runs by number of threads",
            &headings,
            rows.collect(),
            (limits.rows, "omptrace scaling RUN..."),
        );
        *out += "</section>";
    }
}
