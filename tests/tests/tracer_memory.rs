//! The tracer's memory stays within its setting, however many threads there are, and nothing is lost for it.

use std::process::Command;

use omptrace_tests::env::{RUNTIMES, empty_tool, program_on};
use omptrace_tests::trace::{Traces, info};
use serde_json::Value;

/// A chunk, and the least that `OMPTRACE_BUFFER` may be.
const CHUNK_KIB: i64 = 256;
/// The most that a thread may cost beside the memory for its events: its recorder, a few pages.
const RECORDER_KIB: i64 = 32;
/// The most that the process may cost: the library, the writer and the memory that this packs with.
const PROCESS_KIB: i64 = 8 * 1024;

/// A run of `many_threads`.
struct Run {
    way: &'static str,
    threads: i64,
    /// How often each thread sets its lock, which makes three events.
    each: i64,
    /// The most threads that are alive at the same time.
    at_once: i64,
    /// Threads that set a lock.
    working: i64,
    /// Parallel regions.
    regions: i64,
}

const THOUSAND_AT_ONCE: Run =
    Run { way: "at_once", threads: 1000, each: 1000, at_once: 1000, working: 1000, regions: 1 };
/// Each of the program's own threads, while the first one waits for it.
const TEN_THOUSAND_IN_TURN: Run =
    Run { way: "in_turn", threads: 10_000, each: 100, at_once: 2, working: 10_000, regions: 10_000 };
const NESTED_TEAMS: Run =
    Run { way: "nested", threads: 64, each: 1000, at_once: 4 * 64, working: 4 * 64, regions: 65 };
const TEAMS_WITHIN_TEAMS: Run =
    Run { way: "deep", threads: 64, each: 1000, at_once: 65, working: 2, regions: 64 };

/// Threads that have events for more than a chunk: without a limit, each would have a second one.
const FILLING: Run =
    Run { way: "at_once", threads: 250, each: 13_000, at_once: 250, working: 250, regions: 1 };

/// The program's own peak of memory.
#[track_caller]
fn peak_kib(said: &str) -> i64 {
    kib(said, "peak ")
}

#[track_caller]
fn kib(said: &str, name: &str) -> i64 {
    said.lines()
        .find_map(|line| line.strip_prefix(name)?.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {said:?}"))
}

impl Run {
    fn command(&self, runtime: &str) -> Command {
        let numbers = [self.threads, self.each].map(|number| number.to_string());
        let arguments = [self.way, &numbers[0], &numbers[1]];
        let mut command = program_on(runtime, "many_threads.c", &arguments);
        command.env("OMP_STACKSIZE", "64k");
        command
    }

    /// The program's memory under a tool that does nothing.
    fn kib_without_tracer(&self, runtime: &str) -> i64 {
        let mut command = self.command(runtime);
        command.env("OMP_TOOL_LIBRARIES", empty_tool());
        let output = command.output().expect("the program can be run");
        peak_kib(&String::from_utf8_lossy(&output.stdout))
    }

    /// Traces the program with so much memory per thread, and a further setting: the tracer takes no more. Returns what
    /// `omptrace info` says of the trace.
    #[track_caller]
    fn check_memory(&self, runtime: &str, buffer_kib: i64, (name, value): (&str, &str)) -> Value {
        let traces = Traces::folder();
        let mut command = self.command(runtime);
        command.env("OMPTRACE_BUFFER", format!("{buffer_kib}K")).env(name, value);
        let with = peak_kib(&traces.record(&mut command));
        let without = self.kib_without_tracer(runtime);
        let most = PROCESS_KIB + self.at_once * (buffer_kib + RECORDER_KIB);
        assert!(
            with < without + most,
            "{} on {runtime}, {name}={value}: {with} KiB, without the tracer {without}; at most {most} more",
            self.way
        );
        info(&traces.only())
    }

    /// Like [`Run::check_memory`], and nothing is lost.
    #[track_caller]
    fn check(&self, runtime: &str, compress: &str) {
        let info = self.check_memory(runtime, CHUNK_KIB, ("OMPTRACE_COMPRESS", compress));
        let counts = &info["events_by_name"];
        for (name, expected) in [
            ("mutex_acquire", self.each * self.working),
            ("mutex_acquired", self.each * self.working),
            ("mutex_released", self.each * self.working),
            ("lock_init", self.working),
            ("lock_destroy", self.working),
            ("parallel_begin", self.regions),
            ("parallel_end", self.regions),
        ] {
            assert_eq!(counts[name], expected, "{name}, {} on {runtime}, {compress}", self.way);
        }
        assert_eq!(counts["thread_begin"], counts["thread_end"]);
        assert_eq!(info["lost"], 0);
    }

    /// Once as it is, once without the writer, and on another vendor's runtime.
    #[track_caller]
    fn check_all(&self) {
        self.check("llvm-19", "auto");
        self.check("llvm-19", "off");
        self.check("intel-2026", "auto");
    }
}

/// Batch systems may limit what is reserved, not what is used: a segment for events, and what malloc(3) reserves for a thread.
#[test]
fn address_space_is_for_the_threads_that_there_are() {
    let program = || program_on("llvm-19", "address_space.c", &[]);
    let traces = Traces::folder();
    let with = kib(&traces.record(&mut program()), "address space ");
    let without = program().env("OMP_TOOL_LIBRARIES", empty_tool()).output();
    let without = without.expect("the program can be run").stdout;
    let without = kib(&String::from_utf8_lossy(&without), "address space ");
    assert!(with < without + 256 * 1024, "{with} KiB, without the tracer {without}");
}

#[test]
fn of_a_thousand_threads_at_once() {
    THOUSAND_AT_ONCE.check_all();
}

#[test]
fn of_threads_that_fill_their_chunks() {
    FILLING.check_all();
}

#[test]
fn of_threads_that_drop_what_does_not_fit() {
    let events = |info: &Value| {
        let counts = info["events_by_name"].as_object().expect("counts");
        let of_runtime = counts.iter().filter(|(name, _)| !name.starts_with("omptrace_"));
        of_runtime.filter_map(|(_, count)| count.as_i64()).sum::<i64>()
    };
    let drop = ("OMPTRACE_ON_FULL", "drop");
    let few = Run { each: 1, ..FILLING };
    let all = events(&few.check_memory("llvm-19", CHUNK_KIB, drop));
    let info = FILLING.check_memory("llvm-19", CHUNK_KIB, drop);
    let lost = info["lost"].as_i64().expect("a number");
    assert!(lost > 0);
    // What is not there is counted.
    let more = 3 * FILLING.working * (FILLING.each - few.each);
    assert_eq!(events(&info) + lost, all + more);
}

#[test]
fn of_flight_recorders() {
    let flight = ("OMPTRACE_MODE", "flight");
    let filling = Run { each: 2 * FILLING.each, ..FILLING };
    for run in [filling, TEN_THOUSAND_IN_TURN] {
        // One chunk for old events, while the other gets new ones.
        let info = run.check_memory("llvm-19", 2 * CHUNK_KIB, flight);
        let newest = &info["events_by_name"]["mutex_released"];
        assert!(newest.as_i64() > Some(run.each), "{newest}");
        assert_eq!(info["lost"], 0);
    }
}

#[test]
fn of_ten_thousand_threads_one_after_the_other() {
    TEN_THOUSAND_IN_TURN.check_all();
    // When a thread ends, and what it leaves behind, is each runtime's own.
    for runtime in RUNTIMES {
        let fewer = Run { threads: 2000, working: 2000, regions: 2000, ..TEN_THOUSAND_IN_TURN };
        fewer.check(runtime, "auto");
    }
}

#[test]
fn of_nested_teams() {
    NESTED_TEAMS.check_all();
    TEAMS_WITHIN_TEAMS.check_all();
}
