//! Random MPI programs (`tests/src/mpi_generator.rs`): their traces have the calls and messages that they counted themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_mpi_api::function;
use omptrace_tests::env::root;
use omptrace_tests::mpi::{LIBRARIES, Library, counted, launched, matched, trace};
use omptrace_tests::mpi_generator::mpi_program;
use omptrace_tests::trace::{dump, omptrace};
use serde_json::Value;
use tempfile::TempDir;

/// How many programs of each library are tried, unless `OMPTRACE_TEST_PROGRAMS` says otherwise.
const PROGRAMS: u64 = 15;

type Calls = BTreeMap<String, u64>;

/// The calls of a rank's trace by their functions, and the tests that found nothing.
fn recorded(trace: &Path) -> Result<(Calls, u64), String> {
    let (mut calls, mut ends, mut fruitless) = (Calls::new(), Calls::new(), 0);
    for event in dump(trace) {
        let name = || {
            let number = event["function"].as_u64().unwrap_or(0) as u32;
            function(number).map_or("?", |function| function.name).to_owned()
        };
        match event["event"].as_str().unwrap_or_default() {
            "omptrace_call_begin" => *calls.entry(name()).or_default() += 1,
            "omptrace_call_end" => *ends.entry(name()).or_default() += 1,
            "omptrace_call_objects" if event["role"] == "spun" => {
                let tests = event["numbers"][0].as_str().and_then(|number| number.strip_prefix("0x"));
                fruitless += tests.and_then(|tests| u64::from_str_radix(tests, 16).ok()).unwrap_or(0);
            }
            _ => {}
        }
    }
    if calls != ends {
        return Err(format!("begins {calls:?}\nends   {ends:?}"));
    }
    Ok((calls, fruitless))
}

/// Compares a rank's trace and messages with what the rank has counted.
fn compare(said: &Value, folder: &Path, messages: &omptrace_timeline::RankMessages) -> Result<(), String> {
    let number = |name: &str| said[name].as_u64().unwrap_or_else(|| panic!("{name}: {said}"));
    let rank = number("rank") as usize;
    let own: Calls = serde_json::from_value(said["calls"].clone()).map_err(|error| error.to_string())?;
    let own = (own, number("fruitless"));
    let found = recorded(&trace(folder, rank))?;
    if own != found {
        return Err(format!("rank {rank} counted {own:?}\nthe trace has  {found:?}"));
    }
    let counts = counted(said);
    let alone = [messages.unmatched_sends.count, messages.unmatched_receives.count];
    let open = [messages.open_requests, messages.open_communicators];
    match (messages.counts == counts, alone, open) {
        (true, [0, 0], [0, 0]) => Ok(()),
        _ => Err(format!(
            "rank {rank} counted {counts:?}\nmatched are    {:?}, alone {alone:?}, open {open:?}",
            messages.counts
        )),
    }
}

/// Tries the program of a seed.
///
/// # Errors
/// Something differs.
fn tried(seed: u64, (compiler, launcher, _): Library, folder: &Path) -> Result<(), String> {
    let program = mpi_program(seed);
    let (source, binary) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, &program.text).expect("the folder is ours");
    let mut command = Command::new(compiler.path());
    command.args(["-g", "-O1", "-I"]).arg(root().join("tests/programs"));
    let compiled = command.arg(&source).arg("-o").arg(&binary).output().expect("the compiler can be run");
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let output = launched(folder, (launcher, program.ranks), &binary, Some(&["--quiet"]), &[]);
    if !output.status.success() {
        return Err(format!("{output:?}"));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if said.len() != program.ranks {
        return Err(format!("{output:?}"));
    }
    let messages = matched(folder, program.ranks);
    for of_rank in &said {
        compare(of_rank, folder, &messages[of_rank["rank"].as_u64().unwrap_or(0) as usize])?;
    }
    let traces: Vec<PathBuf> = (0..program.ranks).map(|rank| trace(folder, rank)).collect();
    let check = omptrace([&[PathBuf::from("check")], &traces[..]].concat());
    match check.status.success() && !String::from_utf8_lossy(&check.stdout).contains("mpi_") {
        true => Ok(()),
        false => Err(format!("{check:?}")),
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect(name))
}

fn check(library: Library) {
    let first = from_environment("OMPTRACE_TEST_SEED").unwrap_or(0);
    let programs = from_environment("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    let mut faults = String::new();
    for seed in first..first + programs {
        let folder = TempDir::new().expect("a temporary folder can be made");
        if let Err(fault) = tried(seed, library, folder.path()) {
            // Program and traces are kept.
            let folder = folder.keep();
            faults.push_str(&format!("seed {seed}, {}, in {}: {fault}\n", library.2, folder.display()));
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn on_open_mpi() {
    check(LIBRARIES[0]);
}

#[test]
fn on_mpich() {
    check(LIBRARIES[1]);
}
