//! SIGKILL at random moments. The trace holds at least what the program had finished on each thread, and no event
//! twice. It says how the program ended.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use omptrace_tests::env::{Compiler, compile, libgomp_adapter, omptrace_program};
use omptrace_tests::trace::{Traces, dump, info, omptrace};
use serde_json::Value;

const THREADS: usize = 2;

/// How many programs are killed, unless `OMPTRACE_TEST_KILLS` says otherwise: enough to find what is not rare.
const KILLS: u64 = 25;
/// The same on libgomp, where the tracer is the same.
const KILLS_ON_LIBGOMP: u64 = 8;
/// They are killed within this time after they are ready.
const MOMENTS_US: u64 = 100_000;

/// Constructs that a thread of `kill_me` had finished: regions, criticals, tasks, loops.
type Finished = [u64; 4];

/// The rounds that the threads had finished, from the file shared with the killed program.
fn finished(shared: &Path) -> Vec<Finished> {
    let bytes = fs::read(shared).expect("the program made it");
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    let numbers: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
    numbers.chunks_exact(4).map(|n| n.try_into().expect("four")).collect()
}

/// The same constructs in the events of a stream.
fn recorded(events: &[Value], stream: usize) -> Finished {
    let of = |name: &str, rest: &dyn Fn(&Value) -> bool| {
        let here = |event: &&Value| event["stream"] == stream && event["event"] == name && rest(event);
        events.iter().filter(here).count() as u64
    };
    [
        of("parallel_end", &|_| true),
        of("mutex_released", &|_| true),
        of("task_schedule", &|event| event["prior_task_status"] == "complete"),
        of("work", &|event| event["endpoint"] == "end"),
    ]
}

/// No id is begun twice, and time does not go back within a stream.
fn check_once(events: &[Value]) {
    let mut created = HashSet::new();
    for event in events.iter().filter(|event| event["event"] == "task_create") {
        assert!(created.insert(event["new_task_data"].to_string()), "twice: {event}");
    }
    for stream in 1..=THREADS {
        let times: Vec<i64> = events
            .iter()
            .filter(|event| event["stream"] == stream)
            .map(|event| event["time_ns"].as_i64().expect("a number"))
            .collect();
        assert!(times.is_sorted());
    }
}

/// Kills the program `after` it was ready, started through `start`.
fn kill(mut command: Command, after: Duration) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be run");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("the program says that it is ready");
    assert_eq!(line, "ready\n");
    std::thread::sleep(after);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// A number that the environment gives to longer runs.
fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect(name))
}

/// Moments all over [`MOMENTS_US`], others for each seed: Weyl's sequence with the golden ratio, shifted by another.
fn moment(round: u64, seed: u64) -> Duration {
    let step = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let fraction = step.wrapping_add(seed.wrapping_mul(0xd1b5_4a32_d192_ed03)) >> 32;
    Duration::from_micros((fraction * MOMENTS_US) >> 32)
}

#[test]
fn nothing_is_lost() {
    let program = compile("tests/programs/kill_me.c", Compiler::Clang22, &[]);
    loses_nothing(KILLS, || Command::new(&program));
}

#[test]
fn nothing_is_lost_on_libgomp() {
    let program = compile("tests/programs/kill_me.c", Compiler::Gcc, &[]);
    loses_nothing(KILLS_ON_LIBGOMP, || {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", libgomp_adapter());
        command
    });
}

/// Kills `kill_me`, which `program` starts, once in each round.
fn loses_nothing(rounds: u64, program: impl Fn() -> Command) {
    let seed = from_environment("OMPTRACE_TEST_SEED").unwrap_or(0);
    for round in 0..from_environment("OMPTRACE_TEST_KILLS").unwrap_or(rounds) {
        let traces = Traces::folder();
        let shared = traces.path().join("finished");
        let mut command = program();
        command.arg(&shared).arg(THREADS.to_string());
        traces.trace(&mut command);
        // Every other one without the writer thread.
        command.env("OMPTRACE_COMPRESS", if round % 2 == 0 { "auto" } else { "off" });
        kill(command, moment(round, seed));

        let trace = traces.files().pop().expect("a trace");
        let events = dump(&trace);
        for (thread, finished) in finished(&shared).into_iter().enumerate() {
            let recorded = recorded(&events, thread + 1);
            for (recorded, finished) in recorded.iter().zip(finished) {
                assert!(*recorded >= finished, "round {round}, thread {thread}: {recorded} of {finished}");
            }
        }
        check_once(&events);
    }
}

#[test]
fn record_seals_it_and_knows_the_signal() {
    let program = compile("tests/programs/kill_me.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let (shared, trace) = (traces.path().join("finished"), traces.path().join("x.omptrace"));
    let script = format!("{0} {1} & sleep 1; kill -9 $!; wait $!", program.display(), shared.display());
    // The killed process is not the one that record starts: only the exit status of the script is known.
    let output = Command::new(omptrace_program())
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", &script])
        .output()
        .expect("omptrace can be run");
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    assert!(!trace.with_extension("omptrace.spool").exists());
    assert!(recorded(&dump(&trace), 1)[0] >= finished(&shared)[0][0]);

    // Here it is.
    let killer = format!("(sleep 1; kill -9 $$) & exec {} {}", program.display(), shared.display());
    let output = Command::new(omptrace_program())
        .args(["record", "-o"])
        .arg(traces.path().join("z.omptrace"))
        .args(["--", "sh", "-c", &killer])
        .output()
        .expect("omptrace can be run");
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let trace = traces.path().join("z.omptrace");
    assert_eq!(info(&trace)["ending"], "killed by signal 9");
    let json = traces.path().join("z.json");
    let output = omptrace([
        Path::new("convert"),
        &trace,
        Path::new("--to"),
        Path::new("chrome"),
        Path::new("-o"),
        &json,
    ]);
    assert!(output.status.success(), "{output:?}");
}
