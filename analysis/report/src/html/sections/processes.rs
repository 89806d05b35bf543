//! Processes and ranks: a table, and when each was at work.

use omptrace_analysis::answers::{Cause, OverviewRow};

use super::*;

/// Columns of the picture.
const COLUMNS: usize = 60;

/// The processes, where there are several.
pub(crate) fn processes(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let stats = report.stats;
    if stats.processes.len() < 2 {
        return;
    }
    section(out, "processes", "Processes", "");
    let mut useful: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in &stats.threads {
        let worked = thread.working_ns.unwrap_or(0) + thread.serial_ns;
        *useful.entry(thread.process_id).or_default() += worked;
    }
    let rows = stats.processes.iter().map(|process| {
        let worked = useful.get(&process.id).copied().unwrap_or(0);
        let share = worked as f64 / (process.duration_ns.max(1) as f64 * f64::from(process.threads.max(1)));
        vec![
            Cell::Name(process.name.clone()),
            process.rank.map_or(Cell::unknown(), |rank| Cell::count(rank.into())),
            Cell::Name(process.host.clone()),
            Cell::count(process.threads.into()),
            Cell::time(process.duration_ns),
            Cell::known_time(process.serial_ns),
            heat(share),
        ]
    });
    let headings = ["process", "rank", "host", "threads", "time", "serial", "threads at work"];
    let more = format!("{} --by process --all", report.stats_command);
    table(out, "processes-table", "Processes", &headings, rows.collect(), (limits.rows, &more));
    over_time(out, report, limits);
    *out += "</section>";
}

/// Neighbouring rows of one process, or rows that several processes share: its name, and the sums of each column.
struct Line<'r> {
    process: &'r str,
    /// Useful and lived time.
    columns: Vec<(u64, u64)>,
}

/// The useful share of each process's threads over time: a row per process, in the timeline's order.
fn over_time(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let lines = lines(&report.overview.rows);
    let columns = lines.first().map_or(0, |line| line.columns.len());
    if columns == 0 {
        return;
    }
    let overview = report.overview;
    let bins = overview.rows.first().map_or(0, |row| row.cells.len());
    let width = overview.width_ns.saturating_mul(bins.div_ceil(columns) as u64);
    let _ = write!(
        out,
        "<div class=scroll tabindex=0 role=region aria-label=\"Processes over time\"><table id=processes-heat \
         class=heatmap><caption>Processes over time: the share of useful time, in columns of {}. The darker a cell, the larger the share</caption>\
         <tbody>",
        Text(&time(width))
    );
    for line in lines.iter().take(limits.rows) {
        let _ = write!(out, "<tr><th scope=row>{}</th>", Text(&short(line.process)));
        for (useful, lived) in &line.columns {
            if *lived == 0 {
                *out += "<td></td>";
                continue;
            }
            let share = *useful as f64 / *lived as f64;
            let _ = write!(
                out,
                "<td style=\"--s:{:.0}%\" data-value={useful} title=\"{}\"></td>",
                (share * 100.0).clamp(0.0, 100.0),
                percent(share)
            );
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>";
    let more = format!("{} --by process --all", report.stats_command);
    left_out(out, lines.len(), limits.rows, &more);
}

fn lines(rows: &[OverviewRow]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows {
        let per_column = row.cells.len().div_ceil(COLUMNS).max(1);
        let columns = row.cells.chunks(per_column).map(|cells| {
            let useful = cells.iter().map(|cell| cell.accounting[Cause::Useful]);
            let lived = cells.iter().map(|cell| cell.lived_ns);
            (useful.fold(0, u64::saturating_add), lived.fold(0, u64::saturating_add))
        });
        match lines.last_mut().filter(|line| line.process == row.process) {
            Some(line) => {
                for (sum, (useful, lived)) in line.columns.iter_mut().zip(columns) {
                    *sum = (sum.0.saturating_add(useful), sum.1.saturating_add(lived));
                }
            }
            None => lines.push(Line { process: &row.process, columns: columns.collect() }),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::{Accounting, OverviewCell};

    use super::*;

    #[test]
    fn the_threads_of_a_process_make_one_line() {
        let cell = |ns| {
            let mut accounting = Accounting::default();
            accounting.add(Cause::Useful, ns);
            OverviewCell { accounting, lived_ns: 10, place: None }
        };
        let row = |process: &str, ns| OverviewRow {
            process: process.to_owned(),
            cells: vec![cell(ns); 2 * COLUMNS],
            ..OverviewRow::default()
        };
        let rows = [row("a", 1), row("a", 2), row("b", 5)];
        let lines = lines(&rows);
        let seen: Vec<_> =
            lines.iter().map(|line| (line.process, line.columns.len(), line.columns[0])).collect();
        assert_eq!(seen, [("a", COLUMNS, (6, 40)), ("b", COLUMNS, (10, 20))]);
    }
}
