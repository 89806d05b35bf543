//! `--convert`: what converting and analysing a trace costs, from the sealed trace on the disk to the export in memory (tmpfs).
//!
//! Time per event is that of all threads together, so that events per second *and core* are its inverse. The wall
//! time beside it shows what more cores give. All processors may be used, but for the row that is bound to one. The
//! reference beside it is a program that only writes as many bytes, in the same round: what of the time is the
//! system's.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::omptrace::{omptrace, release};
use crate::process::{command, output};
use crate::result::Result;

use super::case::Case;
use super::machine;
use super::programs;
use super::runs::{self, Used};
use super::spread::median;
use super::tools::{OMPTRACE, Tools};

/// The work that is done with a trace.
#[derive(Debug)]
struct Work {
    name: &'static str,
    command: &'static [&'static str],
    /// It is written to stdout; else to a file that is named after `-o`.
    to_stdout: bool,
    /// How many events of the trace a core shall do per second, in millions, where there is a goal.
    at_least: Option<f64>,
}

const WORK: &[Work] = &[
    conversion("perfetto", &["convert", "--to", "perfetto"], Some(15.0)),
    conversion("chrome", &["convert", "--to", "chrome"], Some(10.0)),
    conversion("otf2", &["convert", "--to", "otf2"], None),
    answers("stats", &["stats", "--json"], Some(10.0)),
    // Where threads are selected, nothing is replayed for the what-if.
    answers("one pass", &["stats", "--json", "--thread", "0"], Some(10.0)),
];

const fn conversion(name: &'static str, command: &'static [&'static str], at_least: Option<f64>) -> Work {
    Work { name, command, to_stdout: false, at_least }
}

const fn answers(name: &'static str, command: &'static [&'static str], at_least: Option<f64>) -> Work {
    Work { to_stdout: true, ..conversion(name, command, at_least) }
}

/// The most memory of a conversion.
const MAX_MIB: f64 = 256.0;
/// The programs run longer than to measure the tracer: to start a conversion takes some 4 ms.
const LONGER: u64 = 2;
/// Bytes that the reference writes at once, as a conversion does.
const WRITTEN_BYTES: usize = 256 << 10;

/// The times of the conversions of one trace.
#[derive(Debug, Serialize)]
pub(super) struct CaseReport {
    case: String,
    events: u64,
    formats: Vec<FormatReport>,
}

/// One format, medians of the rounds but where it says otherwise.
#[derive(Debug, Serialize)]
struct FormatReport {
    format: &'static str,
    /// Processors that it might use.
    processors: usize,
    /// The processor time of all threads, with the system's part.
    cpu_ns_per_event: f64,
    /// The least of all rounds: what neighbours on the machine disturbed least.
    least_cpu_ns_per_event: f64,
    /// To write as many bytes, and do nothing else.
    writing_cpu_ns_per_event: f64,
    bytes_per_event: f64,
    /// Millions of events per second of CPU time.
    per_core: f64,
    /// Millions of events per second.
    per_second: f64,
    peak_mib: f64,
    at_least: Option<f64>,
}

/// Records the case, of at least this many events. Converts its trace to each format, `rounds` times and once before, each
/// format once per round.
///
/// # Errors
/// Something cannot be run.
pub(super) fn measure(
    case: &Case<'_>,
    tools: &Tools,
    rounds: u32,
    events: Option<u64>,
) -> Result<CaseReport> {
    let longer = events.map_or(LONGER, |events| events.div_ceil(case.events.max(1)));
    let case = &programs::with_count(case, case.count * longer, tools)?;
    let ours = tools.iter().find(|tool| tool.name == OMPTRACE);
    let tool = ours.ok_or("the tracer is not among the tools")?;
    runs::measure(case, tool)?;
    let trace = runs::trace(tool);
    output(omptrace(&["recover"]).arg(&trace))?;
    symbolize(&trace)?;
    let mut processors = vec![1, machine::processors()];
    processors.dedup();
    let mut rows = Vec::new();
    for work in WORK {
        rows.extend(processors.iter().map(|&processors| Row { work, processors, samples: Vec::new() }));
    }
    for round in 0..=rounds {
        for row in &mut rows {
            let sample = convert(&trace, row.work, row.processors)?;
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
    work: &'static Work,
    processors: usize,
    samples: Vec<Sample>,
}

impl Row {
    fn report(&self, events: u64) -> FormatReport {
        let events = events as f64;
        let typical = |of: fn(&Sample) -> f64| median(self.samples.iter().map(of)).unwrap_or(f64::NAN);
        let cpu_ns = typical(|sample| sample.used.cpu_ns as f64);
        let least_cpu_ns = self.samples.iter().map(|sample| sample.used.cpu_ns).min();
        FormatReport {
            format: self.work.name,
            processors: self.processors,
            cpu_ns_per_event: cpu_ns / events,
            least_cpu_ns_per_event: least_cpu_ns.map_or(f64::NAN, |ns| ns as f64 / events),
            writing_cpu_ns_per_event: typical(|sample| sample.writing_cpu_ns as f64) / events,
            bytes_per_event: typical(|sample| sample.bytes as f64) / events,
            per_core: events / cpu_ns * 1e3,
            per_second: events / typical(|sample| sample.wall_ns) * 1e3,
            peak_mib: typical(|sample| sample.used.peak_kib as f64) / 1024.0,
            at_least: self.work.at_least,
        }
    }
}

/// Stores the names of code in the trace, as `omptrace record` does: to look them up is no part of a conversion's time.
fn symbolize(trace: &Path) -> Result<()> {
    let status = omptrace(&["symbolize"]).arg(trace).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    // 1: some code has no source lines, since the programs are built without.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!("omptrace symbolize ended with {status}").into()),
    }
}

/// The time of one conversion.
struct Sample {
    used: Used,
    wall_ns: f64,
    /// Bytes of the export.
    bytes: u64,
    /// CPU time to write as many.
    writing_cpu_ns: u64,
}

/// Converts to a file in memory, which goes again.
fn convert(trace: &Path, work: &Work, processors: usize) -> Result<Sample> {
    let export = in_memory("");
    let program = release().join("omptrace");
    let mut command = if processors == 1 {
        let mut bound = command("taskset", ["--cpu-list", "0"]);
        bound.arg(program);
        bound
    } else {
        Command::new(program)
    };
    command.args(work.command).arg(trace).stderr(Stdio::null());
    if work.to_stdout {
        command.stdout(File::create(&export)?);
    } else {
        command.arg("-o").arg(&export);
    }
    let begin = Instant::now();
    let used = runs::wait(command.spawn()?);
    let wall_ns = begin.elapsed().as_nanos() as f64;
    let bytes = bytes_below(&export)?;
    if export.is_dir() {
        fs::remove_dir_all(&export)?;
    } else {
        fs::remove_file(&export)?;
    }
    Ok(Sample { used: used?, wall_ns, bytes, writing_cpu_ns: write(bytes)? })
}

/// A file in memory, for exports.
fn in_memory(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/omptrace-bench-{}{name}", std::process::id()))
}

/// Bytes of a file, or of all files in a folder.
fn bytes_below(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        bytes += bytes_below(&entry?.path())?;
    }
    Ok(bytes)
}

/// The reference: CPU time of writing `bytes` bytes to a file in memory, which goes again.
fn write(bytes: u64) -> Result<u64> {
    let path = in_memory("-written");
    let buffer = vec![b'x'; WRITTEN_BYTES];
    let mut file = File::create(&path)?;
    let begin = runs::thread_cpu_ns();
    let mut rest = bytes;
    while rest > 0 {
        let piece = rest.min(buffer.len() as u64);
        file.write_all(&buffer[..piece as usize])?;
        rest -= piece;
    }
    let cpu_ns = runs::thread_cpu_ns() - begin;
    fs::remove_file(&path)?;
    Ok(cpu_ns)
}

impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {} events", self.case, self.events)?;
        writeln!(
            f,
            "{:<10}{:>11}{:>14}{:>8}{:>14}{:>7}{:>14}{:>12}{:>10}  goals",
            "format",
            "processors",
            "ns per event",
            "least",
            "writing alone",
            "bytes",
            "M/s and core",
            "M/s in all",
            "peak MiB"
        )?;
        for row in &self.formats {
            write!(
                f,
                "{:<10}{:>11}{:>14.1}{:>8.1}{:>14.1}{:>7.1}{:>14.1}{:>12.1}{:>10.1}  ",
                row.format,
                row.processors,
                row.cpu_ns_per_event,
                row.least_cpu_ns_per_event,
                row.writing_cpu_ns_per_event,
                row.bytes_per_event,
                row.per_core,
                row.per_second,
                row.peak_mib
            )?;
            let verdict = |met| if met { "met" } else { "MISSED" };
            if let Some(at_least) = row.at_least {
                write!(f, "{at_least} M/s: {}, ", verdict(row.per_core >= at_least))?;
            }
            writeln!(f, "{MAX_MIB} MiB: {}", verdict(row.peak_mib <= MAX_MIB))?;
        }
        Ok(())
    }
}
