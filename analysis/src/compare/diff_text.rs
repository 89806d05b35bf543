//! A comparison as text and tables.

use std::fmt;

use crate::compare::diff::{Diff, Side};
use crate::compare::functions::FunctionPair;
use crate::compare::metric::{Metric, RegionPair, Row};
use crate::model::answers::FunctionName;
use crate::model::place::Place;
use crate::text::answers::percents;
use crate::text::table::{Column, Layout, Table, column, counted, time, write_more, write_wrapped};

const COLUMNS: [Column; 4] =
    [column("before", 1), column("after", 1), column("change", 0), column("95 % interval", 2)];

/// Number of single time steps that are shown, unless all are requested.
const MAX_STEPS: usize = 5;

/// Which parts of a comparison are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Shows also rows that do not differ.
    pub all: bool,
}

impl Diff {
    /// The comparison as text and tables in this layout.
    pub fn text(&self, layout: Layout, shown: Shown) -> impl fmt::Display {
        Text { diff: self, layout, shown }
    }
}

struct Text<'a> {
    diff: &'a Diff,
    layout: Layout,
    shown: Shown,
}

impl Side {
    fn words(&self) -> String {
        /// The first ones show whether the right runs are compared.
        const MAX_PROGRAMS: usize = 3;
        let programs: Vec<&str> = self.programs.iter().map(String::as_str).take(MAX_PROGRAMS).collect();
        let more = if self.programs.len() > MAX_PROGRAMS { ", ..." } else { "" };
        let of = if programs.is_empty() { "" } else { " of " };
        format!(
            "{}{of}{}{more} on {}, {} on average",
            counted(self.runs.len() as u64, "run"),
            programs.join(", "),
            counted(self.threads.into(), "thread"),
            time(self.duration_ns)
        )
    }
}

impl RegionPair {
    /// The region's place, and its new place if it moved.
    fn words(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.long() == after.long() => after.long(),
            (Some(before), Some(after)) => format!("{} -> {}", before.long(), after.short()),
            (Some(before), None) => format!("{} (before only)", before.long()),
            (None, Some(after)) => format!("{} (after only)", after.long()),
            (None, None) => Place::default().long(),
        }
    }
}

impl FunctionPair {
    /// The function's name, and its module after if that has another name.
    fn words(&self) -> String {
        let module = |name: &FunctionName| name.module.rsplit('/').next().map(str::to_owned);
        match (&self.before, &self.after) {
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
}

impl Row {
    /// The region or function that the row is about; `None` for the whole run.
    pub fn subject(&self) -> Option<String> {
        let region = self.region.as_ref().map(RegionPair::words);
        let steps = self.steps.as_ref().map(|steps| format!("time steps ({})", steps.name));
        region.or_else(|| self.function.as_ref().map(FunctionPair::words)).or(steps)
    }

    /// The name of the row's metric, in words.
    pub fn label(&self) -> String {
        match self.steps.as_ref().and_then(|steps| steps.first.zip(steps.last)) {
            Some((first, last)) if first == last => format!("step {first}"),
            Some((first, last)) => format!("steps {first} to {last}"),
            None => self.metric.title(),
        }
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

impl Row {
    /// A difference: relative to the value before, or in percentage points.
    fn change(&self, difference: f64) -> Option<f64> {
        if !self.metric.is_time() {
            return Some(difference);
        }
        (self.before.mean > 0.0).then(|| difference / self.before.mean)
    }

    fn cells(&self) -> [String; 4] {
        let percent = |share: f64| format!("{:+.1}", share * 100.0);
        let sign = if self.metric.is_time() { "%" } else { "points" };
        let change = self.change(self.difference);
        let interval = self.interval.and_then(|[low, high]| {
            let (low, high) = (self.change(low)?, self.change(high)?);
            Some(format!("{} to {}", percent(low), percent(high)))
        });
        [
            number(self.metric, self.before.mean),
            number(self.metric, self.after.mean),
            change.map_or_else(|| "new".to_owned(), |change| format!("{} {sign}", percent(change))),
            interval.unwrap_or_default(),
        ]
    }
}

impl Text<'_> {
    fn is_shown(&self, row: &Row) -> bool {
        if self.shown.all {
            return true;
        }
        if self.diff.is_noise_known { row.is_different } else { row.is_large }
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
        let smallest = diff.smallest_ns.filter(|ns| ns.is_finite());
        let smallest = smallest.map(|ns| ns / diff.before.duration_ns.max(1) as f64);
        match smallest {
            Some(share) if share < 10.0 => {
                format!(
                    "no significant difference; the smallest detectable change in duration is {}",
                    percents(share)
                )
            }
            _ => "no significant difference; with so few runs, only a much larger change would be detected"
                .to_owned(),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text { diff, layout, .. } = self;
        let mut lines =
            vec![format!("before: {}", diff.before.words()), format!("after: {}", diff.after.words())];
        if diff.before.threads != diff.after.threads {
            lines
                .push("the numbers of threads differ; to compare such runs, use omptrace scaling".to_owned());
        }
        lines.push(self.verdict());
        if let Some(growth) = &diff.useful_growth {
            lines.push(format!("useful time of all threads {}", growth.words()));
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
                let name = row.subject().unwrap_or_default();
                table.row(name, row.cells());
                rows += 1;
                continue;
            }
            if row.subject() != subject {
                subject = row.subject();
                let name = subject.clone().unwrap_or_default();
                table.row(name, [(); 4].map(|()| String::new()));
            }
            let indent = if subject.is_some() { "  " } else { "" };
            table.row(format!("{indent}{}", row.label()), row.cells());
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
