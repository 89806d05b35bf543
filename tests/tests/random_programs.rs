//! Random programs (`tests/src/generator.rs`): each does the same traced as bare, and its trace has what it counted itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, omptrace_program, runtime, tool_library};
use omptrace_tests::generator::{CLANG, COUNTS, GCC, Target, program};
use omptrace_tests::trace::{dump, omptrace};
use serde_json::Value;
use tempfile::TempDir;

/// How many programs of each compiler are tried, unless `OMPTRACE_TEST_PROGRAMS` says otherwise.
const PROGRAMS: u64 = 12;
/// Seconds that a program may take, which ends in milliseconds.
const PATIENCE: &str = "60";

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect(name))
}

type Counted = BTreeMap<String, i64>;

/// What the program counted itself.
fn own(output: &Output) -> Counted {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let mut counts: Counted = lines
        .map(|(name, count)| (name.to_owned(), count.parse().expect("a number")))
        .collect();
    counts.remove("sum");
    counts
}

/// The construct that an event counts for.
fn construct(event: &Value) -> Option<&'static str> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let flags = || i64::from_str_radix(text("flags").trim_start_matches("0x"), 16).unwrap_or(0);
    let begins = text("endpoint") == "begin";
    Some(match (text("event"), text("kind"), text("work_type")) {
        ("parallel_begin", ..) if flags() & 0x4000_0000 != 0 => "leagues",
        ("parallel_begin", ..) => "regions",
        // An explicit task, and none that stands for a taskwait.
        ("task_create", ..) if flags() & 0x14 == 4 => "tasks",
        ("mutex_acquired", "critical", _) => "criticals",
        ("mutex_acquired", "ordered", _) => "ordered",
        ("mutex_acquired", "lock", _) => "locks",
        ("work", _, "single_executor" | "single_other") if begins => "singles",
        ("work", _, "sections") if begins => "sections",
        ("work", _, "taskloop") if begins => "taskloops",
        ("work", _, kind) if begins && kind.starts_with("loop") => "loops",
        ("sync_region", "taskwait", _) if begins => "taskwaits",
        ("sync_region", "taskgroup", _) if begins => "taskgroups",
        ("sync_region", "barrier_explicit", _) if begins => "barriers",
        _ => return None,
    })
}

fn recorded(events: &[Value]) -> Counted {
    let mut counts: Counted = COUNTS.iter().map(|name| ((*name).to_owned(), 0)).collect();
    for name in events.iter().filter_map(construct) {
        *counts.get_mut(name).expect("one of all") += 1;
    }
    counts
}

/// What was wrong with a program, if anything.
fn fault(seed: u64, compiler: Compiler, target: &Target, folder: &Path) -> Result<(), String> {
    let (source, binary) = (folder.join("program.c"), folder.join("program"));
    let trace = folder.join("program.omptrace");
    fs::write(&source, program(seed, target)).expect("the folder is ours");
    let compiled = Command::new(compiler.path())
        .args(["-g", "-O1", "-fopenmp", "-o"])
        .args([&binary, &source])
        .output()
        .expect("the compiler can be run");
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let run = |mut command: Command| {
        command
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .env("OMP_CANCELLATION", "true")
            .env("OMP_MAX_ACTIVE_LEVELS", "4")
            .env("OMP_DYNAMIC", "false")
            .output()
            .expect("timeout can be run")
    };
    let timeout = || {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", PATIENCE]);
        command
    };
    let mut command = timeout();
    command.arg(&binary);
    let bare = run(command);
    if bare.status.code().is_none_or(|status| status > 100) {
        return Err(format!("bare: {bare:?}"));
    }
    let mut command = timeout();
    command.arg(omptrace_program()).args(["record", "--tool"]);
    command.arg(tool_library()).arg("-o").arg(&trace).arg("--");
    let traced = run({
        command.arg(&binary);
        command
    });
    if (bare.status, &bare.stdout) != (traced.status, &traced.stdout) {
        return Err(format!("bare {bare:?}\ntraced {traced:?}"));
    }
    let (mut own, mut recorded) = (own(&traced), recorded(&dump(&trace)));
    for name in target.unreported {
        own.remove(*name);
        recorded.remove(*name);
    }
    if own != recorded {
        return Err(format!(
            "the program counted {own:?}\nthe trace has  {recorded:?}"
        ));
    }
    let sound = |path: &Path| {
        let output = omptrace([Path::new("check"), path]);
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("check: {output:?}")),
        }
    };
    sound(&trace)?;
    for (format, name) in [
        ("chrome", "x.json"),
        ("perfetto", "x.pftrace"),
        ("text", "x.txt"),
        ("otf2", "x.otf2"),
    ] {
        let out = folder.join(name);
        let output = omptrace([
            Path::new("convert"),
            &trace,
            Path::new("--to"),
            Path::new(format),
            Path::new("-o"),
            &out,
        ]);
        if !output.status.success() {
            return Err(format!("{format}: {output:?}"));
        }
    }
    sound(&folder.join("x.otf2"))
}

fn check(compiler: Compiler, target: &Target) {
    let first = from_environment("OMPTRACE_TEST_SEED").unwrap_or(0);
    let programs = from_environment("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    let mut faults = String::new();
    for seed in first..first + programs {
        let folder = TempDir::new().expect("a temporary folder can be made");
        if let Err(fault) = fault(seed, compiler, target, folder.path()) {
            faults.push_str(&format!("seed {seed}, {}: {fault}\n", target.name));
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn of_clang() {
    check(Compiler::Clang22, &CLANG);
}

#[test]
fn of_gcc() {
    check(Compiler::Gcc, &GCC);
}
