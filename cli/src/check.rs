//! `omptrace check`: whether traces and archives are sound.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use omptrace_analysis::check;
use omptrace_trace_format::Finding;
use omptrace_trace_format::Severity;
use otf2_archive::check_archive;

use crate::arguments::Check;
use crate::failure::{Failure, Outcome, Result};
use crate::inputs::{self, Tally};
use crate::loader::files_in;
use crate::message;

/// Checks one input after the other. One that cannot be read does not keep the others from being checked.
///
/// # Errors
/// A trace cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Check) -> Result<Outcome> {
    let mut outcome = Outcome::Success;
    let mut tally = Tally::default();
    for input in &arguments.inputs {
        if let Some(anchor) = anchor(input) {
            if tally.take(readable(&anchor)).is_some() {
                outcome = outcome.max(print(input, &check_archive(&anchor))?);
            }
            continue;
        }
        for trace in inputs::each(std::slice::from_ref(input)) {
            if let Some(reader) = tally.take(trace.and_then(|trace| inputs::open(&trace))) {
                outcome = outcome.max(print(reader.path(), &check(&reader))?);
            }
        }
    }
    tally.finish()?;
    Ok(outcome)
}

/// # Errors
/// The file cannot be read at all, which is no finding.
fn readable(anchor: &Path) -> Result<()> {
    File::open(anchor)
        .map(drop)
        .map_err(|error| Failure::because(format!("cannot read {}", anchor.display()), &error))
}

fn print(input: &Path, findings: &[Finding]) -> Result<Outcome> {
    let width = message::columns(&io::stdout());
    let mut stdout = io::stdout().lock();
    for finding in findings {
        let line = format!("{}: {finding}", input.display());
        writeln!(stdout, "{}", message::folded(&line, width, Some(4)))?;
    }
    let is_grave = |finding: &Finding| finding.severity > Severity::Note;
    if findings.iter().any(is_grave) {
        return Ok(Outcome::Findings);
    }
    writeln!(stdout, "{}: sound", input.display())?;
    Ok(Outcome::Success)
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
