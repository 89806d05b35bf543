//! Programs on libgomp that end in unusual ways, fork, or leave their functions by other ways than `return`. They do so as
//! without the tracer, and their traces are exact.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use omptrace_tests::sanitized;
use omptrace_tests::trace::{Counts, Traces, counts, dump, info, omptrace};

use crate::{adapted, bare, compiled, conformance, output};

/// Threads of a team, and regions of a run of `reliability_ends`.
const THREADS: u64 = 2;
const ROUNDS: u64 = 1000;

/// Regions begun and ended, and criticals or locks left.
type Regions = [u64; 3];

fn regions_of(counts: &Counts) -> Regions {
    ["parallel_begin", "parallel_end", "mutex_released"].map(|name| counts.get(name).copied().unwrap_or(0))
}

/// All traces, each as [`Regions`], in ascending order.
fn regions(traces: &Traces) -> Vec<Regions> {
    let of = |trace: &Path| regions_of(&counts(&dump(trace)));
    let mut all: Vec<_> = traces.files().iter().map(|trace| of(trace)).collect();
    all.sort_unstable();
    all
}

/// What `command` said and how it ended, traced into `traces`.
fn run(traces: &Traces, mut command: Command) -> Output {
    output(adapted(traces.trace(&mut command)))
}

/// `omptrace check` finds no fault with any of the traces.
#[track_caller]
fn are_sound(traces: &Traces) {
    for trace in traces.files() {
        let check = omptrace([Path::new("check"), &trace]);
        assert!(check.status.success(), "{check:?}");
    }
}

#[test]
fn every_event_before_a_sudden_end_is_kept() {
    for how in ["segv", "abort", "_exit", "quick_exit", "exec"] {
        for (place, begun) in [("", ROUNDS), ("_in_region", ROUNDS + 1)] {
            let how = format!("{how}{place}");
            let program = || bare("reliability_ends.c", &[&how], false);
            let expected = output(&mut program());
            assert_eq!(expected.stdout, b"checksum 2000\n", "{how}: {expected:?}");
            let traces = Traces::folder();
            assert_eq!(run(&traces, program()), expected, "{how}");
            assert_eq!(regions(&traces), [[begun, ROUNDS, THREADS * ROUNDS]], "{how}");
            assert_eq!(info(&traces.files()[0])["ending"], "did not finish");
        }
    }
}

#[test]
fn exit_within_a_region_completes_the_trace() {
    let program = || bare("exit_in_parallel.c", &["2", "7"], false);
    let expected = output(&mut program());
    assert_eq!(expected.status.code(), Some(7));
    let traces = Traces::folder();
    assert_eq!(run(&traces, program()), expected);
    traces.only();
    assert_eq!(regions(&traces), [[2, 1, 0]]);
}

/// libgomp ends the threads of main's pool then; one of the program's own stays.
#[test]
fn a_program_whose_main_thread_left_can_be_read_while_it_stays() {
    let traces = Traces::folder();
    let mut command = bare("reliability_ends.c", &["pthread_exit"], false);
    let child = adapted(traces.trace(&mut command)).stdout(Stdio::null()).spawn();
    let mut child = child.expect("it can be run");
    let stat = format!("/proc/{}/stat", child.id());
    // The kernel shows a process whose first thread has gone as a zombie.
    while !fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
    assert_eq!(regions(&traces), expected);
    child.kill().expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    assert_eq!(regions(&traces), expected);
    let counts = counts(&dump(&traces.files()[0]));
    assert_eq!(counts["thread_end"], THREADS, "{counts:?}");
}

#[test]
fn a_program_that_replaces_itself_has_a_trace_for_each_time() {
    let program = || bare("exec_self.c", &["2", "3"], false);
    let expected = output(&mut program());
    let traces = Traces::folder();
    assert_eq!(run(&traces, program()), expected);
    assert_eq!(regions(&traces), [[1, 1, 0]; 3]);
}

#[test]
fn children_leave_their_parents_trace_exact() {
    // Locks are all that libgomp can do in a child of a process with threads.
    for (how, locks) in
        [("fork", None), ("vfork", None), ("spawn", None), ("clone", None), ("clone_openmp", Some(20))]
    {
        const CHILDREN: usize = 10;
        let traces = Traces::folder();
        let arguments = [how, "2", &CHILDREN.to_string(), "20"];
        let said = run(&traces, bare("reliability_children.c", &arguments, false));
        assert!(said.status.success(), "{how}: {said:?}");
        assert_eq!(String::from_utf8_lossy(&said.stderr), "", "{how}");
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        let n = stdout.trim().strip_prefix("regions ");
        let n: u64 = n.and_then(|n| n.parse().ok()).expect("a number");
        let mut expected = Vec::new();
        if let Some(locks) = locks {
            expected.resize(CHILDREN, [0, 0, locks]);
        }
        expected.push([n, n, 2 * n]);
        assert_eq!(regions(&traces), expected, "{how}");
    }
}

#[test]
fn a_child_that_uses_openmp_has_a_trace_of_its_own() {
    for (source, arguments, expected) in [
        // libgomp itself hangs where a child of a process with threads wants more than one.
        ("fork_openmp.c", ["1", "500"].as_slice(), [[500, 500, 0], [1000, 1000, 0]].as_slice()),
        ("fork_first.c", &["2"], &[[1, 1, 0], [1, 1, 0]]),
        ("fork_exit.c", &["2", "3"], &[[4, 4, 0]]),
        ("fork_system.c", &["2"], &[[2, 2, 0]]),
    ] {
        let untraced = output(&mut bare(source, arguments, false));
        let traces = Traces::folder();
        assert_eq!(run(&traces, bare(source, arguments, false)), untraced, "{source}");
        assert_eq!(regions(&traces), expected, "{source}");
        assert_eq!(traces.all_files(), traces.files(), "{source}");
        are_sound(&traces);
    }
}

/// The tool is there before the fork; the threads are each process's own, and each reports their ends.
#[test]
fn a_child_of_a_process_without_threads_ends_as_its_parent_does() {
    let program = || bare("fork_first.c", &["2", "set"], false);
    let untraced = output(&mut program());
    let traces = Traces::folder();
    assert_eq!(run(&traces, program()), untraced);
    assert_eq!(regions(&traces), [[1, 1, 0], [1, 1, 0]]);
    for trace in traces.files() {
        let counts = counts(&dump(&trace));
        assert_eq!(counts["thread_end"], 2, "{counts:?}");
        assert_eq!(counts["implicit_task/end"], 3, "{counts:?}");
    }
    are_sound(&traces);
}

#[test]
fn threads_that_a_pause_ends_are_reported() {
    for how in ["soft", "hard"] {
        let untraced = output(&mut bare("pause_resource.c", &["2", how], false));
        let traces = Traces::folder();
        let traced = run(&traces, bare("pause_resource.c", &["2", how], false));
        assert_eq!(traced, untraced, "{how}");
        let counts = counts(&dump(&traces.only()));
        assert_eq!(regions_of(&counts), [2, 2, 0], "{how}");
        // Main, and a worker before and after the pause.
        assert_eq!(counts["thread_begin"], 3, "{how}");
        assert_eq!(counts["thread_end"], 3, "{how}");
        are_sound(&traces);
    }
}

#[test]
fn threads_are_cancelled_between_regions() {
    let traces = Traces::folder();
    let said = run(&traces, bare("reliability_cancelled_threads.c", &[], false));
    assert!(said.status.success(), "{said:?}");
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
    let done = stdout.trim().strip_prefix("regions ");
    let done: u64 = done.and_then(|done| done.parse().ok()).expect("a number");
    traces.only();
    assert_eq!(regions(&traces), [[done, done, 0]]);
}

/// `gcc_unwinding`, untraced.
fn unwinding(how: &str) -> Command {
    let mut command = sanitized::command(&compiled("gcc_unwinding.cpp", &["-lstdc++"]));
    command.args([how, &THREADS.to_string(), &UNWINDING_ROUNDS.to_string()]);
    command
}

const UNWINDING_ROUNDS: u64 = 20;

#[test]
fn exceptions_and_jumps_within_constructs_change_no_event() {
    for how in ["catch", "longjmp"] {
        let untraced = output(&mut unwinding(how));
        assert!(untraced.status.success(), "{untraced:?}");
        let (report, checked) = conformance(adapted(&mut unwinding(how)));
        assert_eq!(checked, untraced, "{how}");
        assert!(report.contains(", 0 faults\n"), "{how}: {report}");
        let traces = Traces::folder();
        assert_eq!(run(&traces, unwinding(how)), untraced, "{how}");
        let counts = counts(&dump(&traces.only()));
        assert_eq!(regions_of(&counts), UNWOUND.map(|count| count * UNWINDING_ROUNDS), "{how}");
        assert_eq!(counts["task_create"], UNWOUND_TASKS * UNWINDING_ROUNDS);
        are_sound(&traces);
    }
}

/// What `gcc_unwinding` does in each round: a region, and one in each thread of it; two mutexes in each thread.
const UNWOUND: Regions = [1 + THREADS, 1 + THREADS, 2 * THREADS];
/// Two in each thread, and those of a taskloop.
const UNWOUND_TASKS: u64 = 2 * THREADS + 8;

#[test]
fn a_program_is_terminated_where_an_exception_leaves_a_construct() {
    for (how, tasks) in [("leave_region", 0), ("leave_task", 1), ("leave_undeferred", 1)] {
        let untraced = output(&mut unwinding(how));
        assert_eq!(untraced.status.signal(), Some(libc::SIGABRT), "{how}");
        let traces = Traces::folder();
        assert_eq!(run(&traces, unwinding(how)), untraced, "{how}");
        let counts = counts(&dump(&traces.files()[0]));
        let mut expected = UNWOUND.map(|count| count * UNWINDING_ROUNDS);
        expected[0] += 1;
        assert_eq!(regions_of(&counts), expected, "{how}");
        let expected = UNWOUND_TASKS * UNWINDING_ROUNDS + tasks;
        assert_eq!(counts["task_create"], expected, "{how}");
    }
}

#[test]
fn threads_that_leave_by_pthread_exit_end_with_their_pools() {
    let untraced = output(&mut unwinding("pthread_exit"));
    assert!(untraced.status.success(), "{untraced:?}");
    let (report, checked) = conformance(adapted(&mut unwinding("pthread_exit")));
    assert_eq!(checked, untraced);
    assert!(report.contains(", 0 faults\n"), "{report}");
    let traces = Traces::folder();
    assert_eq!(run(&traces, unwinding("pthread_exit")), untraced);
    let events = dump(&traces.only());
    let led = THREADS * UNWINDING_ROUNDS;
    assert_eq!(regions_of(&counts(&events)), [led, led, 1]);
    let initial =
        events.iter().filter(|event| event["event"] == "thread_begin" && event["thread_type"] == "initial");
    assert_eq!(initial.count() as u64, THREADS + 1);
    are_sound(&traces);
}
