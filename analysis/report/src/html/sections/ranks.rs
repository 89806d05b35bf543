//! The ranks of an MPI job: what each does over time, which keep others waiting, and in which calls ranks wait.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::text::rank_waits::{rank_wait_lines, wait_state_words};
use omptrace_analysis::RankWaits;
use omptrace_analysis::answers::OverviewRow;

use super::rank_traffic::{RankMatrix, collectives, messages};
use super::*;

/// Lines of the picture: more ranks share them.
const MAX_LINES: usize = 48;
/// Columns of the picture.
const COLUMNS: usize = 60;
/// Rows and columns of the matrix, at most: more ranks share them.
const MAX_GROUPS: u32 = 25;

/// The first screen of a job's page, where traces of all ranks are there.
pub(crate) fn ranks(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let Some(waits) = &report.stats.rank_waits else { return };
    let lines = rank_wait_lines(waits, 0);
    let lead = lines.first().map_or("No rank waits for another rank.", |all| all);
    section(out, "ranks", "Ranks", &Text(lead).to_string());
    over_time(out, report, limits);
    if waits.total_ns > 0 {
        first_causes(out, report, waits, limits);
        calls(out, report, waits, limits);
        matrix(out, waits);
    }
    if let Some(traffic) = &report.stats.rank_traffic {
        messages(out, traffic);
        collectives(out, report, traffic, limits);
    }
    *out += "</section>";
}

/// A line of the picture: its first and last process, and the sums of each column.
struct Line<'r> {
    first: &'r str,
    last: &'r str,
    columns: Vec<Accounting>,
}

/// What ranks do over time: each cell has the colour of the causes with most of the time.
fn over_time(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let lines = lines(&report.overview.rows, limits.rows.clamp(1, MAX_LINES));
    let columns = lines.first().map_or(0, |line| line.columns.len());
    if columns == 0 {
        return;
    }
    let bins = report.overview.rows.first().map_or(0, |row| row.cells.len());
    let width = report.overview.width_ns.saturating_mul(bins.div_ceil(columns) as u64);
    overview::legend(out, report);
    let _ = write!(
        out,
        "<div class=scroll tabindex=0 role=region aria-label=\"Ranks over time\"><table id=ranks-picture class=heatmap>\
         <caption>Ranks over time: what takes most of the thread time, in columns of {}</caption><tbody>",
        Text(&time(width))
    );
    for line in &lines {
        let name = match line.first == line.last {
            true => short(line.first),
            false => format!("{} \u{2013} {}", short(line.first), short(line.last)),
        };
        let _ = write!(out, "<tr><th scope=row>{}</th>", Text(&name));
        for accounting in &line.columns {
            let sums = palette::sums(accounting);
            let total: u64 = sums.iter().sum();
            let most = GROUPS.iter().zip(sums).rev().max_by_key(|(_, ns)| *ns);
            match most.filter(|_| total > 0) {
                Some((group, ns)) => {
                    let share = percent(ns as f64 / total as f64);
                    let (colour, label) = (group.colour, group.label);
                    let _ = write!(out, "<td style=\"background:{colour}\" title=\"{label} {share}\"></td>");
                }
                None => *out += "<td></td>",
            }
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>";
}

/// The lines of the picture, no more than `most`.
fn lines(rows: &[OverviewRow], most: usize) -> Vec<Line<'_>> {
    let processes: Vec<&[OverviewRow]> = rows.chunk_by(|a, b| a.process == b.process).collect();
    let per_line = processes.len().div_ceil(most).max(1);
    let of_processes = |processes: &[&'_ [OverviewRow]]| {
        let mut columns: Vec<Accounting> = Vec::new();
        for row in processes.iter().copied().flatten() {
            let per_column = row.cells.len().div_ceil(COLUMNS).max(1);
            let parts = row.cells.chunks(per_column);
            columns.resize(parts.len().max(columns.len()), Accounting::default());
            for (sum, cells) in columns.iter_mut().zip(parts) {
                cells.iter().for_each(|cell| sum.merge(&cell.accounting));
            }
        }
        columns
    };
    let mut lines = Vec::new();
    for of_line in processes.chunks(per_line) {
        if let ([first, ..], [.., last]) = (of_line, of_line)
            && let (Some(first), Some(last)) = (first.first(), last.first())
        {
            let columns = of_processes(of_line);
            lines.push(Line { first: &first.process, last: &last.process, columns });
        }
    }
    lines
}

/// Which rank kept others waiting, and with what.
fn first_causes(out: &mut String, report: &Report<'_>, waits: &RankWaits, limits: &Limits) {
    let rows = waits.first_causes.iter().map(|row| {
        vec![
            Cell::Name(format!("rank {}", row.rank)),
            Cell::Name(row.what().unwrap_or_else(|| "not recorded".to_owned())),
            Cell::Name(place(&row.waits_at)),
            Cell::count(row.ranks),
            Cell::time(row.ns),
            Cell::share(Some(row.ns as f64 / waits.total_ns.max(1) as f64)),
        ]
    });
    let headings = ["late rank", "what it does", "others wait in", "waiting ranks", "time", "share"];
    let more = format!("{} --select rank_waits.first_causes --all", report.stats_command);
    table(out, "first-causes-table", "Late ranks", &headings, rows.collect(), (limits.rows / 4, &more));
}

/// The calls in which ranks wait.
fn calls(out: &mut String, report: &Report<'_>, waits: &RankWaits, limits: &Limits) {
    let mut sums: BTreeMap<(&Place, &str), (u64, u64, BTreeSet<u32>)> = BTreeMap::new();
    for row in &waits.waits {
        let (ns, count, ranks) = sums.entry((&row.place, row.state)).or_default();
        *ns = ns.saturating_add(row.ns);
        *count += row.count;
        ranks.insert(row.rank);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (ns, ..))| Reverse(*ns));
    let rows = sums.into_iter().map(|((at, state), (ns, count, ranks))| {
        vec![
            Cell::Name(place(at)),
            Cell::Name(wait_state_words(state)),
            Cell::count(ranks.len() as u64),
            Cell::count(count),
            Cell::time(ns),
        ]
    });
    let headings = ["call", "wait state", "ranks", "calls", "time"];
    let more = format!("{} --select rank_waits.waits --all", report.stats_command);
    let limit = (limits.rows / 4, &*more);
    table(out, "rank-waits-table", "Calls in which ranks wait", &headings, rows.collect(), limit);
}

/// Who waits for whom: a dark column is a rank that others wait for.
fn matrix(out: &mut String, waits: &RankWaits) {
    let pairs = waits.waits.iter().map(|row| (row.rank, row.waits_for));
    let last = pairs.flat_map(|(rank, of)| [rank, of]).max().unwrap_or(0);
    let per_group = last / MAX_GROUPS + 1;
    let mut cells: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in &waits.waits {
        let ns = cells.entry((row.rank / per_group, row.waits_for / per_group)).or_default();
        *ns = ns.saturating_add(row.ns);
    }
    let cells = cells.into_iter().map(|(cell, ns)| (cell, (ns, time(ns))));
    let matrix = RankMatrix {
        id: "ranks-matrix",
        label: "Who waits for whom",
        caption: "Who waits for whom: waiting ranks in rows, awaited ranks in columns. The darker a cell, the longer the waits",
        ranks: last.saturating_add(1),
        per_group,
        cells: cells.collect(),
    };
    matrix.draw(out);
    if waits.more_waits_ns > 0 {
        let rest = time(waits.more_waits_ns);
        let _ = write!(out, "<p class=more>the shortest waits are not shown: {rest} in total</p>");
    }
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::RankWait;
    use omptrace_analysis::answers::OverviewCell;

    use super::*;

    fn row(process: &str, cause: Cause) -> OverviewRow {
        let mut accounting = Accounting::default();
        accounting.add(cause, 10);
        let cell = OverviewCell { accounting, lived_ns: 10, place: None };
        let (first, last) = ("main".to_owned(), "main".to_owned());
        OverviewRow { process: process.to_owned(), first, last, threads: 1, cells: vec![cell; 120] }
    }

    #[test]
    fn a_thousand_ranks_share_lines() {
        let rows: Vec<OverviewRow> =
            (0..1000).map(|rank| row(&format!("app, rank {rank}"), Cause::MpiWait)).collect();
        let lines = lines(&rows, MAX_LINES);
        assert!(lines.len() <= MAX_LINES, "{} lines", lines.len());
        assert_eq!((lines[0].first, lines[0].last), ("app, rank 0", "app, rank 20"));
        let all: u64 = lines.iter().flat_map(|line| &line.columns).map(|sums| sums[Cause::MpiWait]).sum();
        assert_eq!(all, 1000 * 120 * 10);
        assert_eq!(lines[0].columns.len(), COLUMNS);
    }

    #[test]
    fn the_matrix_of_a_thousand_ranks_has_few_cells_and_all_waits() {
        let wait = |rank| RankWait {
            rank,
            state: "wait_at_barrier",
            place: Place::new("MPI_Barrier"),
            waits_for: 999,
            ns: 1,
            count: 1,
        };
        let waits = RankWaits { waits: (0..999).map(wait).collect(), total_ns: 999, ..RankWaits::default() };
        let mut html = String::new();
        matrix(&mut html, &waits);
        assert!(html.matches("<td").count() <= 25 * 25 + 1, "{html}");
        let shown = html.split("data-value=").skip(1);
        let sum: u64 = shown.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).sum();
        assert_eq!(sum, 999);
    }
}
