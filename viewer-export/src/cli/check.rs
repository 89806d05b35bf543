//! `omptrace check`: whether traces are sound.

use std::io::{self, Write};

use omptrace_trace_format::Severity;
use omptrace_viewer_export::check;

use crate::cli::arguments::Check;
use crate::cli::failure::{Failure, Outcome, Result};
use crate::cli::inputs;

/// Checks one trace after the other. One that cannot be read does not keep the others from being checked.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Check) -> Result<Outcome> {
    let traces = inputs::traces(&arguments.inputs)?;
    let mut stdout = io::stdout().lock();
    let mut outcome = Outcome::Success;
    let mut unreadable = 0;
    for trace in &traces {
        let reader = match inputs::open(trace) {
            Ok(reader) => reader,
            Err(failure) => {
                failure.tell();
                unreadable += 1;
                continue;
            }
        };
        let findings = check(&reader);
        for finding in &findings {
            writeln!(stdout, "{}: {finding}", trace.display())?;
        }
        if findings
            .iter()
            .any(|finding| finding.severity > Severity::Note)
        {
            outcome = Outcome::Findings;
        } else {
            writeln!(stdout, "{}: sound", trace.display())?;
        }
    }
    if unreadable > 0 {
        return Err(Failure::new(format!(
            "{unreadable} of {} inputs cannot be read",
            traces.len()
        )));
    }
    Ok(outcome)
}
