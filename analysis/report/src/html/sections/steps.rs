//! The time steps beside each other: a column for each, or for some that follow each other.
//!
//! ```text
//!           |            columns: from 0 to the median of the column's steps, divided by cause; a line on to the longest of them
//!   - - - - # - - - -    the median of all steps
//!   # # # # # # # #      the worst steps have an outline
//! ```
//!
//! The page's script shows the words of a column where the pointer is on it, or a slider below is moved to it.

use omptrace_analysis::answers::StepTime;
use omptrace_analysis::{Step, StepBin, Steps};

use super::*;

/// The size of the drawing, which the page stretches.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// A column's part of its place.
const COLUMN: f64 = 0.88;
/// A smaller share of a column is neither seen nor said.
const SEEN: f64 = 0.005;

/// A step that takes so many times what 95 % of the steps do not exceed would leave no height to the others.
const OUTLIER: u64 = 5;

/// The time steps, where the program has any.
pub(crate) fn steps(out: &mut String, report: &Report<'_>) {
    let Some(steps) = report.stats.steps.as_ref().filter(|steps| !steps.bins.is_empty()) else { return };
    section(out, "steps", "Time steps", &Text(&lead(steps)).to_string());
    let top = match steps.longest_ns > steps.p95_ns.saturating_mul(OUTLIER) {
        true => steps.p95_ns * 2,
        false => steps.longest_ns,
    };
    let top = top.max(1);
    let causes = &report.overview.steps[..];
    let threads = report.stats.answers.threads;
    let _ = write!(
        out,
        "<figure><figcaption>Duration of each step, from 0 to {}.{} Dashed: the median. Outlined: the {}.{}{}</figcaption>",
        Text(&time(top)),
        match causes.is_empty() {
            true => "",
            false => " Each column shows how the threads\u{2019} time is divided among the causes.",
        },
        match steps.worst.len() {
            1 => "longest step".to_owned(),
            worst => format!("{worst} longest steps"),
        },
        match steps.steps_per_bin {
            0 | 1 => String::new(),
            many => format!(
                " Each column shows the median duration of {many} steps, and a line that ends at the duration of the longest of these steps."
            ),
        },
        if top < steps.longest_ns {
            " The longest steps exceed this range, and their columns are cut off."
        } else {
            ""
        }
    );
    if !causes.is_empty() {
        key(out, causes, threads);
    }
    let _ = write!(
        out,
        "<svg id=steps-chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        Text(&lead(steps))
    );
    let wide = WIDTH / steps.bins.len() as f64;
    let column = |index: usize, ns: u64| {
        let height = ns.min(top) as f64 * HEIGHT / top as f64;
        format!("M{:.1} {HEIGHT}v-{height:.1}h{:.1}V{HEIGHT}z", index as f64 * wide, wide * COLUMN)
    };
    if steps.steps_per_bin > 1 {
        let line = |(index, bin): (usize, &StepBin)| {
            let y = |ns: u64| HEIGHT - ns.min(top) as f64 * HEIGHT / top as f64;
            let middle = (index as f64 + COLUMN / 2.0) * wide;
            format!("M{middle:.1} {:.1}V{:.1}", y(bin.median_ns), y(bin.longest_ns))
        };
        let lines: String = steps.bins.iter().enumerate().map(line).collect();
        let _ = write!(out, "<path class=longest d=\"{lines}\"/>");
    }
    match causes.is_empty() {
        true => {
            let bins = steps.bins.iter().enumerate();
            let medians: String = bins.map(|(index, bin)| column(index, bin.median_ns)).collect();
            let _ = write!(out, "<path d=\"{medians}\"/>");
        }
        false => stacks(out, steps, (causes, threads), top),
    }
    let is_worst = |index: &usize| worst_in(steps, *index).next().is_some();
    let worst = (0..steps.bins.len()).filter(is_worst);
    let outlines: String = worst.map(|index| column(index, steps.bins[index].longest_ns)).collect();
    let _ = write!(out, "<path class=worst d=\"{outlines}\"/>");
    let median = HEIGHT - steps.median_ns.min(top) as f64 * HEIGHT / top as f64;
    let _ = write!(out, "<path class=level d=\"M0 {median:.1}H{WIDTH}\"/>");
    for index in 0..steps.bins.len() {
        let _ = write!(
            out,
            "<rect x={:.1} width={wide:.1} height={HEIGHT}><title>{}</title></rect>",
            index as f64 * wide,
            Text(&words(steps, (causes, threads), index))
        );
    }
    let _ = write!(
        out,
        "</svg><p class=ends><span>step 1</span><span>step {}</span></p></figure><label id=step-choice hidden>step \
         <input type=range min=0 max={} value=0></label><p id=step aria-live=polite></p></section>",
        with_commas(steps.count),
        steps.bins.len() - 1
    );
}

/// The key to the colours that columns have.
fn key(out: &mut String, causes: &[StepTime], threads: u32) {
    let has = |group: usize| {
        let mut columns = (0..causes.len()).filter_map(|index| shares(causes, threads, index));
        columns.any(|shares| shares[group] >= SEEN)
    };
    *out += "<ul class=legend aria-label=\"colours of time steps\">";
    for (_, group) in GROUPS.iter().enumerate().filter(|(number, _)| has(*number)) {
        let (meaning, label) = (Text(group.meaning), group.label);
        let _ = write!(out, "<li title=\"{meaning}\"><i class=c-{}></i>{label}</li>", group.key);
    }
    *out += "</ul>";
}

/// The share of each group in a column; none where nothing is known of its steps. Threads that are in none have nothing to do.
fn shares(causes: &[StepTime], threads: u32, index: usize) -> Option<[f64; GROUPS.len()]> {
    let column = causes.get(index)?;
    let mut sums = palette::sums(&column.accounting);
    let known = column.accounting.total();
    sums[palette::IDLE] += column.duration_ns.saturating_mul(threads.into()).saturating_sub(known);
    let total: f64 = sums.iter().map(|ns| *ns as f64).sum();
    (total > 0.0).then(|| sums.map(|ns| ns as f64 / total))
}

/// Columns up to the medians of their steps, divided by cause: a path for each group.
fn stacks(out: &mut String, steps: &Steps, (causes, threads): (&[StepTime], u32), top: u64) {
    let wide = WIDTH / steps.bins.len() as f64;
    let mut paths = GROUPS.each_ref().map(|_| String::new());
    let mut unknown = String::new();
    for (index, bin) in steps.bins.iter().enumerate() {
        let height = bin.median_ns.min(top) as f64 * HEIGHT / top as f64;
        let (left, across) = (index as f64 * wide, wide * COLUMN);
        let Some(shares) = shares(causes, threads, index) else {
            let _ = write!(unknown, "M{left:.1} {HEIGHT}v-{height:.1}h{across:.1}V{HEIGHT}z");
            continue;
        };
        let mut below = 0.0;
        for (path, share) in paths.iter_mut().zip(shares).filter(|(_, share)| *share > 0.0) {
            let (from, to) = (HEIGHT - below * height, HEIGHT - (below + share) * height);
            let _ = write!(path, "M{left:.1} {from:.1}V{to:.1}h{across:.1}V{from:.1}z");
            below += share;
        }
    }
    let groups = GROUPS.iter().map(|group| group.colour).zip(&paths);
    for (colour, path) in groups.filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path style=\"fill:{colour}\" d=\"{path}\"/>");
    }
    if !unknown.is_empty() {
        let _ = write!(out, "<path class=unknown d=\"{unknown}\"/>");
    }
}

/// What is to be said of all steps.
fn lead(steps: &Steps) -> String {
    let mut words = format!(
        "{} of {}: median {}, 95 % take at most {}, the longest takes {}.",
        counted(steps.count, "step"),
        short(&steps.name),
        time(steps.median_ns),
        time(steps.p95_ns),
        time(steps.longest_ns)
    );
    if let Some(ns) = steps.warm_up_ns {
        words += &format!(" The first takes {}.", time(ns));
    }
    if let Some(ns) = steps.drift_ns {
        let more = if ns < 0.0 { "less" } else { "more" };
        words +=
            &format!(" Each step takes {} {more} than the previous step.", time(ns.abs().round() as u64));
    }
    words
}

/// The numbers of the first and the last step of a column.
fn numbers(steps: &Steps, index: usize) -> (u64, u64) {
    let before = index as u64 * steps.steps_per_bin.max(1);
    (before + 1, (before + steps.steps_per_bin.max(1)).min(steps.count.max(before + 1)))
}

/// The worst steps that are in a column.
fn worst_in(steps: &Steps, index: usize) -> impl Iterator<Item = &Step> {
    let (first, last) = numbers(steps, index);
    steps.worst.iter().filter(move |step| (first..=last).contains(&step.number))
}

/// A column in words.
fn words(steps: &Steps, (causes, threads): (&[StepTime], u32), index: usize) -> String {
    let bin = steps.bins[index];
    let mut words = match numbers(steps, index) {
        (first, last) if first == last => format!("Step {first}: {}", time(bin.median_ns)),
        (first, last) => format!(
            "Steps {first} to {last}: median {}, longest {}",
            time(bin.median_ns),
            time(bin.longest_ns)
        ),
    };
    for step in worst_in(steps, index) {
        let times = steps.medians(step);
        words += &match steps.steps_per_bin {
            0 | 1 => format!(", {times:.1} times the median"),
            _ => format!("; step {} takes {times:.1} times the median", step.number),
        };
        if let (Some(cause), Some(share)) = (step.cause, step.share) {
            words += &format!("; {} of the time above the mean is {}", percent(share), cause.title());
        }
    }
    if let Some(shares) = shares(causes, threads, index) {
        let mut parts: Vec<_> = GROUPS.iter().zip(shares).filter(|(_, share)| *share >= SEEN).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts = parts.iter().map(|(group, share)| format!("{} {}", group.label, percent(*share)));
        words += &format!(". Thread time: {}", parts.collect::<Vec<_>>().join(", "));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(durations: &[(u64, u64)]) -> Vec<StepBin> {
        let bin =
            |(median_ns, longest_ns): &(u64, u64)| StepBin { median_ns: *median_ns, longest_ns: *longest_ns };
        durations.iter().map(bin).collect()
    }

    #[test]
    fn columns_say_what_their_steps_take() {
        let worst = Step {
            number: 2,
            duration_ns: 3_100,
            cause: Some(Cause::Imbalance),
            share: Some(0.92),
            ..Step::default()
        };
        let mut steps = Steps { count: 3, median_ns: 1_000, ..Steps::default() };
        (steps.steps_per_bin, steps.worst) = (1, vec![worst]);
        steps.bins = bins(&[(1_000, 1_000), (3_100, 3_100), (900, 900)]);
        assert_eq!(words(&steps, (&[], 2), 0), "Step 1: 1.00 us");
        assert_eq!(
            words(&steps, (&[], 2), 1),
            "Step 2: 3.10 us, 3.1 times the median; 92.0\u{a0}% of the time above the mean is load imbalance"
        );
        (steps.steps_per_bin, steps.bins) = (2, bins(&[(1_000, 3_100), (900, 900)]));
        assert!(
            words(&steps, (&[], 2), 0)
                .starts_with("Steps 1 to 2: median 1.00 us, longest 3.10 us; step 2 takes")
        );
        assert_eq!(words(&steps, (&[], 2), 1), "Step 3: 900 ns");
    }

    fn time_of(duration_ns: u64, causes: &[(Cause, u64)]) -> StepTime {
        let mut accounting = Accounting::default();
        causes.iter().for_each(|(cause, ns)| accounting.add(*cause, *ns));
        StepTime { accounting, duration_ns }
    }

    #[test]
    fn a_column_is_divided_by_the_causes_of_its_steps() {
        let steps = Steps {
            count: 2,
            median_ns: 1_000,
            steps_per_bin: 1,
            bins: bins(&[(1_000, 1_000), (500, 500)]),
            ..Steps::default()
        };
        let causes =
            [time_of(50, &[(Cause::Useful, 60), (Cause::Fork, 5), (Cause::Join, 15)]), StepTime::default()];
        assert_eq!(
            words(&steps, (&causes, 2), 0),
            "Step 1: 1.00 us. Thread time: useful work 60.0\u{a0}%, starts, joins, barriers 20.0\u{a0}%, nothing to do \
             20.0\u{a0}%"
        );
        assert_eq!(words(&steps, (&causes, 2), 1), "Step 2: 500 ns");
        let mut out = String::new();
        stacks(&mut out, &steps, (&causes, 2), 1_000);
        let expected = "<path style=\"fill:#0072b2\" d=\"M0.0 200.0V80.0h440.0V200.0z\"/>\
                        <path style=\"fill:#f0e442\" d=\"M0.0 80.0V40.0h440.0V80.0z\"/>\
                        <path style=\"fill:#c9ced6\" d=\"M0.0 40.0V0.0h440.0V40.0z\"/>\
                        <path class=unknown d=\"M500.0 200v-100.0h440.0V200z\"/>";
        assert_eq!(out, expected);
    }
}
