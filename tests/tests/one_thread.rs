//! Timelines of teams of one thread, which runtimes report otherwise than usual. Number and time of tasks are those
//! of the program, nothing is left out, and the archive is sound.

use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, FURTHER_RUNTIMES, OpenMp, RUNTIMES, compile, runtime};
use omptrace_tests::trace::{Traces, convert, omptrace};
use serde_json::Value;

/// The end of a program.
struct Seen {
    stats: Value,
    /// The tasks that ran, as the program saw it.
    tasks: u64,
    /// The time of tasks, as the program saw it.
    in_tasks: u64,
}

impl Seen {
    /// The sum of a number of all constructs whose names, without `!$omp`, begin so.
    fn sum(&self, begin: &str, number: &str) -> u64 {
        let constructs = self.stats["constructs"].as_array().expect("a list");
        let is_called = |construct: &&Value| {
            let name = construct["name"].as_str().expect("a name");
            name.trim_start_matches("!$omp ").starts_with(begin)
        };
        let chosen = constructs.iter().filter(is_called);
        chosen.map(|construct| construct[number].as_u64().expect("a number")).sum()
    }

    /// A number of the main thread.
    fn of_main(&self, number: &str) -> u64 {
        self.stats["per_thread"][0][number].as_u64().expect("a number")
    }
}

fn run(compiler: Compiler, runtime_name: &str, arguments: &[&str]) -> Seen {
    let what = format!("{arguments:?} of {compiler:?} on {runtime_name}");
    let program = compile("tests/programs/one_thread.c", compiler, &[]);
    let folder = runtime(runtime_name);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args(arguments).env("OMP_NUM_THREADS", "1").env("LD_LIBRARY_PATH", &folder);
    if compiler == Compiler::Gcc {
        command.env("LD_PRELOAD", folder.join("libomp.so.5"));
    }
    let printed = traces.record(&mut command);
    let [tasks, in_tasks] =
        *printed.split_whitespace().map(|number| number.parse().expect("a number")).collect::<Vec<u64>>()
    else {
        panic!("{what}: {printed}");
    };
    let lost_tasks = arguments == ["detach"] && tasks < 6;
    let trace = traces.only();
    let archive = traces.path().join("archive.otf2");
    convert(&trace, "otf2", &archive, &[]);
    for path in [&trace, &archive] {
        let output = omptrace([Path::new("check"), path]);
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // The runtime's loss is the trace's.
        let is_complete = |line: &&str| !lost_tasks || !line.contains("never complete");
        let mut faults = said.lines().filter(is_complete);
        let is_fault = |line: &str| line.contains("warning") || line.contains("error");
        assert!(!faults.any(is_fault), "{what}: {said}");
        assert!(output.status.success() || lost_tasks, "{what}: {said}");
    }
    let output = omptrace([Path::new("stats"), &trace, Path::new("--json"), Path::new("--all")]);
    assert!(output.status.success(), "{what}: {output:?}");
    Seen { stats: serde_json::from_slice(&output.stdout).expect("JSON"), tasks, in_tasks }
}

fn runtimes() -> impl Iterator<Item = &'static str> {
    let further = FURTHER_RUNTIMES.iter();
    let further = further.filter(|further| further.openmp >= OpenMp::V51);
    RUNTIMES.iter().copied().chain(further.map(|further| further.name))
}

#[test]
fn a_single_in_a_nested_region_ends_nothing_around_it() {
    let of_clang = runtimes().map(|name| (Compiler::Clang14, name));
    let of_gcc = RUNTIMES.iter().map(|name| (Compiler::Gcc, *name));
    for (compiler, name) in of_clang.chain(of_gcc) {
        let seen = run(compiler, name, &["single"]);
        let what = format!("{compiler:?} on {name}: {}", seen.stats);
        assert_eq!(seen.sum("task", "count"), 3, "{what}");
        assert!(seen.sum("task", "total_ns") >= seen.in_tasks, "{what}");
        assert_eq!(seen.sum("single", "count"), 5, "{what}");
        assert_eq!(seen.sum("implicit task", "count"), 5, "{what}");
        assert_eq!(seen.of_main("tasks"), 3, "{what}");
    }
}

#[test]
fn a_region_ends_with_its_detached_tasks() {
    for name in runtimes() {
        let seen = run(Compiler::Clang14, name, &["detach"]);
        let what = format!("{name}: {}", seen.stats);
        assert_eq!(seen.sum("task @", "count"), seen.tasks, "{what}");
        assert!(seen.sum("task @", "total_ns") >= seen.in_tasks, "{what}");
        assert_eq!(seen.of_main("tasks"), seen.tasks, "{what}");
        // Nothing runs in the region but its tasks, so all else is waiting.
        assert!(seen.of_main("working_ns") >= seen.in_tasks, "{what}");
        assert_eq!(seen.sum("implicit barrier wait", "count"), 1, "{what}");
        let waited = seen.sum("implicit barrier wait", "self_ns");
        // Behind its implicit task, the thread waits for the end of the region.
        let join = seen.stats["accounting"]["join_ns"].as_u64().unwrap_or(0);
        assert!(seen.of_main("barriers_ns") - waited <= join, "{what}");
        let region = seen.sum("implicit task", "total_ns");
        assert!(region >= seen.in_tasks + waited, "{what}");
    }
}

#[test]
fn tasks_are_counted_however_deep_they_are_nested() {
    let seen = run(Compiler::Clang14, "llvm-19", &["deep", "2000"]);
    assert_eq!(seen.sum("task", "count"), 2000);
    assert_eq!(seen.of_main("tasks"), 2000);
}
