//! `omptrace info`: what traces hold.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use omptrace_analysis::Info as Summary;

use crate::answer::AnswerOptions;
use crate::failure::{Outcome, Result};
use crate::inputs::{self, Tally};
use crate::message;

/// `omptrace info`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  omptrace info app.omptrace
  omptrace info traces/ --json | jq .lost")]
pub(crate) struct Info {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
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
    let width = message::columns(&io::stdout());
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut tally = Tally::default();
    let mut is_first = true;
    let mut answers = Vec::new();
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
            let text = message::folded(&info.to_string(), width, Some(VALUES));
            write!(stdout, "{text}")?;
        }
    }
    arguments.answer.print_all(&mut stdout, answers)?;
    stdout.flush()?;
    tally.finish()?;
    Ok(Outcome::Success)
}
