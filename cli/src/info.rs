//! `omptrace info`: what traces hold.

use std::io::{self, BufWriter, Write};

use omptrace_analysis::Info as Summary;

use crate::arguments::Info;
use crate::failure::{Outcome, Result};
use crate::inputs::{self, Tally};
use crate::message;

/// Where the values stand in a line.
const VALUES: usize = 18;

/// Prints it, for one trace after the other. One that cannot be read does not keep the others from being shown.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Info) -> Result<Outcome> {
    let width = message::columns(&io::stdout());
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut tally = Tally::default();
    let mut is_first = true;
    for trace in inputs::each(&arguments.inputs) {
        let Some(reader) = tally.take(trace.and_then(|trace| inputs::open(&trace))) else {
            continue;
        };
        let info = Summary::of(&reader);
        if arguments.json {
            serde_json::to_writer(&mut stdout, &info).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            if !is_first {
                writeln!(stdout)?;
            }
            is_first = false;
            let text = message::folded(&info.to_string(), width, Some(VALUES));
            write!(stdout, "{text}")?;
        }
    }
    stdout.flush()?;
    tally.finish()?;
    Ok(Outcome::Success)
}
