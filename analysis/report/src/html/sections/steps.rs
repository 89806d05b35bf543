//! The time steps beside each other: a column for each, or for some that follow each other.
//!
//! ```text
//!           #            columns: from 0 to the median of the column's steps, and on to the longest of them
//!   - - - - # - - - -    the median of all steps
//!   # # # # # # # #      the worst steps have another colour
//! ```
//!
//! The page's script shows the words of a column where the pointer is on it, or a slider below is moved to it.

use omptrace_analysis::{Step, StepBin, Steps};

use super::*;

/// The size of the drawing, which the page stretches.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;

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
    let _ = write!(
        out,
        "<figure><figcaption>Duration of each step, from 0 to {}. Dashed: the median. Orange: the {}.{}{}</figcaption>",
        Text(&time(top)),
        match steps.worst.len() {
            1 => "longest step".to_owned(),
            worst => format!("{worst} longest steps"),
        },
        match steps.steps_per_bin {
            0 | 1 => String::new(),
            many => format!(
                " Each column is {many} steps: dark up to their median, light up to the longest of them."
            ),
        },
        if top < steps.longest_ns { " Columns that are longer are cut." } else { "" }
    );
    let _ = write!(
        out,
        "<svg id=steps-chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        Text(&lead(steps))
    );
    let wide = WIDTH / steps.bins.len() as f64;
    let column = |index: usize, ns: u64| {
        let height = ns.min(top) as f64 * HEIGHT / top as f64;
        format!("M{:.1} {HEIGHT}v-{height:.1}h{:.1}V{HEIGHT}z", index as f64 * wide, wide * 0.88)
    };
    let is_worst = |index: usize| worst_in(steps, index).next().is_some();
    let columns = |is_shown: &dyn Fn(usize) -> bool, of: fn(&StepBin) -> u64| {
        let shown = steps.bins.iter().enumerate().filter(|(index, _)| is_shown(*index));
        shown.map(|(index, bin)| column(index, of(bin))).collect::<String>()
    };
    let _ = write!(
        out,
        "<path class=longest d=\"{}\"/><path class=worst d=\"{}\"/><path d=\"{}\"/>",
        columns(&|index| !is_worst(index), |bin| bin.longest_ns),
        columns(&is_worst, |bin| bin.longest_ns),
        columns(&|index| !is_worst(index) || steps.steps_per_bin > 1, |bin| bin.median_ns),
    );
    let median = HEIGHT - steps.median_ns.min(top) as f64 * HEIGHT / top as f64;
    let _ = write!(out, "<path class=level d=\"M0 {median:.1}H{WIDTH}\"/>");
    for index in 0..steps.bins.len() {
        let _ = write!(
            out,
            "<rect x={:.1} width={wide:.1} height={HEIGHT}><title>{}</title></rect>",
            index as f64 * wide,
            Text(&words(steps, index))
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
        words += &format!(" Each takes {} {more} than the one before.", time(ns.abs().round() as u64));
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
fn words(steps: &Steps, index: usize) -> String {
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
        let times = step.duration_ns as f64 / steps.median_ns.max(1) as f64;
        words += &match steps.steps_per_bin {
            0 | 1 => format!(", {times:.1} times the median"),
            _ => format!("; step {} takes {times:.1} times the median", step.number),
        };
        if let (Some(cause), Some(share)) = (step.cause, step.share) {
            words += &format!("; {} of the excess is {}", percent(share), cause.title());
        }
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
        assert_eq!(words(&steps, 0), "Step 1: 1.00 us");
        assert_eq!(
            words(&steps, 1),
            "Step 2: 3.10 us, 3.1 times the median; 92.0\u{a0}% of the excess is load imbalance"
        );
        (steps.steps_per_bin, steps.bins) = (2, bins(&[(1_000, 3_100), (900, 900)]));
        assert!(words(&steps, 0).starts_with("Steps 1 to 2: median 1.00 us, longest 3.10 us; step 2 takes"));
        assert_eq!(words(&steps, 1), "Step 3: 900 ns");
    }
}
