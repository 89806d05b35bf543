//! Executes cases, has `omptrace stats` analyse their traces, and compares.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::case::Case;
use crate::compare::{Difference, compare};
use crate::run::Run;
use crate::write::{Ending, Process, text};

/// The program under test, and where its inputs are put.
#[derive(Clone, Debug)]
pub struct Checker {
    /// The program `omptrace`.
    pub omptrace: PathBuf,
    /// A folder for traces.
    pub folder: PathBuf,
}

/// What came of a case.
#[derive(Debug)]
pub struct Verdict {
    /// What was executed.
    pub run: Run,
    /// What is not as it should be.
    pub differences: Vec<Difference>,
}

impl Checker {
    /// Checks the answers to one case; `None` where its program waits for itself, or takes no time.
    pub fn check(&self, case: &Case) -> Option<Verdict> {
        let run = case.run()?;
        let text = text(&Process { pid: 10, start: 0, run: &run, ending: Ending::Complete }, case.dialect);
        let trace = self.folder.join("model.omptrace");
        let differences = match write_trace(&text, &trace)
            .map_err(|e| e.to_string())
            .and_then(|()| self.stats(&[&trace], &[]))
        {
            Ok(shown) => compare(case, &run, &shown),
            Err(message) => vec![Difference {
                field: "error".to_owned(),
                place: None,
                expected: "an answer".to_owned(),
                shown: message,
            }],
        };
        Some(Verdict { run, differences })
    }

    /// What `omptrace stats --json --all` prints, with further arguments.
    ///
    /// # Errors
    /// It fails, or prints no JSON: the message says so.
    pub fn stats(&self, traces: &[&Path], more: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(&self.omptrace);
        command.args(["stats", "--json", "--all"]).args(more).args(traces);
        let output = command.output().map_err(|error| format!("{}: {error}", self.omptrace.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

/// Writes the trace that `text` describes.
///
/// # Errors
/// The file cannot be written.
pub fn write_trace(text: &str, path: &Path) -> io::Result<()> {
    let traces = omptrace_trace_builder::parse(text);
    fs::write(path, traces[0].bytes())
}
