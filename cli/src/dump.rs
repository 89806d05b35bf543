//! `omptrace dump`: the raw facts.

use std::io;

use omptrace_trace_format::Severity;
use omptrace_viewer_export::{dump_json, dump_text};

use crate::arguments::Dump;
use crate::failure::{Outcome, Result};
use crate::inputs;
use crate::message;

/// Prints every event, then what was wrong with the trace.
///
/// # Errors
/// The trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Dump) -> Result<Outcome> {
    let reader = inputs::open(&arguments.input)?;
    let stdout = Box::new(io::stdout());
    let found = if arguments.json {
        dump_json(&reader, stdout)?
    } else {
        dump_text(&reader, stdout)?
    };
    for diagnostic in reader.diagnostics().iter().chain(&found) {
        if diagnostic.severity > Severity::Note {
            message::warning(&diagnostic.to_string());
        }
    }
    Ok(Outcome::Success)
}
