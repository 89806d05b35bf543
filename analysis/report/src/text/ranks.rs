//! The comparison of ranks, in words.

use std::fmt::Write as _;

use omptrace_analysis::Ranks;

use super::table::time;

/// Ranks that are named; of further ones, the number is shown.
const MAX_NAMED: usize = 12;

/// The number of ranks, the outliers, the missing ranks, and those that died.
pub fn rank_lines(ranks: &Ranks) -> Vec<String> {
    let mut lines = Vec::new();
    let first: String = match (ranks.median, &ranks.outliers[..]) {
        (None, _) => format!("{} ranks", ranks.count),
        (Some(median), []) => {
            format!(
                "{} ranks, all similar to rank {median}, whose times are closest to the median of all ranks",
                ranks.count
            )
        }
        (Some(median), _) => format!(
            "{} ranks; the times of rank {median} are closest to the median of all ranks; the ranks that differ most from the median are:",
            ranks.count
        ),
    };
    lines.push(first);
    lines.extend(ranks.outliers.iter().map(|outlier| {
        format!(
            "rank {}: {} {}, the median {}",
            outlier.rank,
            time(outlier.ns),
            outlier.cause.name().replace('_', " "),
            time(outlier.median_ns)
        )
    }));
    if !ranks.missing.is_empty() {
        lines.push(format!("no trace of {}", named(&ranks.missing)));
    }
    if !ranks.died.is_empty() {
        lines.push(format!("killed or not finished: {}", named(&ranks.died)));
    }
    lines
}

/// `rank 3`, `ranks 3, 5 and 7 more`.
fn named(ranks: &[u32]) -> String {
    let mut words = match ranks {
        [_] => "rank ".to_owned(),
        _ => "ranks ".to_owned(),
    };
    for (index, rank) in ranks.iter().take(MAX_NAMED).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(words, "{comma}{rank}");
    }
    if ranks.len() > MAX_NAMED {
        let _ = write!(words, " and {} more", ranks.len() - MAX_NAMED);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(named(&[3]), "rank 3");
        let many: Vec<u32> = (0..20).collect();
        assert_eq!(named(&many), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more");
    }
}
