//! `omptrace check`: whether traces and archives are sound.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use omptrace_analysis::{check, check_job, printable};
use omptrace_trace_format::{Finding, Reader, Severity, open_regular};
use otf2_archive::check_archive;
use serde::Serialize;

use crate::input::inputs::{self, Tally};
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::json_output::{AnswerOptions, WithSchema};
use crate::output::{message, streams};
use crate::system::folders::files_in;

/// `omptrace check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 if all inputs are sound, 1 if problems were found and listed, 2 if an input cannot be read.

Example:
  omptrace check traces/ && echo sound
  omptrace check app.otf2")]
pub(crate) struct Check {
    /// Traces, directories of traces, or OTF2 archives written by any tool (for an archive, give its directory or its
    /// anchor file, *.otf2)
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// How much of the answer; an object per line and input.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Checks one input after the other. One that cannot be read does not keep the others from being checked.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Check) -> Result<Outcome> {
    let mut outcome = Outcome::Success;
    let mut tally = Tally::default();
    let mut of_job = findings_of_job(&arguments.inputs);
    let mut answers = Vec::new();
    let mut take = |input: &Path, findings: Vec<Finding>| -> Result<()> {
        let checked = Checked::new(input, findings);
        outcome = outcome.max(checked.outcome());
        if arguments.answer.is_json() {
            answers.push(WithSchema::new(checked));
            return Ok(());
        }
        checked.print()
    };
    for input in &arguments.inputs {
        if let Some(anchor) = anchor(input) {
            if tally.take(readable(&anchor)).is_some() {
                take(input, check_archive(&anchor))?;
            }
            continue;
        }
        for trace in inputs::each(std::slice::from_ref(input)) {
            if let Some(reader) = tally.take(trace.and_then(|trace| inputs::open(&trace))) {
                let mut findings = check(&reader);
                findings.extend(of_job.remove(reader.path()).unwrap_or_default());
                take(reader.path(), findings)?;
            }
        }
    }
    if arguments.answer.is_json() {
        arguments.answer.print_all(answers)?;
    }
    tally.finish()?;
    Ok(outcome)
}

/// What traces of several MPI ranks show together, by the path of each. What cannot be read is told where it is checked alone.
fn findings_of_job(inputs: &[PathBuf]) -> BTreeMap<PathBuf, Vec<Finding>> {
    let traces = inputs.iter().filter(|input| anchor(input).is_none());
    let traces: Vec<PathBuf> = traces.cloned().collect();
    let readers = inputs::each(&traces).filter_map(|trace| inputs::open(&trace.ok()?).ok());
    let readers: Vec<Reader> = readers.filter(|reader| reader.metadata().mpi.is_some()).collect();
    check_job(&readers.iter().collect::<Vec<_>>())
}

/// # Errors
/// The file cannot be read at all, which is no finding.
fn readable(anchor: &Path) -> Result<()> {
    open_regular(anchor)
        .map(drop)
        .map_err(|error| Failure::because(format!("cannot read {}", anchor.display()), &error))
}

/// The findings in an input.
#[derive(Serialize)]
struct Checked {
    input: PathBuf,
    is_sound: bool,
    findings: Vec<Finding>,
}

impl Checked {
    fn new(input: &Path, findings: Vec<Finding>) -> Checked {
        let is_grave = |finding: &Finding| finding.severity > Severity::Note;
        Checked { input: input.to_owned(), is_sound: !findings.iter().any(is_grave), findings }
    }

    fn outcome(&self) -> Outcome {
        match self.is_sound {
            true => Outcome::Success,
            false => Outcome::Findings,
        }
    }

    fn print(&self) -> Result<()> {
        let width = message::columns(&streams::stdout());
        let mut stdout = streams::text();
        let input = self.input.display();
        let findings = self.findings.iter();
        let findings = findings.map(|finding| format!("{input}: {finding}"));
        let sound = self.is_sound.then(|| format!("{input}: sound"));
        for line in findings.chain(sound) {
            let line = message::folded(&printable(&line), width, Some(4));
            writeln!(stdout, "{line}")?;
        }
        stdout.flush()?;
        Ok(())
    }
}

/// The anchor of an OTF2 archive: the input itself, or the one file of that kind in the folder.
fn anchor(input: &Path) -> Option<PathBuf> {
    let is_anchor = |name: &str| name.ends_with(".otf2");
    if !input.is_dir() {
        return is_anchor(input.file_name()?.to_str()?).then(|| input.to_owned());
    }
    let is_file = |path: &PathBuf| path.is_file();
    files_in(input, is_anchor).into_iter().find(is_file)
}
