//! A comparison as text and tables.

use std::fmt;

use omptrace_analysis::answers::FunctionName;
use omptrace_analysis::answers::Place;
use omptrace_analysis::compare::FunctionPair;
use omptrace_analysis::compare::{Diff, Side};
use omptrace_analysis::compare::{Metric, RegionPair, Row};

use super::overview::percents;
use super::table::{Column, Layout, Table, column, counted, time, write_more, write_wrapped};
use super::useful::growth_words;

const COLUMNS: [Column; 4] =
    [column("before", 1), column("after", 1), column("change", 0), column("95 % interval", 2)];

/// Number of single time steps that are shown, unless all are requested.
const MAX_STEPS: usize = 5;

/// If no difference is significant, those with at most this chance, each on its own, are shown.
const MAX_LIKELY: f64 = 0.01;

/// Which parts of a comparison are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Shows also rows that do not differ.
    pub all: bool,
}

/// The comparison as text and tables in this layout.
pub fn diff_text(diff: &Diff, layout: Layout, shown: Shown) -> impl fmt::Display {
    Text { diff, layout, shown }
}

struct Text<'a> {
    diff: &'a Diff,
    layout: Layout,
    shown: Shown,
}

fn side_words(side: &Side) -> String {
    /// The first ones show whether the right runs are compared.
    const MAX_PROGRAMS: usize = 3;
    let programs: Vec<&str> = side.programs.iter().map(String::as_str).take(MAX_PROGRAMS).collect();
    let more = if side.programs.len() > MAX_PROGRAMS { ", ..." } else { "" };
    let of = if programs.is_empty() { "" } else { " of " };
    format!(
        "{}{of}{}{more} on {}, {}{}",
        counted(side.runs.len() as u64, "run"),
        programs.join(", "),
        counted(side.threads.into(), "thread"),
        time(side.duration_ns),
        if side.runs.len() > 1 { " on average" } else { "" }
    )
}

/// The region's place, and its new place if it moved.
fn region_words(pair: &RegionPair) -> String {
    match (&pair.before, &pair.after) {
        (Some(before), Some(after)) if before.long() == after.long() => after.long(),
        (Some(before), Some(after)) => format!("{} -> {}", before.long(), after.short()),
        (Some(before), None) => format!("{} (before only)", before.long()),
        (None, Some(after)) => format!("{} (after only)", after.long()),
        (None, None) => Place::default().long(),
    }
}

/// The function's name, and its module after if that has another name.
fn function_words(pair: &FunctionPair) -> String {
    let module = |name: &FunctionName| name.module.rsplit('/').next().map(str::to_owned);
    match (&pair.before, &pair.after) {
        (Some(before), Some(after)) if module(before) == module(after) => after.function.clone(),
        (Some(before), Some(after)) => format!(
            "{} ({} -> {})",
            after.function,
            module(before).unwrap_or_default(),
            module(after).unwrap_or_default()
        ),
        (Some(before), None) => format!("{} (before only)", before.function),
        (None, Some(after)) => format!("{} (after only)", after.function),
        (None, None) => String::new(),
    }
}

/// The region or function that the row is about; `None` for the whole run.
pub fn row_subject(row: &Row) -> Option<String> {
    let region = row.region.as_ref().map(region_words);
    let steps = row.steps.as_ref().map(|steps| format!("time steps ({})", steps.name));
    region.or_else(|| row.function.as_ref().map(function_words)).or(steps)
}

/// The name of the row's metric, in words.
pub fn row_label(row: &Row) -> String {
    match row.steps.as_ref().and_then(|steps| steps.first.zip(steps.last)) {
        Some((first, last)) if first == last => format!("step {first}"),
        Some((first, last)) => format!("steps {first} to {last}"),
        None => row.metric.title(),
    }
}

/// A value of a metric: a time, or a percentage.
fn number(metric: Metric, value: f64) -> String {
    match metric {
        Metric::StepDrift if value < 0.0 => format!("-{}", time(-value.round() as u64)),
        metric if metric.is_time() => time(value.max(0.0).round() as u64),
        _ => percents(value),
    }
}

/// A difference: relative to the value before, or in percentage points.
fn relative_change(row: &Row, difference: f64) -> Option<f64> {
    if !row.metric.is_time() {
        return Some(difference);
    }
    (row.before.mean > 0.0).then(|| difference / row.before.mean)
}

fn row_cells(row: &Row) -> [String; 4] {
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let sign = if row.metric.is_time() { "%" } else { "points" };
    let change = relative_change(row, row.difference);
    let interval = row.interval.and_then(|[low, high]| {
        let (low, high) = (relative_change(row, low)?, relative_change(row, high)?);
        Some(format!("{} to {}", percent(low), percent(high)))
    });
    [
        number(row.metric, row.before.mean),
        number(row.metric, row.after.mean),
        change.map_or_else(|| "new".to_owned(), |change| format!("{} {sign}", percent(change))),
        interval.unwrap_or_default(),
    ]
}

/// The number of runs on a busy machine, in words; `None` if there are none.
pub(crate) fn busy_words(busy: usize, runs: usize) -> Option<String> {
    (busy > 0).then(|| {
        format!(
            "note: in {busy} of {}, other programs or threads used the CPUs, so times vary and efficiencies are too low; repeat the runs on an idle machine",
            counted(runs as u64, "run")
        )
    })
}

/// The chance below which a difference is likely: its 95 % confidence interval does not contain zero.
const EXCLUDES_ZERO: f64 = 0.05;

/// A remark on the row of a number of the whole run that differs, but not by more than chance can explain.
pub(crate) fn doubt_words(diff: &Diff, row: &Row) -> Option<&'static str> {
    let is_doubtful = diff.is_noise_known && row.is_headline() && row.is_large && !row.is_different;
    is_doubtful.then_some(match row.chance {
        Some(..EXCLUDES_ZERO) => "likely, but not certain yet: record more runs",
        _ => "not certain yet: record more runs",
    })
}

/// How the duration changed, as a sentence.
pub(crate) fn duration_words(diff: &Diff) -> Option<String> {
    let row = diff.rows.iter().find(|row| row.is_headline() && row.metric == Metric::Duration)?;
    let [before, after, change, _] = row_cells(row);
    let doubt = doubt_words(diff, row).map_or_else(String::new, |doubt| format!("; {doubt}"));
    Some(format!("The duration changed from {before} to {after} ({change}{doubt})."))
}

/// Whether a difference is large enough, and chance seldom causes it, although it is not significant.
fn is_likely(row: &Row) -> bool {
    row.is_large && row.chance.is_some_and(|chance| chance < MAX_LIKELY)
}

impl Text<'_> {
    fn is_shown(&self, row: &Row) -> bool {
        if self.shown.all || row.is_headline() {
            return true;
        }
        match (self.diff.is_noise_known, self.diff.is_different) {
            (false, _) => row.is_large,
            (true, true) => row.is_different,
            (true, false) => is_likely(row),
        }
    }

    fn verdict(&self) -> String {
        let diff = self.diff;
        let different = diff.rows.iter().filter(|row| row.is_different).count() as u64;
        if !diff.is_noise_known {
            return "a single run does not show how much runs of the same program vary; compare at least three runs per set"
                .to_owned();
        }
        if different > 0 {
            return counted(different, "significant difference");
        }
        let likely = diff.rows.iter().filter(|row| is_likely(row)).count() as u64;
        if likely > 0 {
            return format!(
                "no difference is certain with so few runs, but chance alone would seldom cause {likely} of the differences below; to be certain, record more runs"
            );
        }
        let smallest = diff.smallest_ns.filter(|ns| ns.is_finite());
        let smallest = smallest.map(|ns| ns / diff.before.duration_ns.max(1) as f64);
        match smallest {
            Some(share) if share < 10.0 => {
                format!(
                    "no significant difference; with these runs, only a saving of at least {} of the wall time would be detected",
                    percents(share)
                )
            }
            _ => "no significant difference; with so few runs, only very large changes would be detected"
                .to_owned(),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text { diff, layout, .. } = self;
        let mut lines = vec![
            format!("before: {}", side_words(&diff.before)),
            format!("after: {}", side_words(&diff.after)),
        ];
        let runs = diff.before.runs.len() + diff.after.runs.len();
        lines.extend(busy_words(diff.before.busy_runs + diff.after.busy_runs, runs));
        if diff.before.threads != diff.after.threads {
            lines
                .push("the numbers of threads differ; to compare such runs, use omptrace scaling".to_owned());
        }
        lines.push(self.verdict());
        if let Some(growth) = &diff.useful_growth {
            lines.push(format!("useful time of all threads {}", growth_words(growth)));
        }
        lines.extend(diff.steps_note.clone());
        let is_step = |row: &Row| row.metric == Metric::Step;
        let steps = diff.rows.iter().filter(|row| is_step(row) && self.is_shown(row)).count();
        if steps > MAX_STEPS && !self.shown.all {
            lines.push(format!("{steps} time steps differ; the {MAX_STEPS} that differ most are shown"));
        }
        let mut table = Table::new("mean of the runs", &COLUMNS);
        let mut subject: Option<String> = None;
        let mut rows = 0;
        let mut steps = 0;
        for row in diff.rows.iter().filter(|row| self.is_shown(row)) {
            steps += usize::from(is_step(row));
            if is_step(row) && steps > MAX_STEPS && !self.shown.all {
                continue;
            }
            if rows >= layout.top.unwrap_or(usize::MAX) {
                rows += 1;
                continue;
            }
            if row.function.is_some() {
                let name = row_subject(row).unwrap_or_default();
                table.row(name, row_cells(row));
                rows += 1;
                continue;
            }
            if row_subject(row) != subject {
                subject = row_subject(row);
                let name = subject.clone().unwrap_or_default();
                table.row(name, [(); 4].map(|()| String::new()));
            }
            let indent = if subject.is_some() { "  " } else { "" };
            let doubt = doubt_words(diff, row).map(str::to_owned);
            table.row_above(format!("{indent}{}", row_label(row)), row_cells(row), doubt);
            rows += 1;
        }
        for line in lines {
            write_wrapped(f, &line, 0, layout)?;
        }
        if !table.is_empty() {
            let all = Layout { top: None, ..*layout };
            writeln!(f)?;
            table.write(f, &all)?;
            write_more(f, rows, layout.top, "difference")?;
        }
        if !diff.failed.is_empty() {
            writeln!(f)?;
        }
        for unmet in &diff.failed {
            let change = unmet.change.map(|change| format!("{:+.1} %", change * 100.0));
            let change = change.unwrap_or_else(|| "unknown in at least one run".to_owned());
            write_wrapped(f, &format!("failed: {}: {change}", unmet.condition), 0, layout)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::{Accounting, Answers, Cause, RegionAnswer};
    use omptrace_analysis::compare::{Options, Run};

    use super::*;

    /// Five runs of four threads through two regions that begin at `line`, with this imbalance in the second one, in
    /// milliseconds per thread. The runs differ by up to 2 ms.
    fn runs(line: u32, imbalance: u64) -> Vec<Run> {
        let run = |extra: u64| {
            let mut answers = Answers { threads: 4, ..Answers::default() };
            for (region, imbalance) in [(0, 150), (1, imbalance)] {
                let mut accounting = Accounting::default();
                accounting.add(Cause::Useful, 4 * (800 + extra) * 1_000_000);
                accounting.add(Cause::Imbalance, 4 * (imbalance + extra) * 1_000_000);
                let duration_ns = accounting.total() / 4;
                answers.duration_ns += duration_ns;
                answers.accounting.merge(&accounting);
                let place = Place::at("!$omp parallel", Some("a.c"), Some(line + 10 * region), Some("main"));
                let region =
                    RegionAnswer { place, visits: 1, duration_ns, accounting, ..RegionAnswer::default() };
                answers.regions.push(region);
            }
            answers.efficiency.parallel = answers.accounting.share(Cause::Useful);
            Run { name: "run".to_owned(), answers, processes: 1, ..Run::default() }
        };
        [0, 2, 1, 0, 2].map(run).into()
    }

    #[test]
    fn differences_are_shown_in_80_columns() {
        let (before, after) = (runs(40, 150), runs(52, 450));
        let options =
            Options { conditions: vec!["duration>3%".parse().expect("a condition")], ..Options::default() };
        let layout = Layout { width: Some(80), ..Layout::default() };
        let text = |before: &[Run], after: &[Run], options: &Options| {
            diff_text(&Diff::of(before, after, options), layout, Shown::default()).to_string()
        };
        assert_eq!(
            text(&before, &after, &options),
            "\
before: 5 runs on 4 threads, 1.90 s on average
after: 5 runs on 4 threads, 2.20 s on average
5 significant differences

mean of the runs            before   after        change     95 % interval
duration                    1.90 s  2.20 s       +15.8 %    +15.4 to +16.1
parallel efficiency         84.1 %  72.7 %  -11.5 points    -11.5 to -11.4
load imbalance              302 ms  602 ms       +99.3 %   +97.7 to +101.0
parallel @a.c:50 -> a.c:62
  duration                  952 ms  1.25 s       +31.5 %    +31.2 to +31.9
  load imbalance            151 ms  451 ms      +198.7 %  +196.3 to +201.1

failed: duration>3%: +15.8 %
"
        );
        let changed = duration_words(&Diff::of(&before, &after, &options)).expect("a duration");
        assert_eq!(changed, "The duration changed from 1.90 s to 2.20 s (+15.8 %).");
        let same = text(&before, &before, &Options::default()).replace('\n', " ");
        let words = "no significant difference; with these runs, only a saving of at least 2.0 % of the wall time would be detected ";
        assert!(same.contains(words), "{same}");
        let likely = text(&before[..2], &runs(52, 215)[..2], &Options::default());
        assert!(likely.contains("no difference is certain with so few runs"), "{likely}");
        assert!(likely.contains("\nduration  "), "{likely}");
        assert!(
            likely.contains("\n  likely, but not certain yet: record more runs\nparallel efficiency  "),
            "{likely}"
        );
        let same = text(&before, &before, &Options::default());
        assert!(same.contains("\nduration             1.90 s  1.90 s       +0.0 %"), "{same}");
        let single = text(&before[..1], &after[..1], &Options::default());
        assert!(
            single.contains("a single run does not show how much runs of the same program vary"),
            "{single}"
        );
        assert!(single.contains("\n  load imbalance "), "{single}");
        assert!(single.lines().all(|line| line.len() <= 80), "{single}");
    }
}
