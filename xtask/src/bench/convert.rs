//! `--convert`: what converting a trace costs, from the sealed trace on the disk to the export in memory (tmpfs).
//!
//! Time per event is that of all threads together, so that events per second *and core* are its inverse; the wall time
//! beside it tells what more cores give. All processors may be used, but for the row that is bound to one.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::Result;
use crate::omptrace::{omptrace, release};
use crate::process::{command, output};

use super::machine;
use super::programs::Case;
use super::runs::{self, Used};
use super::spread::median;
use super::tools::{OMPTRACE, Tools};

/// A format, and how many events of the trace a core shall convert per second, in millions. OTF2 has no goal.
const FORMATS: &[(&str, Option<f64>)] = &[
    ("perfetto", Some(15.0)),
    ("chrome", Some(10.0)),
    ("otf2", None),
];
/// The most memory of a conversion.
const MOST_MIB: f64 = 256.0;

/// What the conversions of one trace took.
#[derive(Debug, Serialize)]
pub(super) struct CaseReport {
    case: String,
    events: u64,
    formats: Vec<FormatReport>,
}

/// One format, medians of the rounds.
#[derive(Debug, Serialize)]
struct FormatReport {
    format: &'static str,
    /// Processors that it might use.
    processors: usize,
    /// Of all threads, with the system's part.
    cpu_ns_per_event: f64,
    /// Millions of events per second of CPU time.
    per_core: f64,
    /// Millions of events per second.
    per_second: f64,
    peak_mib: f64,
    at_least: Option<f64>,
}

/// Records the case and converts its trace to each format, `rounds` times and once before, each format once per round.
///
/// # Errors
/// Something cannot be run.
pub(super) fn measure(case: &Case<'_>, tools: &Tools, rounds: u32) -> Result<CaseReport> {
    let ours = tools.iter().find(|tool| tool.name == OMPTRACE);
    let tool = ours.ok_or("the tracer is not among the tools")?;
    runs::measure(case, tool)?;
    let trace = runs::trace(tool);
    output(omptrace(&["recover"]).arg(&trace))?;
    symbolize(&trace)?;
    let mut processors = vec![1, machine::processors()];
    processors.dedup();
    let mut rows = Vec::new();
    for &(format, at_least) in FORMATS {
        rows.extend(processors.iter().map(|&processors| Row {
            format,
            at_least,
            processors,
            samples: Vec::new(),
        }));
    }
    for round in 0..=rounds {
        for row in &mut rows {
            let sample = convert(&trace, row.format, row.processors)?;
            if round > 0 {
                row.samples.push(sample);
            }
        }
    }
    Ok(CaseReport {
        case: case.name(),
        events: case.events,
        formats: rows.iter().map(|row| row.report(case.events)).collect(),
    })
}

/// Conversions of one kind: one sample per round.
struct Row {
    format: &'static str,
    at_least: Option<f64>,
    processors: usize,
    samples: Vec<Sample>,
}

impl Row {
    fn report(&self, events: u64) -> FormatReport {
        let events = events as f64;
        let typical =
            |of: fn(&Sample) -> f64| median(self.samples.iter().map(of)).unwrap_or(f64::NAN);
        let cpu_ns = typical(|sample| sample.used.cpu_ns as f64);
        FormatReport {
            format: self.format,
            processors: self.processors,
            cpu_ns_per_event: cpu_ns / events,
            per_core: events / cpu_ns * 1e3,
            per_second: events / typical(|sample| sample.wall_ns) * 1e3,
            peak_mib: typical(|sample| sample.used.peak_kib as f64) / 1024.0,
            at_least: self.at_least,
        }
    }
}

/// Stores the names of code in the trace, as `omptrace record` does: to look them up is no part of a conversion's time.
fn symbolize(trace: &Path) -> Result<()> {
    let status = omptrace(&["symbolize"])
        .arg(trace)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    // 1: some code has no source lines, since the programs are built without.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!("omptrace symbolize ended with {status}").into()),
    }
}

/// What one conversion took.
struct Sample {
    used: Used,
    wall_ns: f64,
}

/// Converts to a file in memory, which goes again.
fn convert(trace: &Path, format: &str, processors: usize) -> Result<Sample> {
    let export = PathBuf::from(format!("/dev/shm/omptrace-bench-{}", std::process::id()));
    let program = release().join("omptrace");
    let mut command = if processors == 1 {
        let mut bound = command("taskset", ["--cpu-list", "0"]);
        bound.arg(program);
        bound
    } else {
        Command::new(program)
    };
    command
        .args(["convert", "--to", format, "-o"])
        .arg(&export)
        .arg(trace)
        .stderr(Stdio::null());
    let begin = Instant::now();
    let used = runs::wait(command.spawn()?);
    let wall_ns = begin.elapsed().as_nanos() as f64;
    if export.is_dir() {
        fs::remove_dir_all(&export)?;
    } else {
        fs::remove_file(&export)?;
    }
    Ok(Sample {
        used: used?,
        wall_ns,
    })
}

impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {} events", self.case, self.events)?;
        writeln!(
            f,
            "{:<10}{:>11}{:>14}{:>16}{:>13}{:>10}  goals",
            "format", "processors", "ns per event", "M/s and core", "M/s in all", "peak MiB"
        )?;
        for row in &self.formats {
            write!(
                f,
                "{:<10}{:>11}{:>14.1}{:>16.1}{:>13.1}{:>10.1}  ",
                row.format,
                row.processors,
                row.cpu_ns_per_event,
                row.per_core,
                row.per_second,
                row.peak_mib
            )?;
            let verdict = |met| if met { "met" } else { "MISSED" };
            if let Some(at_least) = row.at_least {
                write!(f, "{at_least} M/s: {}, ", verdict(row.per_core >= at_least))?;
            }
            writeln!(f, "{MOST_MIB} MiB: {}", verdict(row.peak_mib <= MOST_MIB))?;
        }
        Ok(())
    }
}
