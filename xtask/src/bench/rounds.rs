//! Rounds: every tool once per round, so that whatever slows the machine down slows all of them down.
//!
//! The first round warms up and does not count. Each round begins with another tool: what runs first, or after a
//! certain other tool, is not always the same.

use std::collections::BTreeMap;

use crate::result::Result;

use super::case::Case;
use super::report::ToolReport;
use super::runs::{self, Sample};
use super::spread::{Spread, median};
use super::tools::{EMPTY, Tool, Tools};

/// The samples of each tool, in the order of rounds.
type Samples = BTreeMap<&'static str, Vec<Sample>>;

/// Runs the case `rounds` times under each tool, and once more before; returns the samples of each tool, in their order.
///
/// # Errors
/// A run failed.
pub(super) fn run(case: &Case<'_>, tools: &Tools, rounds: u32) -> Result<Vec<ToolReport>> {
    let mut all = Samples::new();
    let mut order: Vec<&Tool> = tools.iter().collect();
    for round in 0..=rounds {
        for tool in &order {
            let sample = runs::measure(case, tool)?;
            if round > 0 {
                all.entry(tool.name).or_default().push(sample);
            }
        }
        order.rotate_left(1);
    }
    let samples = |tool: &str| all.get(tool).map_or(&[][..], Vec::as_slice);
    Ok(tools.iter().map(|tool| compare(tool.name, samples(tool.name), samples(EMPTY), case.events)).collect())
}

/// The tool's times and memory, each compared with the empty tool's of the same round.
fn compare(tool: &'static str, samples: &[Sample], empty: &[Sample], events: u64) -> ToolReport {
    let above_empty = |of: fn(&Sample) -> f64| {
        let pairs = samples.iter().zip(empty);
        Spread::of(pairs.map(|(sample, empty)| (of(sample) - of(empty)) / events as f64))
    };
    let percent = |of: fn(&Sample) -> f64| {
        let pairs = samples.iter().zip(empty);
        Spread::of(pairs.map(|(sample, empty)| (of(sample) / of(empty) - 1.0) * 100.0))
    };
    let typical = |of: fn(&Sample) -> f64| median(samples.iter().map(of));
    ToolReport {
        tool,
        thread_ns_per_event: above_empty(|sample| sample.threads_ns),
        process_ns_per_event: above_empty(|sample| sample.process_ns),
        thread_percent: percent(|sample| sample.threads_ns),
        wall_percent: percent(|sample| sample.wall_ns),
        wall_ms: typical(|sample| sample.wall_ns / 1e6),
        start_ms: typical(|sample| sample.start_ns / 1e6),
        exit_ms: typical(|sample| sample.exit_ns / 1e6),
        peak_kib: typical(|sample| sample.peak_kib),
        instructions: None,
        bytes_per_event: None,
    }
}
