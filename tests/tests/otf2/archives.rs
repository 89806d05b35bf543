//! Archives as wholes: of several processes, of many threads, with their properties; complete, or not there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{
    Compiler, OPENMP_45, RUNTIMES_OF_TR6, compile, limited, omptrace_program, runtime,
};
use omptrace_tests::otf2::{assert_sound, events, number, printed, rows, text};
use omptrace_tests::trace::{Traced, Traces, convert, info, omptrace};
use serde_json::Value;

use crate::archive;

/// One archive of all traces of a folder.
fn archive_of(traces: &Traces, options: &[&str]) -> PathBuf {
    let out = traces.path().join("archive");
    convert(traces.path(), "otf2", &out, options);
    out.join("traces.otf2")
}

fn program(source: &str, arguments: &[&str], threads: &str) -> Command {
    let mut command = Command::new(compile(source, Compiler::Clang22, &[]));
    command.args(arguments).env("OMP_NUM_THREADS", threads);
    command
}

/// Intervals per name, of the location groups that have such a name.
fn names(answer: &Value) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for row in rows(&answer["intervals"]) {
        *names.entry(text(&row[3])).or_default() += 1;
    }
    names
}

#[test]
fn a_parent_and_its_child_are_two_processes_of_one_archive() {
    let traces = Traces::folder();
    traces.record(&mut program("tests/programs/fork_openmp.c", &["2", "50"], "2"));
    assert_eq!(traces.files().len(), 2);
    let anchor = archive_of(&traces, &[]);
    assert_sound(&anchor);
    let answer = events(&anchor);
    let counts = &answer["counts"];
    assert_eq!((&counts["ProgramBegin"], &counts["ProgramEnd"]), (&2.into(), &2.into()));
    // The parent has 100 regions, the child 50.
    assert_eq!(counts["ThreadFork"], 150);
    assert_eq!(counts["ThreadTeamBegin"], 300);
    printed(&anchor, &[]);
}

#[test]
fn ranks_of_a_job_are_processes_in_their_order() {
    const RANKS: usize = 3;
    let traces = Traces::folder();
    for rank in (0..RANKS).rev() {
        let mut command = program("examples/lock_fight.c", &["200"], "2");
        traces.record(command.env("OMPI_COMM_WORLD_RANK", rank.to_string()));
    }
    let anchor = archive_of(&traces, &[]);
    assert_sound(&anchor);
    let answer = events(&anchor);
    let groups: Vec<String> = rows(&answer["locations"]).map(|row| text(&row[2])).collect();
    let in_order = groups.iter().zip([0, 0, 1, 1, 2, 2]);
    for (group, rank) in in_order {
        assert!(group.starts_with(&format!("rank {rank}: ")), "{groups:?}");
    }
    assert_eq!(groups.len(), 2 * RANKS);
    // All that is in the archives of one process each, and no more.
    let mut alone = BTreeMap::new();
    for trace in traces.files() {
        let out = trace.with_extension("otf2");
        convert(&trace, "otf2", &out, &[]);
        for (name, count) in names(&events(&out.join("traces.otf2"))) {
            *alone.entry(name).or_default() += count;
        }
    }
    assert_eq!(names(&answer), alone);
    // The same locks in other processes are other locks.
    let mut locks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for row in rows(&answer["locks"]) {
        let orders = locks.entry(number(&row[2])).or_default();
        orders.push(number(&row[3]));
    }
    for mut orders in locks.into_values() {
        orders.sort_unstable();
        assert_eq!(orders, (1..=orders.len() as u64).collect::<Vec<_>>());
    }
}

/// More than a process may have files open on some machines, and more than have room for large chunks in readers.
#[test]
fn hundreds_of_threads_are_as_many_locations() {
    const THREADS: usize = 320;
    let traces = Traces::folder();
    let threads = THREADS.to_string();
    traces.record(program("examples/stencil.c", &["400", "2"], &threads).env("KMP_BLOCKTIME", "0"));
    let trace = traces.only();
    let out = traces.path().join("archive");
    let mut command = Command::new(omptrace_program());
    command.args(["convert", "--to", "otf2", "-o"]).arg(&out);
    let output = limited(command.arg(&trace), libc::RLIMIT_NOFILE, 64).output().expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    let anchor = out.join("traces.otf2");
    assert_sound(&anchor);
    let answer = events(&anchor);
    assert_eq!(rows(&answer["locations"]).count(), THREADS);
    assert!(printed(&anchor, &["-A"]).contains(&format!("Chunk size events              {}", 256 << 10)));
    printed(&anchor, &[]);
}

/// The properties of an archive, by name.
fn properties(anchor: &Path) -> BTreeMap<String, String> {
    let printed = printed(anchor, &["-A"]);
    let value = |line: &str, start: &str| line.strip_prefix(start).map(|rest| rest.trim().to_owned());
    let names = printed.lines().filter_map(|line| value(line, "Property name"));
    let values = printed.lines().filter_map(|line| value(line, "Property value"));
    names.zip(values).collect()
}

#[test]
fn properties_count_what_the_archive_was_made_of() {
    let traced = Traced::example("stencil", &["400", "20"]);
    let anchor = archive(&traced, &[]);
    let properties = properties(&anchor);
    let info = info(traced.trace());
    let count = |name: &str| properties[&format!("OMPTRACE::{name}")].parse::<u64>().expect("a number");
    assert_eq!(count("EVENTS"), info["events"].as_u64().expect("a number"));
    assert_eq!((count("LOST_EVENTS"), count("DAMAGES")), (0, 0));
    // LLVM's workers report their ends late, in each region but the last at least.
    assert!(count("REPAIRS::LATE_END") >= 20);
    let causes = properties.keys().filter_map(|name| name.strip_prefix("OMPTRACE::REPAIRS::"));
    let causes: u64 = causes.map(|cause| count(&format!("REPAIRS::{cause}"))).sum();
    assert_eq!(count("REPAIRS"), causes);
    assert_eq!(properties["OMPTRACE::VERSION"], env!("CARGO_PKG_VERSION"));
    assert_eq!(properties["OMPTRACE::RUNTIME"], text(&info["runtime"]["version"]));
    assert_eq!(properties["OMPTRACE::DIALECT"], "5.x");
    // Its process shows the same.
    let definitions = printed(&anchor, &["-G"]);
    let late_ends = format!("Value: {}", count("REPAIRS::LATE_END"));
    let of_process = |line: &str| {
        line.starts_with("LOCATION_GROUP_PROPERTY")
            && line.contains("\"OMPTRACE::REPAIRS::LATE_END\"")
            && line.contains(&late_ends)
    };
    assert!(definitions.lines().any(of_process), "{definitions}");
}

/// A thread without a chunk drops events: regions lack their begins or ends, locks their releases.
#[test]
fn a_trace_with_losses_gives_a_sound_archive_that_counts_them() {
    let traces = Traces::folder();
    let mut command = program("examples/lock_fight.c", &["50000"], "2");
    traces.trace(&mut command).env("OMPTRACE_BUFFER", "256K").env("OMPTRACE_ON_FULL", "drop");
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    let lost = number(&info(&traces.only())["lost"]);
    assert!(lost > 0);
    let anchor = archive_of(&traces, &[]);
    assert_sound(&anchor);
    printed(&anchor, &[]);
    assert_eq!(properties(&anchor)["OMPTRACE::LOST_EVENTS"], lost.to_string());
}

#[test]
fn damage_is_a_property() {
    let traced = Traced::example("stencil", &["400", "20"]);
    let mut bytes = fs::read(traced.trace()).expect("a trace");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    let damaged = traced.path("damaged.omptrace");
    fs::write(&damaged, bytes).expect("written");
    let out = traced.path("damaged");
    convert(&damaged, "otf2", &out, &[]);
    let anchor = out.join("traces.otf2");
    assert_sound(&anchor);
    let damages = &properties(&anchor)["OMPTRACE::DAMAGES"];
    assert_ne!(damages, "0");
}

#[test]
fn an_archive_replaces_an_archive_and_nothing_else() {
    let traced = Traced::example("nested", &["100", "2"]);
    let first = archive(&traced, &[]);
    let second = archive(&traced, &[]);
    assert_eq!(first, second);
    let folder = second.parent().expect("a folder");
    fs::write(folder.join("notes.txt"), "mine").expect("written");
    let words = ["convert", "--to", "otf2", "-o"].map(Path::new);
    let output = omptrace(words.into_iter().chain([folder, traced.trace()]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(second.exists() && folder.join("notes.txt").exists());
}

/// These runtimes do not report when they create the tasks of a taskloop, nor give them an id, and run several at once.
#[test]
fn tasks_that_nobody_created_are_created_when_they_run() {
    let flags = [OPENMP_45, "-DWITHOUT_TEAMS"];
    let program = compile("tests/programs/nearly_everything.c", Compiler::Clang14, &flags);
    for name in RUNTIMES_OF_TR6 {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        command.args(["3", "20"]).env("OMP_NESTED", "true").env("LD_LIBRARY_PATH", runtime(name));
        traces.record(&mut command);
        let anchor = archive_of(&traces, &[]);
        assert_sound(&anchor);
        let counts = &events(&anchor)["counts"];
        let [created, completed] =
            ["ThreadTaskCreate", "ThreadTaskComplete"].map(|name| number(&counts[name]));
        // The program reports 18 + 3T, and the reduction's 4 are not for OpenMP 4.5.
        assert_eq!([created, completed], [20 * 23; 2], "{name}");
    }
}

/// Of tasks that are cancelled before they run, these runtimes report nothing: they end with their region.
#[test]
fn tasks_that_were_cancelled_before_they_ran_are_complete() {
    let program = compile("tests/programs/cancelled_tasks.c", Compiler::Clang14, &[]);
    for name in RUNTIMES_OF_TR6 {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        command.env("OMP_CANCELLATION", "true").env("LD_LIBRARY_PATH", runtime(name));
        traces.record(&mut command);
        let anchor = archive_of(&traces, &[]);
        assert_sound(&anchor);
        let counts = &events(&anchor)["counts"];
        let [created, completed, switches] =
            ["Create", "Complete", "Switch"].map(|name| number(&counts[format!("ThreadTask{name}")]));
        assert_eq!(created, completed, "{name}");
        assert!(switches < created, "{name}: {switches} of {created}");
    }
}

/// Anchors anywhere below a folder.
fn anchors(folder: &Path) -> Vec<PathBuf> {
    let mut anchors = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("can be read").path();
        if path.is_dir() {
            anchors.extend(self::anchors(&path));
        } else if path.extension().is_some_and(|extension| extension == "otf2") {
            anchors.push(path);
        }
    }
    anchors
}

/// The system ends a process that writes beyond its limit, at once.
#[test]
fn a_conversion_that_is_killed_leaves_nothing_that_looks_complete() {
    let traced = Traced::example("lock_fight", &["20000"]);
    let out = traced.path("archive");
    let mut command = Command::new(omptrace_program());
    command.args(["convert", "--to", "otf2", "-o"]).arg(&out);
    let output = limited(command.arg(traced.trace()), libc::RLIMIT_FSIZE, 100 << 10)
        .output()
        .expect("omptrace can be run");
    assert_eq!(output.status.signal(), Some(libc::SIGXFSZ), "{output:?}");
    assert!(!out.exists());
    let folder = traced.trace().parent().expect("a folder");
    assert!(anchors(folder).is_empty(), "{:?}", anchors(folder));
    // What it left, if anything, does no harm.
    archive(&traced, &[]);
}
