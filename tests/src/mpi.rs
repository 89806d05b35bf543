//! MPI jobs, recorded on Open MPI and MPICH.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_timeline::{MessageCounts, RankMessages, Timeline};
use omptrace_trace_format::Reader;
use serde_json::Value;

use crate::env::{Compiler, omptrace_program, on_path};

/// An MPI library, its launcher, and its name in traces.
pub type Library = (Compiler, &'static [&'static str], &'static str);

/// The libraries that programs are run on.
pub const LIBRARIES: [Library; 2] = [
    (Compiler::OpenMpi, &["mpirun.openmpi", "--oversubscribe"], "openmpi"),
    (Compiler::Mpich, &["mpirun.mpich", "-launcher", "fork"], "mpich"),
];

/// The command that runs the program by a launcher, recorded with these options where there are any. Its first argument is the folder,
/// in which traces appear.
///
/// # Panics
/// The launcher is missing.
pub fn launch(
    folder: &Path,
    (launcher, ranks): (&[&str], usize),
    program: &Path,
    record: Option<&[&str]>,
    arguments: &[&str],
) -> Command {
    let mut words: Vec<String> = Vec::new();
    if let Some(options) = record {
        words.push(omptrace_program().display().to_string());
        words.extend(["record", "-o", "rank%r.omptrace"].map(str::to_owned));
        words.extend(options.iter().map(|option| (*option).to_owned()));
        words.push("--".to_owned());
    }
    words.push(on_path(launcher[0]).display().to_string());
    words.extend(launcher[1..].iter().map(|word| (*word).to_owned()));
    words.extend(["-n".to_owned(), ranks.to_string(), program.display().to_string()]);
    words.push(folder.display().to_string());
    words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    // A job that hangs ends with a failure.
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "60"])
        .args(&words)
        .current_dir(folder)
        .env("OMP_NUM_THREADS", "2")
        // Tests may run as root.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// Runs what [`launch`] says.
///
/// # Panics
/// It cannot be run.
pub fn launched(
    folder: &Path,
    launcher: (&[&str], usize),
    program: &Path,
    record: Option<&[&str]>,
    arguments: &[&str],
) -> Output {
    launch(folder, launcher, program, record, arguments).output().expect("the launcher can be run")
}

/// The trace of a rank.
pub fn trace(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("rank{rank}.omptrace"))
}

/// The messages of a job, as they are matched.
///
/// # Panics
/// A trace is missing, or they are not all of a job.
pub fn matched(folder: &Path, ranks: usize) -> Vec<RankMessages> {
    let readers = (0..ranks).map(|rank| Reader::open(&trace(folder, rank)).expect("a trace"));
    let readers: Vec<Reader> = readers.collect();
    let timeline = Timeline::of(&readers.iter().collect::<Vec<_>>()).with_ranks();
    let all = timeline.ranks().expect("a job of MPI");
    assert!(all.are_complete(), "{all:?}");
    (0..ranks).map(|rank| all.process(rank).expect("a rank").clone()).collect()
}

/// What a rank has counted itself, which it prints by these names.
///
/// # Panics
/// A number is missing.
pub fn counted(said: &Value) -> MessageCounts {
    let number = |name: &str| said[name].as_u64().unwrap_or_else(|| panic!("{name}: {said}"));
    MessageCounts {
        sends: number("sends"),
        sent_bytes: number("sent_bytes"),
        receives: number("receives"),
        received_bytes: number("received_bytes"),
        collectives: number("collectives"),
        communicators: number("communicators"),
    }
}
