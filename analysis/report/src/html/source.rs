//! Sources: what each line's time went to.

use std::collections::BTreeMap;

use omptrace_analysis::Stats;
use omptrace_analysis::answers::{Accounting, Cause, Overview, Place};

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

/// The file and the line of a construct. Serial code has the line of the region behind it, where no serial time was spent.
fn line_of(place: &Place) -> Option<(&str, u32)> {
    let line = Some((place.file.as_deref()?, place.line?));
    line.filter(|_| place.has_own_line() && !place.is_serial())
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
