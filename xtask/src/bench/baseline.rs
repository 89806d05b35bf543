//! `--short`: instructions per event beside those in `benches/baseline.json`.
//!
//! With `OMPTRACE_BLESS=1` the file is written instead. Read the difference before you commit it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::process::root;

use super::instructions::Instructions;
use super::programs::Case;
use super::tools::{EMPTY, FLOOR};

/// By how much a figure may grow.
const TOLERANCE: f64 = 1.05;

/// Instructions per event on the program's thread, above the empty tool: by case, by tool.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Baseline {
    cases: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Baseline {
    /// Takes in the counts of a case, to a tenth: further digits differ from run to run.
    pub(super) fn add(
        &mut self,
        case: &Case<'_>,
        instructions: &BTreeMap<&'static str, Instructions>,
    ) {
        let of_case: BTreeMap<String, f64> = instructions
            .iter()
            .filter(|(tool, _)| **tool != EMPTY)
            .map(|(tool, count)| ((*tool).to_owned(), (count.program * 10.0).round() / 10.0))
            .collect();
        if !of_case.is_empty() {
            self.cases.insert(case.name(), of_case);
        }
    }

    fn get(&self, case: &str, tool: &str) -> Option<f64> {
        self.cases.get(case)?.get(tool).copied()
    }
}

fn path() -> PathBuf {
    root().join("benches/baseline.json")
}

/// Prints the counts beside the stored ones, or stores them.
///
/// # Errors
/// One grew by more than [`TOLERANCE`] allows, or is not stored.
pub(super) fn compare(counted: &Baseline) -> Result<()> {
    if std::env::var_os("OMPTRACE_BLESS").is_some_and(|value| value == "1") {
        fs::write(path(), serde_json::to_string_pretty(counted)? + "\n")?;
        println!("wrote {}", path().display());
        return Ok(());
    }
    let text = fs::read(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    let stored: Baseline = serde_json::from_slice(&text)?;
    let mut grown = 0;
    println!("instructions per event above the empty tool\n");
    println!("{:<14}{:<14}{:>8}{:>8}", "case", "tool", "now", "stored");
    for (case, tools) in &counted.cases {
        for (tool, &now) in tools {
            let before = stored.get(case, tool);
            let has_grown = tool != FLOOR && before.is_none_or(|before| now > before * TOLERANCE);
            grown += u32::from(has_grown);
            let before = before.map_or("-".into(), |before| format!("{before:.1}"));
            let mark = if has_grown { "  grown" } else { "" };
            println!("{case:<14}{tool:<14}{now:>8.1}{before:>8}{mark}");
        }
    }
    match grown {
        0 => Ok(()),
        _ => Err(format!(
            "{grown} grew by more than 5 %, or are new; if that is meant, run it again with OMPTRACE_BLESS=1"
        )
        .into()),
    }
}
