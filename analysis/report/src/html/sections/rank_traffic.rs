//! How much the ranks of an MPI job communicate: a matrix of their messages, and the slowest collective operations.

use super::*;
use omptrace_analysis::RankTraffic;

/// A table with a cell for each pair of ranks, or of groups of neighbouring ranks. The larger a value, the darker its cell.
pub(super) struct RankMatrix {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    pub(super) caption: &'static str,
    pub(super) ranks: u32,
    pub(super) per_group: u32,
    /// By row and column: the value, and its text.
    pub(super) cells: BTreeMap<(u32, u32), (u64, String)>,
}

impl RankMatrix {
    pub(super) fn draw(&self, out: &mut String) {
        let RankMatrix { id, label, caption, ranks, per_group, cells } = self;
        let groups = ranks.div_ceil(*per_group);
        let most = cells.values().map(|(value, _)| *value).max().unwrap_or(0).max(1);
        let name = |group: u32| match per_group {
            1 => group.to_string(),
            _ => {
                let first = group * per_group;
                format!("{first}\u{2013}{}", (first + per_group - 1).min(ranks.saturating_sub(1)))
            }
        };
        let _ = write!(
            out,
            "<div class=scroll tabindex=0 role=region aria-label=\"{label}\"><table id={id} class=heatmap>\
             <caption>{caption}</caption><thead><tr><td></td>"
        );
        for column in 0..groups {
            let _ = write!(out, "<th scope=col>{}</th>", name(column));
        }
        *out += "</tr></thead><tbody>";
        for row in 0..groups {
            let _ = write!(out, "<tr><th scope=row>{}</th>", name(row));
            for column in 0..groups {
                match cells.get(&(row, column)) {
                    Some((value, text)) => {
                        let share = *value as f64 / most as f64 * 100.0;
                        let _ = write!(
                            out,
                            "<td style=\"--s:{share:.0}%\" data-value={value} title=\"{}\"></td>",
                            Text(text)
                        );
                    }
                    None => *out += "<td></td>",
                }
            }
            *out += "</tr>";
        }
        *out += "</tbody></table></div>";
    }
}

/// Who sends how much to whom.
pub(super) fn messages(out: &mut String, traffic: &RankTraffic) {
    let matrix = &traffic.matrix;
    if traffic.messages == 0 || matrix.ranks_per_group == 0 {
        return;
    }
    let per_group = matrix.ranks_per_group;
    let cells = matrix.cells.iter().map(|cell| {
        let text = format!("{}, {}", counted(cell.count, "message"), bytes(cell.bytes));
        ((cell.from / per_group, cell.to / per_group), (cell.bytes, text))
    });
    let matrix = RankMatrix {
        id: "messages-matrix",
        label: "Messages",
        caption: "Messages: sending ranks in rows, receiving ranks in columns. The darker a cell, the more bytes",
        ranks: matrix.ranks,
        per_group,
        cells: cells.collect(),
    };
    matrix.draw(out);
    let all = format!("{}, {} together", counted(traffic.messages, "message"), bytes(traffic.bytes));
    let _ = write!(out, "<p class=more>{}</p>", Text(&all));
}

/// The collective operations in which ranks spend most time.
pub(super) fn collectives(out: &mut String, report: &Report<'_>, traffic: &RankTraffic, limits: &Limits) {
    if traffic.collectives.is_empty() {
        return;
    }
    let rows = traffic.collectives.iter().map(|row| {
        vec![
            Cell::Name(place(&row.place)),
            Cell::count(row.ranks),
            Cell::count(row.count),
            Cell::time(row.ns),
            Cell::known_time(row.waits_ns),
            Cell::known_bytes(Some(row.bytes)),
            Cell::time(row.longest_ns),
            Cell::Number(row.last_rank.to_string(), row.last_rank.into()),
        ]
    });
    let headings = [
        "call",
        "ranks",
        "operations",
        "time",
        "waits",
        "bytes",
        "longest operation",
        "last rank in the longest operation",
    ];
    let more = format!("{} --select rank_traffic.collectives --all", report.stats_command);
    let limit = (limits.rows / 4, &*more);
    table(out, "collectives-table", "Slowest collective operations", &headings, rows.collect(), limit);
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::{MatrixCell, MessageMatrix};

    use super::*;

    #[test]
    fn the_matrix_of_a_thousand_ranks_has_few_cells_and_all_messages() {
        let cell = |from: u32| MatrixCell { from: from * 32, to: from * 32, count: 3, bytes: 64 };
        let traffic = RankTraffic {
            messages: 96,
            bytes: 2048,
            matrix: MessageMatrix { ranks_per_group: 32, ranks: 1000, cells: (0..32).map(cell).collect() },
            ..RankTraffic::default()
        };
        let mut html = String::new();
        messages(&mut html, &traffic);
        assert!(html.matches("<td").count() <= 32 * 32 + 1, "{html}");
        assert_eq!(html.matches("data-value=64").count(), 32, "{html}");
        assert!(html.contains("<th scope=row>992\u{2013}999</th>"), "{html}");
        assert!(html.contains("title=\"3 messages, 64 B\""), "{html}");
    }
}
