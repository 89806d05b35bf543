//! Programs in production crash, fork under load, get signals, run out of disk, live in sandboxes, and share the
//! runtime with other tools. The program never notices the tracer, and nothing is lost silently.

mod callbacks;
mod children;
mod disks;
mod ends;
mod files;
mod limits;
mod loader;
mod other_tools;
mod permissions;
mod sanitizers;
mod settings;
mod signals;
mod storage;
mod within;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::program_on;
use omptrace_tests::trace::{Traces, count, dump, info};
use serde_json::Value;

/// Threads of a team, and regions of a run of `reliability_ends`.
const THREADS: usize = 2;

const ROUNDS: usize = 1000;

/// The program of `source`, for every runtime, on LLVM 19's.
fn program(source: &str, arguments: &[&str]) -> Command {
    program_on("llvm-19", source, arguments)
}

/// The output of `command` and how it ended, traced into `traces`.
fn run(traces: &Traces, command: &mut Command) -> Output {
    traces.trace(command).output().expect("it can be run")
}

/// `program`, which does not wait for ever for what does not come.
fn patient(program: &str) -> Command {
    let mut command = Command::new("timeout");
    // unshare survives anything less.
    command.args(["--signal=KILL", "120", program]);
    command
}

/// The number behind `word` on stdout.
#[track_caller]
fn number(output: &str, word: &str) -> usize {
    let mut words = output.split_whitespace();
    words
        .find(|other| *other == word)
        .and_then(|_| words.next()?.parse().ok())
        .unwrap_or_else(|| panic!("no `{word}` in {output:?}"))
}

/// Regions begun and ended, and criticals or locks left.
fn regions(events: &[Value]) -> [usize; 3] {
    ["parallel_begin", "parallel_end", "mutex_released"].map(|name| count(events, name))
}

/// Whether `omptrace info` finds what has this name.
fn finds(trace: &Path, name: &str) -> bool {
    let info = info(trace);
    let mut findings = info["findings"].as_array().expect("a list").iter();
    findings.any(|finding| finding["name"] == name)
}

/// All traces, each as [`regions`], in ascending order.
fn all_regions(traces: &Traces) -> Vec<[usize; 3]> {
    let of = |trace: &PathBuf| regions(&dump(trace));
    let mut all: Vec<_> = traces.files().iter().map(of).collect();
    all.sort_unstable();
    all
}

/// One line of the tracer on stderr, which contains `words`, and besides at most the runtime's.
#[track_caller]
fn one_line(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| !line.starts_with("OMP: ")).collect();
    assert_eq!(ours.len(), 1, "{said}");
    assert!(ours[0].starts_with("omptrace: ") && ours[0].contains(words), "{said}");
}
