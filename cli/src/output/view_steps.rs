//! The time steps of a program as rows of a viewer, above its threads.
//!
//! ```text
//! time steps  |step 1|step 2|step 3: 2.1 x the median|step 4|
//! main        |..............................................
//! ```

use omptrace_analysis::{Step, Steps};
use omptrace_timeline::filter::{ExtraInterval, ExtraTrack};
use omptrace_timeline::model::{Category, Ns, ProcessId};

/// The name of the first row.
const TIME_STEPS: &str = "time steps";

/// Maximum number of rows: steps of several threads overlap. Steps that do not fit are left out.
const MAX_ROWS: usize = 16;

/// The rows of the steps in `window`; empty if the program has no steps. Steps in one row do not overlap.
pub(crate) fn rows(steps: Option<&Steps>, window: (Ns, Ns)) -> Vec<ExtraTrack> {
    let Some(steps) = steps else { return Vec::new() };
    let mut rows: Vec<Vec<ExtraInterval>> = Vec::new();
    for ((begin, end), number) in steps.instances.iter().copied().zip(1..) {
        if end <= window.0 || window.1 <= begin {
            continue;
        }
        let (begin, end) = (begin.max(window.0), end.min(window.1));
        let ends = |row: &Vec<ExtraInterval>| row.last().map_or(Ns::MIN, |last| last.end);
        let row = match rows.iter().position(|row| ends(row) <= begin) {
            Some(free) => free,
            None if rows.len() < MAX_ROWS => {
                rows.push(Vec::new());
                rows.len() - 1
            }
            None => continue,
        };
        let name = name(steps, number).into();
        rows[row].push(ExtraInterval { name, thread: None, location: None, begin, end });
    }
    let row_name = |number: usize| match number {
        0 => TIME_STEPS.to_owned(),
        more => format!("{TIME_STEPS} {}", more + 1),
    };
    let tracks = rows.into_iter().enumerate().map(|(number, intervals)| ExtraTrack {
        process: ProcessId(0),
        name: row_name(number),
        category: Category::User,
        intervals: intervals.into(),
        arrows: None,
    });
    tracks.collect()
}

/// The label of a step; that of one of the worst steps says why.
fn name(steps: &Steps, number: u64) -> String {
    match steps.worst.iter().find(|step| step.number == number) {
        Some(step) => format!("step {number}: {}", excess(steps, step)),
        None => format!("step {number}"),
    }
}

/// How long a step takes compared with the median, and why.
fn excess(steps: &Steps, step: &Step) -> String {
    let times = format!("{:.1} x the median", steps.medians(step));
    step.why().map_or(times.clone(), |why| format!("{times}, {why}"))
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::Cause;

    use super::*;

    fn steps(instances: &[(Ns, Ns)]) -> Steps {
        let worst = Step {
            number: 2,
            duration_ns: 31,
            cause: Some(Cause::Imbalance),
            share: Some(0.92),
            ..Step::default()
        };
        Steps { median_ns: 10, worst: vec![worst], instances: instances.to_vec(), ..Steps::default() }
    }

    /// A row, and its steps.
    type Row = (String, Vec<(String, Ns, Ns)>);

    fn shown(instances: &[(Ns, Ns)], window: (Ns, Ns)) -> Vec<Row> {
        let tracks = rows(Some(&steps(instances)), window).into_iter();
        let of = |track: ExtraTrack| {
            let intervals = track.intervals.iter();
            let intervals = intervals.map(|step| (step.name.to_string(), step.begin, step.end));
            (track.name.clone(), intervals.collect())
        };
        tracks.map(of).collect()
    }

    #[test]
    fn steps_are_a_row_and_the_worst_say_why() {
        let all = shown(&[(0, 10), (10, 41), (41, 50)], (0, 100));
        let expected = [
            ("step 1".to_owned(), 0, 10),
            (
                "step 2: 3.1 x the median, 92 % of the time above the mean is load imbalance".to_owned(),
                10,
                41,
            ),
            ("step 3".to_owned(), 41, 50),
        ];
        assert_eq!(all, [("time steps".to_owned(), expected.to_vec())]);
        assert_eq!(rows(None, (0, 100)), []);
    }

    #[test]
    fn steps_that_overlap_have_rows_of_their_own() {
        let all = shown(&[(0, 10), (0, 12), (10, 20)], (0, 100));
        let names: Vec<(&str, usize)> = all.iter().map(|(name, steps)| (&**name, steps.len())).collect();
        assert_eq!(names, [("time steps", 2), ("time steps 2", 1)]);
    }

    #[test]
    fn only_what_is_in_the_window_shows() {
        let all = shown(&[(0, 10), (10, 41), (41, 50)], (35, 45));
        let times: Vec<(Ns, Ns)> = all[0].1.iter().map(|(_, begin, end)| (*begin, *end)).collect();
        assert_eq!(times, [(35, 41), (41, 45)]);
    }
}
