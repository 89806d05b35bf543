//! The runs to compare: traces, directories with the traces of a run, and answers printed by `stats --json`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use omptrace_analysis::MpiEfficiency;
use omptrace_analysis::answers::{Answers, SCHEMA};
use omptrace_analysis::compare::{FunctionTime, Run};
use omptrace_analysis::{Stats, Steps, program_of};
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::{Reader, open_regular};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::input::input_choice::{ReadFrom, Sources, Wanted};
use crate::input::launches;
use crate::options::shared::DebugDirs;
use crate::output::failure::{Failure, Result};
use crate::output::gaps::report_gaps;
use crate::output::message;
use crate::output::progress::{Work, watched};

/// Reads runs, in the order in which they are named. Traces of ranks of one MPI job are one run.
///
/// # Errors
/// A run cannot be read, or contains no time to compare.
pub(crate) fn read(paths: &[PathBuf], debug_dirs: &DebugDirs, from: ReadFrom) -> Result<Vec<Run>> {
    let runs = inputs_of_runs(paths);
    let (all, work) = (runs.len(), Work::one_step("analysing"));
    let runs = in_parallel(runs, |inputs| read_one(&inputs, debug_dirs, from, work.of_file(all)));
    work.finish();
    runs.into_iter().collect()
}

/// The inputs of each run.
fn inputs_of_runs(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    /// Larger jobs are given as directories.
    const MAX_RANKS: usize = 256;

    let mut runs: Vec<Vec<PathBuf>> = paths.iter().map(|path| vec![path.clone()]).collect();
    let readers: Vec<Option<Reader>> = match paths {
        [_, _, ..] if paths.len() <= MAX_RANKS => in_parallel(paths.to_vec(), |path| rank_of_job(&path)),
        _ => return runs,
    };
    let ranks: Vec<(usize, &Reader)> =
        readers.iter().enumerate().filter_map(|(number, reader)| Some((number, reader.as_ref()?))).collect();
    let readers: Vec<&Reader> = ranks.iter().map(|(_, reader)| *reader).collect();
    for job in launches::of(&readers) {
        let mut numbers = job.iter().map(|rank| ranks[*rank].0);
        if let Some(first) = numbers.next() {
            let others: Vec<PathBuf> = numbers.flat_map(|number| mem::take(&mut runs[number])).collect();
            runs[first].extend(others);
        }
    }
    runs.retain(|inputs| !inputs.is_empty());
    runs
}

/// The trace at `path`, if it is that of a rank of an MPI job with several ranks.
fn rank_of_job(path: &Path) -> Option<Reader> {
    // A pipe can be opened only once.
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let reader = is_file.then(|| Reader::open(path).ok()).flatten()?;
    let ranks = reader.metadata().mpi.as_ref()?.size?;
    (ranks > 1).then_some(reader)
}

/// Refuses options among the runs after `--`.
///
/// # Errors
/// An argument looks like an option, and no such file exists.
pub(crate) fn refuse_options(after: &[PathBuf]) -> Result<()> {
    let is_option = |path: &&PathBuf| path.to_string_lossy().starts_with('-') && !path.exists();
    match after.iter().find(is_option) {
        Some(option) => {
            Err(Failure::new(format!("the option {} comes after the name of a run", option.display()))
                .hint("put options before the names of the runs"))
        }
        None => Ok(()),
    }
}

fn read_one(
    inputs: &[PathBuf],
    debug_dirs: &DebugDirs,
    from: ReadFrom,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<Run> {
    let (path, text) = match inputs {
        [path] => (path, json(path)?),
        _ => (&inputs[0], None),
    };
    let run = if let Some(text) = text {
        from_json(path, &text)?
    } else {
        let wanted = match debug_dirs.is_any() {
            true => Wanted::Events,
            false => Wanted::Sums,
        };
        let sources = Sources::open(inputs, from, wanted)?;
        let symbols = debug_dirs.symbols();
        let analyse = || Stats::of_inputs(&sources.inputs(), &symbols);
        let (stats, report) = watched(&sources.readers(), progress, analyse)
            .map_err(|error| Failure::new(error.to_string()))?;
        report_gaps(&report);
        let others = match inputs.len() - 1 {
            0 => String::new(),
            others => format!(" and {}", message::counted(others as u64, "other trace")),
        };
        Run::of(format!("{}{others}", path.display()), stats)
    };
    if run.answers.accounting.total() == 0 {
        return Err(Failure::new(format!(
            "the recorded time in {} is zero, so there is nothing to compare",
            run.name
        )));
    }
    Ok(run)
}

/// The contents of a file if it is JSON, that is, starts with an object. Traces start differently, and directories are
/// read like traces. A pipe, such as `<(omptrace stats --json --all app.omptrace)`, can be read only once.
///
/// # Errors
/// The file cannot be read, or is a pipe without JSON.
fn json(path: &Path) -> Result<Option<Vec<u8>>> {
    /// Number of bytes that are searched for the start of the object, because the file may be a large trace.
    const BEGIN_BYTES: u64 = 64;

    let is_pipe = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let failed = |error: io::Error| Failure::because(format!("cannot read {}", path.display()), &error);
    let mut text = Vec::new();
    let mut file = match is_pipe {
        true => open_pipe(path, &mut text).map_err(failed)?,
        false => match open_regular(path) {
            Ok(file) => file,
            // Opening the file as a trace will report the reason.
            Err(_) => return Ok(None),
        },
    };
    let begin = file.by_ref().take(BEGIN_BYTES).read_to_end(&mut text);
    begin.map_err(failed)?;
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        file.read_to_end(&mut text).map_err(failed)?;
        return Ok(Some(text));
    }
    match is_pipe {
        true => Err(Failure::new(format!(
            "the pipe {} does not contain JSON from omptrace stats",
            path.display()
        ))
        .hint("a trace cannot be read from a pipe: write the trace to a file first")),
        false => Ok(None),
    }
}

/// Opens a pipe that has a writer. `begin` receives its first byte, if it has arrived.
///
/// # Errors
/// The pipe has no writer: waiting for one might take forever.
fn open_pipe(path: &Path, begin: &mut Vec<u8>) -> io::Result<File> {
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut first = [0];
    match file.read(&mut first) {
        Ok(0) => return Err(io::Error::other("no process writes to this pipe")),
        Ok(_) => begin.extend(first),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    // SAFETY: the call only clears a flag of an open descriptor. O_NONBLOCK is the only one of its status flags that
    // can be set here.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(file),
    }
}

/// The fields of `stats --json` that are needed.
#[derive(Deserialize)]
struct Printed {
    #[serde(flatten)]
    answers: Answers,
    processes: Vec<PrintedProcess>,
    #[serde(default)]
    sampling: Value,
    #[serde(default)]
    functions: Vec<FunctionTime>,
    #[serde(default)]
    steps: Option<Steps>,
    #[serde(default)]
    mpi_efficiency: Option<MpiEfficiency>,
    #[serde(default)]
    left_out: Map<String, Value>,
}

/// The fields of a process that name its program.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PrintedProcess {
    name: String,
    pid: u32,
    rank: Option<u32>,
}

fn from_json(path: &Path, text: &[u8]) -> Result<Run> {
    let name = path.display();
    let no_answers = "give a file with the output of omptrace stats --json";
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::because(format!("{name} is not JSON"), &error))?;
    match value["schema"].as_u64() {
        Some(schema) if schema > SCHEMA.into() => {
            return Err(Failure::new(format!(
                "{name} was written by a newer version of omptrace: its JSON has schema {schema}, but this version reads only schemas up to {SCHEMA}"
            )));
        }
        Some(_) => {}
        None => {
            return Err(Failure::new(format!("{name} is not the output of omptrace stats")).hint(no_answers));
        }
    }
    if !value["based_on"].is_null() {
        return Err(Failure::new(format!(
            "{name} contains estimates from a part of the run, which are too inexact to compare"
        ))
        .hint("use JSON that omptrace stats --json printed without --estimate"));
    }
    let printed: Printed = serde_json::from_value(value).map_err(|error| {
        let doing = format!("{name} is not the output of omptrace stats");
        Failure::because(doing, &error).hint(no_answers)
    })?;
    if printed.left_out.contains_key("regions") {
        message::warning(&format!(
            "{name} was shortened and lacks some regions; to compare all regions, print the JSON again without --limit and --max-bytes"
        ));
    }
    let is_cut = printed.left_out.contains_key("functions");
    if is_cut {
        message::warning(&format!(
            "{name} was shortened and lacks some functions, so functions are not compared"
        ));
    }
    let left_out = printed.left_out.get("processes").and_then(Value::as_u64);
    let processes = printed.processes.len() + left_out.unwrap_or(0) as usize;
    let named = printed.processes.iter().filter(|process| !process.name.is_empty());
    let programs = named.map(|process| program_of(&process.name, process.pid, process.rank));
    let is_sampled = !printed.sampling.is_null() && !is_cut;
    Ok(Run {
        name: name.to_string(),
        answers: printed.answers,
        processes,
        programs: programs.map(str::to_owned).collect(),
        functions: is_sampled.then_some(printed.functions),
        steps: printed.steps,
        mpi_efficiency: printed.mpi_efficiency,
    })
}
