//! The critical path of an MPI job, and what the job would gain from changes, in words.

use super::rank_waits::activity_words;
use super::table::{counted, time};
use omptrace_analysis::{JobChange, JobGain, JobGains, JobPath, JobPathRow};

/// Rows that are shown have this share of the path or of the job's duration, at least: one in so many.
const MIN_SHARE: u64 = 100;

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// `8.1 s (66 %): rank 3's work at solve.c:41`.
fn row_words(row: &JobPathRow, path: &JobPath) -> String {
    let what = activity_words(row.rank, row.what());
    format!("{} ({}): {what}", time(row.ns), percent(row.ns, path.total_ns))
}

/// The critical path of a job: a sentence, and one for each of the `top` longest rows.
pub fn job_path_lines(path: &JobPath, top: usize) -> Vec<String> {
    if path.total_ns == 0 {
        return Vec::new();
    }
    let changes = match path.changes {
        0 => "stays on one rank".to_owned(),
        changes => format!("goes from one rank to another {}", counted(changes, "time")),
    };
    let all = format!("the critical path of the job takes {} and {changes}", time(path.total_ns));
    let rows = path.rows.iter().take(top);
    let rows = rows.filter(|row| row.ns.saturating_mul(MIN_SHARE) >= path.total_ns);
    std::iter::once(all).chain(rows.map(|row| row_words(row, path))).collect()
}

/// `8.2 s (-18 %) with balanced ranks`.
fn gain_words(gain: &JobGain) -> String {
    let change = match (gain.change, &gain.place) {
        (JobChange::FasterRegion, Some(place)) => {
            format!("if {} is twice as fast", place.with_line())
        }
        (change, _) => change.words().to_owned(),
    };
    format!("{} (-{:.0} %) {change}", time(gain.duration_ns), gain.gain_percent)
}

/// How long a job would take with changes: a sentence with the `top` changes that save most; `None` if none saves anything.
pub fn job_gain_line(gains: &JobGains, top: usize) -> Option<String> {
    let all = gains.gains.iter().filter(|gain| gain.gain_ns > 0 && gain.gain_percent >= 1.0);
    let words: Vec<String> = all.take(top).map(gain_words).collect();
    (!words.is_empty()).then(|| format!("the job would take {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use omptrace_analysis::answers::{Cause, Place};

    const SECOND: u64 = 1_000_000_000;

    fn place() -> Place {
        Place::at("!$omp for", Some("/src/solve.c"), Some(41), None)
    }

    #[test]
    fn the_path_names_its_longest_places() {
        let row = |ns, cause, place| JobPathRow { rank: 3, cause, place, ns };
        let path = JobPath {
            total_ns: 10 * SECOND,
            changes: 1,
            rows: vec![
                row(8 * SECOND, Some(Cause::Useful), Some(place())),
                row(2 * SECOND - 1, None, None),
                row(1, Some(Cause::MpiTransfer), Some(place())),
            ],
            ..JobPath::default()
        };
        let expected = [
            "the critical path of the job takes 10.0 s and goes from one rank to another 1 time",
            "8.00 s (80 %): rank 3's work at solve.c:41",
            "2.00 s (20 %): rank 3, whose activity was not recorded",
        ];
        assert_eq!(job_path_lines(&path, 9), expected);
        assert_eq!(job_path_lines(&path, 1), expected[..2]);
        assert!(job_path_lines(&JobPath::default(), 9).is_empty());
    }

    #[test]
    fn gains_are_named_unless_they_are_small() {
        let gain = |change, place, percent: u64| JobGain {
            change,
            place,
            duration_ns: (100 - percent) * SECOND / 10,
            gain_ns: percent * SECOND / 10,
            gain_percent: percent as f64,
        };
        let gains = JobGains {
            gains: vec![
                gain(JobChange::FasterRegion, Some(place()), 30),
                gain(JobChange::BalancedRanks, None, 18),
                gain(JobChange::IdealNetwork, None, 0),
            ],
            unknown: Vec::new(),
        };
        let words = "the job would take 7.00 s (-30 %) if for at solve.c:41 is twice as fast, 8.20 s (-18 %) with balanced ranks";
        assert_eq!(job_gain_line(&gains, 9).as_deref(), Some(words));
        assert_eq!(job_gain_line(&JobGains::default(), 9), None);
    }
}
