//! Instructions per event, counted by callgrind: the same on each run, however busy the machine is.
//!
//! Two runs of different counts are subtracted, so that what happens once, at the start or at the end, falls out. On
//! one thread only: valgrind runs threads one at a time, and how often they spin means nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::process::output;
use crate::result::Result;

use super::case::Case;
use super::folder::folder;
use super::programs;
use super::runs;
use super::tools::{EMPTY, Tool, Tools};

/// The counts of the two runs, as parts of the one whose time is measured. The smaller one fills several chunks.
const PARTS: [u64; 2] = [20, 5];

/// Instructions per event above the empty tool.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Instructions {
    /// On the program's thread.
    pub(super) program: f64,
    /// On threads of the tool.
    pub(super) tool: f64,
}

/// The figures of each tool that is `wanted` and can be counted; none for realistic programs and teams.
///
/// # Errors
/// Valgrind cannot be run.
pub(super) fn per_event(
    case: &Case<'_>,
    tools: &Tools,
    wanted: impl Fn(&Tool) -> bool,
) -> Result<BTreeMap<&'static str, Instructions>> {
    if case.threads > 1 || !case.program.fine {
        return Ok(BTreeMap::new());
    }
    let [small, large] = PARTS.map(|part| programs::with_count(case, case.count / part, tools));
    let (small, large) = (small?, large?);
    let slope = |tool: &Tool| -> Result<Instructions> {
        let (few, many) = (count(&small, tool)?, count(&large, tool)?);
        let events = (large.events - small.events) as f64;
        Ok(Instructions {
            program: (many.program - few.program) / events,
            tool: (many.tool - few.tool) / events,
        })
    };
    let mut slopes = BTreeMap::new();
    for tool in tools.iter().filter(|tool| wanted(tool)) {
        slopes.insert(tool.name, slope(tool)?);
    }
    let empty = slopes.get(EMPTY).map_or(0.0, |slope| slope.program);
    for slope in slopes.values_mut() {
        slope.program -= empty;
    }
    Ok(slopes)
}

/// Instructions of one run.
fn count(case: &Case<'_>, tool: &Tool) -> Result<Instructions> {
    let folder = folder().join("callgrind");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(folder.join("thread"));
    output(
        runs::prepare(case, tool, "valgrind")?
            .args(["--quiet", "--tool=callgrind", "--separate-threads=yes"])
            .arg(out)
            .arg(&case.executable)
            .arg(case.count.to_string()),
    )
    .map_err(|error| format!("{error}; to count instructions, install valgrind"))?;
    let mut sum = Instructions { program: 0.0, tool: 0.0 };
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        // One file per thread, `thread-01` that of `main`. The file without a number is empty.
        let is_program = path.extension().is_none() && path.ends_with("thread-01");
        let place = if is_program { &mut sum.program } else { &mut sum.tool };
        let text = fs::read_to_string(&path)?;
        *place += total(&text).ok_or_else(|| format!("{} has no total", path.display()))?;
    }
    match sum.program > 0.0 {
        true => Ok(sum),
        false => Err("callgrind has counted nothing on the program's thread".into()),
    }
}

/// The sum that a file of callgrind ends with; nothing of a file that is empty.
fn total(text: &str) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let mut lines = text.lines().rev();
    let totals = lines.find_map(|line| line.strip_prefix("totals: "))?;
    totals.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_callgrind_has_a_total_or_is_empty() {
        assert_eq!(total("fn=main\n1 20\n\ntotals: 4211\n"), Some(4211.0));
        assert_eq!(total(""), Some(0.0));
        assert_eq!(total("fn=main\n1 20\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }
}
