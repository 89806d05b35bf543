//! `omptrace recover`: completes the traces that `record` did not.

use omptrace_trace_format::InDoubt;
use serde_json::json;

use crate::arguments::Recover;
use crate::failure::{Failure, Outcome, Result};
use crate::inputs;
use crate::sealing::{self, Job};

/// Completes every input, and says what each holds.
///
/// # Errors
/// None of the inputs could be completed.
pub(crate) fn run(arguments: &Recover) -> Result<Outcome> {
    let jobs = inputs::traces(&arguments.inputs)?
        .into_iter()
        .map(|trace| Job {
            trace,
            additions: json!({}),
            symbols: None,
            in_doubt: match arguments.force {
                true => InDoubt::Seal,
                false => InDoubt::Refuse,
            },
        })
        .collect();
    let done = sealing::seal_all(jobs);
    sealing::report(&done);
    if done.iter().any(|done| done.result.is_err()) {
        return Err(Failure::new("not every trace could be completed"));
    }
    Ok(Outcome::Success)
}
