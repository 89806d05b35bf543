//! `omptrace info`: what traces hold.

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use omptrace_analysis::{Info as Summary, MpiJob, printable};
use omptrace_viewer_export::splits;
use serde::Serialize;

use crate::input::inputs::{self, Tally};
use crate::options::units;
use crate::output::failure::{Outcome, Result};
use crate::output::json_output::{AnswerOptions, WithSchema};
use crate::output::{message, streams};
use crate::system::fd_limit;

/// `omptrace info`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  omptrace info app.omptrace
  omptrace info traces/ --json | jq .lost
  omptrace info traces/ --splits 128M --json    # parts of a job for several machines")]
pub(crate) struct Info {
    /// Traces or directories of traces
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// List the parts into which `convert --to parquet --part I/N` divides the traces if N is chosen so that each
    /// part contains at most SIZE of trace data, for example 128M
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) splits: Option<u64>,
    /// How much of the answer; an object per line and trace.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// The column of the values in a line.
const VALUES: usize = 18;

/// Prints it, for one trace after the other. One that cannot be read does not keep the others from being shown.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Info) -> Result<Outcome> {
    if let Some(max_bytes) = arguments.splits.and_then(NonZero::new) {
        return list_parts(arguments, max_bytes);
    }
    let _ = fd_limit::allow_most();
    let width = message::columns(&streams::stdout());
    let mut stdout = streams::text();
    let mut tally = Tally::default();
    let mut is_first = true;
    let mut answers = Vec::new();
    let mut readers = Vec::new();
    for trace in inputs::each(&arguments.inputs) {
        let Some(reader) = tally.take(trace.and_then(|trace| inputs::open(&trace))) else {
            continue;
        };
        let info = Summary::of(&reader);
        if arguments.answer.is_json() {
            answers.push(info);
        } else {
            if !is_first {
                writeln!(stdout)?;
            }
            is_first = false;
            let text = message::folded(&omptrace_report::info_text(&info).to_string(), width, Some(VALUES));
            write!(stdout, "{text}")?;
        }
        readers.push(reader);
    }
    let job = MpiJob::of(&readers.iter().collect::<Vec<_>>());
    if arguments.answer.is_json() {
        answers.iter_mut().for_each(|info| info.add_job(&job));
        arguments.answer.print_all(answers.into_iter().map(WithSchema::new))?;
        return tally.finish().map(|()| Outcome::Success);
    }
    if !job.notes.is_empty() {
        writeln!(stdout)?;
    }
    for note in job.notes {
        let text = message::folded(&format!("{:<VALUES$}{note}\n", "MPI job"), width, Some(VALUES));
        write!(stdout, "{text}")?;
    }
    stdout.flush()?;
    tally.finish()?;
    Ok(Outcome::Success)
}

/// A part of a job, as `--json` has it.
#[derive(Serialize)]
struct PartAnswer {
    part: String,
    trace: PathBuf,
    rows: String,
    bytes: u64,
}

/// Prints the parts of all traces together, a line each.
fn list_parts(arguments: &Info, max_bytes: NonZero<u64>) -> Result<Outcome> {
    let readers = inputs::open_all(&arguments.inputs)?;
    let of = |(number, all): (usize, usize)| format!("{number}/{all}");
    let parts = splits(&readers.iter().collect::<Vec<_>>(), max_bytes);
    let parts = parts.into_iter().map(|part| PartAnswer {
        part: of(part.part),
        rows: of(part.rows),
        trace: part.trace,
        bytes: part.bytes,
    });
    let parts: Vec<PartAnswer> = parts.collect();
    if arguments.answer.is_json() {
        arguments.answer.print_all(parts.into_iter().map(WithSchema::new))?;
    } else {
        let mut stdout = streams::text();
        for part in &parts {
            let (trace, size) = (part.trace.display().to_string(), message::bytes(part.bytes));
            writeln!(stdout, "{:<12} {size:>8}  rows {:<8} of {}", part.part, part.rows, printable(&trace))?;
        }
        stdout.flush()?;
    }
    Ok(Outcome::Success)
}
