//! The critical path of each process, as its steps.

use std::sync::Arc;

use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::filter::ExtraInterval;
use omptrace_timeline::{Manner, replay_with};
use omptrace_trace_format::Reader;

use crate::states::collector::Collector;

/// The steps of each process's critical path, on the timeline's clock, for views that draw the path. If all paths
/// together have more than eight million steps, each path keeps only its last steps.
pub fn critical_paths(inputs: &[&Reader], symbols: &symbols::Options) -> Vec<Arc<[ExtraInterval]>> {
    let mut collector = Collector::drawing(inputs.len().max(1));
    let table = |reader: &Reader| Table::of(reader, symbols);
    replay_with(inputs, &table, Manner::default(), &mut collector, &mut |_| {});
    collector.paths()
}
