//! `omptrace stats`: where the time went, in numbers.

use std::io::{self, BufWriter, Write};

use omptrace_analysis::{Layout, Stats as Numbers};
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::arguments::Stats;
use crate::convert::report_gaps;
use crate::failure::{Outcome, Result};
use crate::{inputs, message};

/// The letters of a line where the width is unknown, as in a pipe or a file.
const USUAL_COLUMNS: usize = 80;

/// Prints it for all traces together.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Stats) -> Result<Outcome> {
    let readers = inputs::open_all(&arguments.inputs)?;
    let inputs: Vec<&Reader> = readers.iter().collect();
    let symbols = symbols::Options {
        debug_dirs: arguments.debug_dirs.debug_dir.clone(),
        ..symbols::Options::default()
    };
    let (stats, report) = Numbers::of(&inputs, &symbols);
    let width = message::columns(&io::stdout()).unwrap_or(USUAL_COLUMNS);
    let mut stdout = BufWriter::new(io::stdout().lock());
    if arguments.json {
        serde_json::to_writer(&mut stdout, &stats).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        let layout = Layout {
            width: Some(width),
            top: arguments.top,
        };
        write!(stdout, "{}", stats.tables(layout))?;
    }
    stdout.flush()?;
    report_gaps(&report);
    Ok(Outcome::Success)
}
