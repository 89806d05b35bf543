//! One run of a program under a tool.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::process::output;
use crate::result::Result;

use super::case::Case;
use super::folder::folder;
use super::tools::{Leaves, Tool, Tools};
use crate::bench::tools::lttng::Session;

/// The times of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) wall_ns: f64,
    /// The program's own threads.
    pub(super) threads_ns: f64,
    /// The whole process from start to end, with all threads of the tool.
    pub(super) process_ns: f64,
    pub(super) start_ns: f64,
    /// From the end of `main` until the process is gone.
    pub(super) exit_ns: f64,
    pub(super) peak_kib: f64,
}

/// The output of `tests/benches/programs/measure.c`.
#[derive(Deserialize)]
struct Printed {
    start_ns: u64,
    wall_ns: u64,
    threads_ns: u64,
    peak_kib: u64,
    end_ns: u64,
}

/// The folder that a tool's runs leave their files in.
pub(super) fn output_folder(tool: &Tool) -> PathBuf {
    folder().join("output").join(tool.name)
}

/// Our trace of the tool's last run.
pub(super) fn trace(tool: &Tool) -> PathBuf {
    output_folder(tool).join("trace.omptrace")
}

/// Runs and measures. What the run left stays until the tool's next one.
///
/// # Errors
/// The program cannot be run, or fails.
pub(super) fn measure(case: &Case<'_>, tool: &Tool) -> Result<Sample> {
    let mut command = prepare(case, tool, &case.executable)?;
    let session = match tool.leaves {
        Leaves::Session => Some(Session::begin(&output_folder(tool))?),
        _ => None,
    };
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    child.stdout.take().expect("stdout is a pipe").read_to_string(&mut text)?;
    let used = wait(child)?;
    let gone_ns = monotonic_ns();
    drop(session);
    let printed: Printed = serde_json::from_str(&text)
        .map_err(|error| format!("{} under {} printed {text:?}: {error}", case.name(), tool.name))?;
    Ok(Sample {
        wall_ns: printed.wall_ns as f64,
        threads_ns: printed.threads_ns as f64,
        process_ns: used.cpu_ns as f64,
        start_ns: printed.start_ns as f64,
        exit_ns: gone_ns.saturating_sub(printed.end_ns) as f64,
        peak_kib: printed.peak_kib as f64,
    })
}

/// Events of the case.
///
/// # Errors
/// The program cannot be run, or the counting tool says nothing.
pub(super) fn events(case: &Case<'_>, tools: &Tools) -> Result<u64> {
    let mut command = prepare(case, &tools.count, &case.executable)?;
    let counts = output_folder(&tools.count).join("counts.json");
    output(command.env("COUNT_OUT", &counts))?;
    let counts: std::collections::BTreeMap<String, u64> = serde_json::from_slice(&fs::read(counts)?)?;
    Ok(counts.values().sum())
}

/// A command that runs the case under the tool, `program` being the program or what runs it, in an emptied folder.
///
/// # Errors
/// The folder cannot be emptied.
pub(super) fn prepare(case: &Case<'_>, tool: &Tool, program: impl AsRef<OsStr>) -> Result<Command> {
    let folder = output_folder(tool);
    empty(&folder)?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OMP_", "KMP_", "OMPTRACE_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
        .env("OMP_NUM_THREADS", case.threads.to_string())
        .env("OMPTRACE_OUTPUT", trace(tool))
        .env("BENCH_OUTPUT", &folder)
        .envs(tool.variables.iter().copied());
    if let Some(library) = &tool.library {
        command.env("OMP_TOOL_LIBRARIES", library);
        if tool.leaves == Leaves::Trace {
            command.env("OMPTRACE_ANNOTATION_LIBRARY", library);
        }
    }
    if command.get_program() == case.executable {
        command.arg(case.count.to_string());
    }
    Ok(command)
}

fn empty(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(fs::create_dir_all(folder)?),
    }
}

/// The resources that a process had used when it was gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// CPU time of all threads, with the system's part.
    pub(super) cpu_ns: u64,
    /// The most memory that was resident.
    pub(super) peak_kib: u64,
}

/// Waits for the end of `child`.
///
/// # Errors
/// It did not end well.
pub(super) fn wait(child: Child) -> Result<Used> {
    let mut status = 0;
    // SAFETY: all zeros is a value of this plain structure of C.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are valid for writing; the child was not waited for yet, so its number is still its own.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        return Err(format!("a program ended with wait status {status:#x}").into());
    }
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(Used { cpu_ns: (us(usage.ru_utime) + us(usage.ru_stime)) * 1_000, peak_kib: usage.ru_maxrss as u64 })
}

fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, with the system's part.
pub(super) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
