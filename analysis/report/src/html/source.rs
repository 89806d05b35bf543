//! Sources: what each line's time went to.

use std::collections::BTreeMap;

use omptrace_analysis::Stats;
use omptrace_analysis::answers::{Accounting, Cause, Overview, Place, Position};

/// A source file that was found.
#[derive(Clone, Debug, Default)]
pub struct SourceFile {
    /// Its path, as the traces have it.
    pub path: String,
    /// Its path on this machine, below the directory whose sources are shown, if it is below one.
    pub found: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// Whether it was changed after the program was compiled, or ran.
    pub is_newer: bool,
}

/// Thread time by line of each file: useful work there, and what others lost because of it.
pub(crate) fn by_line(stats: &Stats, overview: &Overview) -> BTreeMap<String, BTreeMap<u32, Accounting>> {
    let mut files: BTreeMap<String, BTreeMap<u32, Accounting>> = BTreeMap::new();
    let useful = overview.useful.iter().map(|(place, ns)| (place, Cause::Useful, *ns));
    let lost = stats.answers.blame.iter().map(|row| (&row.place, row.cause, row.ns));
    for (place, cause, ns) in useful.chain(lost) {
        if let Some((file, line)) = line_of(place) {
            let lines = files.entry(file.to_owned()).or_default();
            lines.entry(line).or_default().add(cause, ns);
        }
    }
    files
}

/// The file and the line of a construct, or the line near it. Serial code has the line of the region behind it, where no
/// serial time was spent.
fn line_of(place: &Place) -> Option<(&str, u32)> {
    let line = Some((place.file.as_deref()?, place.line?));
    line.filter(|_| (place.has_own_line() || is_near(place)) && !place.is_serial())
}

fn is_near(place: &Place) -> bool {
    place.position == Some(Position::Near)
}

/// Whether the line of a construct that lost time is not known exactly.
pub(crate) fn is_any_near(stats: &Stats) -> bool {
    stats.answers.blame.iter().any(|row| is_near(&row.place) && line_of(&row.place).is_some())
}

/// The files with their times, those with the most first.
pub(crate) fn files(by_line: &BTreeMap<String, BTreeMap<u32, Accounting>>) -> Vec<String> {
    let total = |lines: &BTreeMap<u32, Accounting>| -> u64 {
        lines.values().map(Accounting::total).fold(0, u64::saturating_add)
    };
    let mut files: Vec<(u64, String)> =
        by_line.iter().map(|(file, lines)| (total(lines), file.clone())).collect();
    files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    files.into_iter().map(|(_, file)| file).collect()
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::Blame;

    use super::*;

    #[test]
    fn a_loss_near_a_line_is_at_this_line() {
        let mut stats = Stats::default();
        for (line, position) in [(22, Position::Near), (24, Position::At), (30, Position::Inside)] {
            let mut place = Place::at("!$omp barrier", Some("/src/a.c"), Some(line), Some("main"));
            place.position = Some(position);
            stats.answers.blame.push(Blame {
                cause: Cause::Imbalance,
                place,
                ns: 1000,
                functions: Vec::new(),
                no_sample_ns: None,
            });
        }
        let lines = by_line(&stats, &Overview::default());
        assert_eq!(lines["/src/a.c"].keys().copied().collect::<Vec<u32>>(), [22, 24]);
        assert!(is_any_near(&stats));
    }
}
