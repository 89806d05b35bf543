//! The selected part of traces, from the options of `convert`, `view` and `stats`.

use std::collections::BTreeSet;

use omptrace_timeline::filter::{Selection, threads};
use omptrace_trace_format::Reader;

use crate::input::checkpoint_hint::hint_at_checkpoints;
use crate::options::shared::Part;
use crate::output::failure::{Failure, Result};

/// The selected part of the timeline.
///
/// # Errors
/// No thread has a selected name.
pub(crate) fn selection(part: &Part, readers: &[Reader]) -> Result<Selection> {
    let all: Vec<&Reader> = readers.iter().collect();
    check_threads(&part.threads, &all)?;
    hint_at_checkpoints(part.window, &all);
    Ok(Selection {
        arguments: part.arguments,
        window: part.window,
        threads: part.threads.clone(),
        min_duration_ns: part.min_duration.unwrap_or(0),
        extra_tracks: Vec::new(),
    })
}

/// Checks that the selected threads exist.
///
/// # Errors
/// No thread has a selected name.
pub(crate) fn check_threads(wanted: &[String], readers: &[&Reader]) -> Result<()> {
    for wanted in wanted {
        let mut known = readers.iter().copied().flat_map(threads);
        if !known.any(|thread| thread.is_meant_by(wanted)) {
            let known = readers.iter().copied().flat_map(threads);
            let names: BTreeSet<String> = known.map(|thread| thread.name).collect();
            let names: Vec<String> = names.into_iter().collect();
            return Err(Failure::new(format!("no thread named {wanted}"))
                .hint(format!("threads: {}", names.join(", "))));
        }
    }
    Ok(())
}
