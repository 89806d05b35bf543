//! Runs to compare: traces, folders of a run's traces, and answers that `stats --json` printed.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use omptrace_analysis::Stats;
use omptrace_analysis::answers::{Answers, SCHEMA};
use omptrace_analysis::compare::{FunctionTime, Run};
use omptrace_common::thread_pool::in_parallel;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::arguments::DebugDirs;
use crate::convert::report_gaps;
use crate::failure::{Failure, Result};
use crate::message;
use crate::sources::{ReadFrom, Sources, Wanted};

/// Reads runs, in the order in which they are named.
///
/// # Errors
/// One cannot be read, or has no time to compare.
pub(crate) fn read(paths: &[PathBuf], debug_dirs: &DebugDirs, from: ReadFrom) -> Result<Vec<Run>> {
    let runs = in_parallel(paths.to_vec(), |path| read_one(&path, debug_dirs, from));
    runs.into_iter().collect()
}

/// Refuses options among the runs behind `--`.
///
/// # Errors
/// One looks like an option, and is no file.
pub(crate) fn refuse_options(after: &[PathBuf]) -> Result<()> {
    let is_option = |path: &&PathBuf| path.to_string_lossy().starts_with('-') && !path.exists();
    match after.iter().find(is_option) {
        Some(option) => Err(Failure::new(format!(
            "{} is given where runs are named",
            option.display()
        ))
        .hint("give options before the first run")),
        None => Ok(()),
    }
}

fn read_one(path: &Path, debug_dirs: &DebugDirs, from: ReadFrom) -> Result<Run> {
    let name = path.display().to_string();
    let run = if is_json(path) {
        from_json(path)?
    } else {
        let wanted = match debug_dirs.is_any() {
            true => Wanted::Events,
            false => Wanted::Sums,
        };
        let sources = Sources::open(std::slice::from_ref(&path.to_owned()), from, wanted)?;
        let (stats, report) = Stats::of_inputs(&sources.inputs(), &debug_dirs.symbols())
            .map_err(|error| Failure::new(error.to_string()))?;
        report_gaps(&report);
        Run::of(name, stats)
    };
    if run.answers.accounting.total() == 0 {
        return Err(Failure::new(format!("{} has no time to compare", run.name)));
    }
    Ok(run)
}

/// Whether a file holds JSON: its first letter is that of an object. Traces begin otherwise.
fn is_json(path: &Path) -> bool {
    let mut first = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut first));
    let text = first.iter().take(read.unwrap_or(0));
    text.copied().find(|byte| !byte.is_ascii_whitespace()) == Some(b'{')
}

/// The fields that are needed of the answers of `stats --json`.
#[derive(Deserialize)]
struct Printed {
    #[serde(flatten)]
    answers: Answers,
    processes: Vec<Value>,
    #[serde(default)]
    sampling: Value,
    #[serde(default)]
    functions: Vec<FunctionTime>,
    #[serde(default)]
    left_out: Map<String, Value>,
}

fn from_json(path: &Path) -> Result<Run> {
    let name = path.display();
    let no_answers = "omptrace stats --json --all prints answers that can be compared";
    let text =
        fs::read(path).map_err(|error| Failure::because(format!("cannot read {name}"), &error))?;
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| Failure::because(format!("{name} is no JSON"), &error))?;
    match value["schema"].as_u64() {
        Some(schema) if schema > SCHEMA.into() => {
            return Err(Failure::new(format!(
                "{name} was written by a newer omptrace: its schema is {schema}, the newest known here {SCHEMA}"
            )));
        }
        Some(_) => {}
        None => {
            return Err(Failure::new(format!(
                "{name} does not hold the answers of omptrace stats"
            ))
            .hint(no_answers));
        }
    }
    let printed: Printed = serde_json::from_value(value).map_err(|error| {
        let doing = format!("{name} does not hold the answers of omptrace stats");
        Failure::because(doing, &error).hint(no_answers)
    })?;
    if printed.left_out.contains_key("regions") {
        message::warning(&format!(
            "{name} was cut, and lacks regions; print it with --all to compare all of them"
        ));
    }
    let is_cut = printed.left_out.contains_key("functions");
    if is_cut {
        message::warning(&format!(
            "{name} was cut, and lacks functions, which are not compared; print it with --all"
        ));
    }
    let left_out = printed.left_out.get("processes").and_then(Value::as_u64);
    let processes = printed.processes.len() + left_out.unwrap_or(0) as usize;
    let is_sampled = !printed.sampling.is_null() && !is_cut;
    Ok(Run {
        name: name.to_string(),
        answers: printed.answers,
        processes,
        functions: is_sampled.then_some(printed.functions),
    })
}
