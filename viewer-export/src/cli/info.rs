//! `omptrace info`: what traces hold.

use std::io::{self, BufWriter, Write};

use omptrace_viewer_export::Info as Summary;

use crate::cli::arguments::Info;
use crate::cli::failure::{Outcome, Result};
use crate::cli::inputs;

/// Tells it, for one trace after the other.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Info) -> Result<Outcome> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    for (index, trace) in inputs::traces(&arguments.inputs)?.iter().enumerate() {
        let info = Summary::of(&inputs::open(trace)?);
        if arguments.json {
            serde_json::to_writer(&mut stdout, &info).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            if index > 0 {
                writeln!(stdout)?;
            }
            write!(stdout, "{info}")?;
        }
    }
    stdout.flush()?;
    Ok(Outcome::Success)
}
