//! `omptrace dump`: the raw facts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use omptrace_trace_format::Severity;
use omptrace_viewer_export::{dump_json, dump_text};

use crate::input::inputs;
use crate::output::failure::{Outcome, Result};
use crate::output::json_output::{AnswerLines, AnswerOptions};
use crate::output::{message, streams};

/// `omptrace dump`.
#[derive(Args, Debug)]
#[command(after_help = "\
With --json, prints one object per line. The fields of each object are stream, time_ns (the time since the start of the session), event (the OMPT name of the callback), endpoint (if the callback has one), and the arguments of the callback under their OMPT names. Ids and addresses are hexadecimal strings. With --limit or --max-bytes, prints only the first lines; the last line then contains the number of lines that were left out.

Examples:
  omptrace dump app.omptrace | less
  omptrace dump app.omptrace --json --limit 20
  omptrace dump app.omptrace --json | jq -r .event | sort | uniq -c")]
pub(crate) struct Dump {
    /// The trace
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// How much of the JSON.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Prints every event, then what was wrong with the trace.
///
/// # Errors
/// The trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Dump) -> Result<Outcome> {
    let reader = inputs::open(&arguments.input)?;
    let found = if arguments.answer.is_json() {
        let lines = AnswerLines::new(&arguments.answer, streams::data());
        let lines = Arc::new(Mutex::new(lines));
        let found = dump_json(&reader, Box::new(Shared(Arc::clone(&lines))))?;
        lines.lock().unwrap_or_else(PoisonError::into_inner).finish()?;
        found
    } else {
        dump_text(&reader, Box::new(streams::text()))?
    };
    for diagnostic in reader.diagnostics().iter().chain(&found) {
        if diagnostic.severity > Severity::Note {
            let words = diagnostic.to_string();
            message::warning(message::without_severity(diagnostic.severity, &words));
        }
    }
    Ok(Outcome::Success)
}

/// The lines, also when the dump is at its end.
struct Shared(Arc<Mutex<AnswerLines<Box<dyn Write + Send>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
