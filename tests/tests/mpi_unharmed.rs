//! MPI programs that do what tools may disturb end as they do alone, and their traces have the calls that they counted.

use std::fs::{self, Permissions};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::mpi::{LIBRARIES, Library, launch, launched, matched, trace};
use omptrace_tests::trace::{Traces, count, dump, info, omptrace};

const SOURCE: &str = "tests/programs/mpi_unharmed.c";
const RANKS: usize = 2;

fn program(compiler: Compiler, flags: &[&str]) -> PathBuf {
    compile(SOURCE, compiler, &[&["-fno-openmp"], flags].concat())
}

/// A recorded job, which has ended as the job alone.
struct Job {
    traces: Traces,
    case: String,
}

impl Job {
    fn of((compiler, launcher, name): Library, how: &str) -> Job {
        Job::with_program((launcher, name), &program(compiler, &[]), how)
    }

    fn with_program((launcher, name): (&[&str], &str), program: &Path, how: &str) -> Job {
        let alone = Traces::folder();
        let alone = launched(alone.path(), (launcher, RANKS), program, None, &[how]);
        let traces = Traces::folder();
        let recorded = launched(traces.path(), (launcher, RANKS), program, Some(&["--quiet"]), &[how]);
        let case = format!("{name} {how}: {recorded:?}");
        // A signal ends a launcher in one way, and `record` says so in another.
        assert_eq!(code(&recorded), code(&alone), "{case}");
        assert_eq!(lines(&recorded), lines(&alone), "{case}");
        assert!(!lines(&alone).is_empty(), "{case}");
        Job { traces, case }
    }

    fn folder(&self) -> &Path {
        self.traces.path()
    }

    /// The number of calls that a process has counted, and whose trace is to have them.
    fn counted(&self, what: &str, rank: usize) -> usize {
        let text = fs::read_to_string(self.folder().join(format!("{what}{rank}")));
        let text = text.unwrap_or_else(|error| panic!("{what}{rank}: {error}, {}", self.case));
        text.trim().parse().expect("a number")
    }

    /// Compares the traces of all ranks: all calls are there with their ends.
    fn has_all_calls(&self) {
        for rank in 0..RANKS {
            self.compare(&trace(self.folder(), rank), self.counted("rank", rank), 0..=0);
        }
    }

    /// Compares one trace; some calls have no end.
    fn compare(&self, trace: &Path, calls: usize, open: RangeInclusive<usize>) {
        let events = dump(trace);
        let [begins, ends] = ["omptrace_call_begin", "omptrace_call_end"].map(|name| count(&events, name));
        assert_eq!(begins, calls, "{}: {}", trace.display(), self.case);
        assert!(open.contains(&(begins - ends)), "{}: {ends} ends: {}", trace.display(), self.case);
        let check = omptrace([Path::new("check"), trace]);
        assert!(check.status.success() || begins > ends, "{check:?}: {}", self.case);
    }

    fn traces(&self) -> usize {
        self.traces.files().len()
    }
}

fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = output.status.signal().map(|signal| 128 + signal);
    output.status.code().or(signal).expect("it has ended")
}

/// The program's lines, which come from several ranks.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_own = |line: &&str| line.split(' ').next_back().is_some_and(|word| word.parse::<i64>().is_ok());
    // MPICH's launcher says which process has failed.
    let mut lines: Vec<String> =
        text.lines().filter(is_own).filter(|line| !line.starts_with('=')).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn on_all(how: &str, is_right: impl Fn(&Job)) {
    for library in LIBRARIES {
        is_right(&Job::of(library, how));
    }
}

#[test]
fn calls_may_come_before_main_and_behind_it() {
    on_all("constructor", Job::has_all_calls);
}

#[test]
fn a_thread_may_have_the_smallest_stack() {
    on_all("stack0", Job::has_all_calls);
}

#[test]
fn threads_may_call_at_once() {
    on_all("threads", Job::has_all_calls);
}

/// The child is no member of the job, whose messages are still matched.
#[test]
fn a_forked_child_has_a_trace_of_its_own_or_none() {
    for (how, has_trace) in [("fork", false), ("fork_exec", false), ("fork_calls", true)] {
        on_all(how, |job| {
            job.has_all_calls();
            assert_eq!(job.traces(), if has_trace { 2 * RANKS } else { RANKS }, "{}", job.case);
            for rank in 0..RANKS {
                let child = job.folder().join(format!("rank{rank}.2.omptrace"));
                if has_trace {
                    job.compare(&child, job.counted("child", rank), 0..=0);
                    assert!(info(&child)["mpi"]["rank"].is_null(), "{}", job.case);
                }
            }
            let all = matched(job.folder(), RANKS);
            assert!(all.iter().all(|rank| rank.counts.sends > 0 && rank.unmatched_sends.count == 0));
        });
    }
}

#[test]
fn a_call_that_an_error_handler_leaves_ends() {
    on_all("errors", Job::has_all_calls);
}

#[test]
fn a_job_may_end_in_any_way() {
    for how in ["_exit", "no_finalize", "kill"] {
        on_all(how, Job::has_all_calls);
    }
    // The other one may be in the call still.
    on_all("crash", |job| {
        for (rank, open) in [1..=1, 0..=1].into_iter().enumerate() {
            job.compare(&trace(job.folder(), rank), job.counted("rank", rank), open);
        }
    });
}

/// Debian's MPICH cannot spawn.
#[test]
fn spawned_processes_are_recorded() {
    let job = Job::of(LIBRARIES[0], "spawn");
    assert_eq!(job.traces(), 2 * RANKS, "{}", job.case);
    let mut found: Vec<usize> =
        job.traces.files().iter().map(|trace| count(&dump(trace), "omptrace_call_begin")).collect();
    let of = |what: &str| (0..RANKS).map(|rank| job.counted(what, rank)).collect::<Vec<_>>();
    let mut expected = [of("rank"), of("spawned")].concat();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", job.case);
}

/// MPI in a library that is opened for itself alone, as Python opens its extensions.
#[test]
fn mpi_may_be_opened_in_a_local_scope() {
    for (compiler, launcher, name) in LIBRARIES {
        let plugin = program(compiler, &["-shared", "-fPIC", "-DPLUGIN"]);
        let flag = format!("-DPLUGIN_PATH=\"{}\"", plugin.display());
        let host = compile("tests/programs/mpi_host.c", Compiler::Gcc, &["-fno-openmp", &flag]);
        let traces = Traces::folder();
        let folder = traces.path();
        let output = launched(folder, (launcher, RANKS), &host, Some(&["--quiet"]), &["plain"]);
        assert!(output.status.success(), "{name}: {output:?}");
        let job = Job { traces, case: format!("{name}: {output:?}") };
        job.has_all_calls();
    }
}

/// Another tool of the PMPI kind counts the calls, too, if it is behind `record`; in front of it, it hides them, and `info` says so.
#[test]
fn other_tools_stay_in_the_chain() {
    for (compiler, launcher, name) in LIBRARIES {
        let tool = compile("tests/programs/mpi_tool.c", compiler, &["-fno-openmp", "-shared", "-fPIC"]);
        let program = program(compiler, &[]);
        let traces = Traces::folder();
        let mut command = launch(traces.path(), (launcher, RANKS), &program, Some(&["--quiet"]), &["plain"]);
        let output = command.env("LD_PRELOAD", &tool).output().expect("it can be run");
        assert!(output.status.success(), "{output:?}");
        let job = Job { traces, case: format!("{name}: {output:?}") };
        job.has_all_calls();
        let said = String::from_utf8_lossy(&output.stderr);
        for rank in 0..RANKS {
            // It does not count MPI_Init and MPI_Finalize.
            let line = format!("tool: rank {rank} counted {}", job.counted("rank", rank) - 2);
            assert!(said.contains(&line), "{line}: {}", job.case);
        }
    }
}

#[test]
fn programs_under_sanitizers_are_recorded() {
    let cases = [
        (LIBRARIES[0], "-fsanitize=address"),
        (LIBRARIES[1], "-fsanitize=address"),
        // MPICH crashes under it, also alone.
        (LIBRARIES[0], "-fsanitize=thread"),
    ];
    for ((compiler, launcher, name), sanitizer) in cases {
        // Libraries leak on purpose. What is not built with the sanitizer is not judged.
        let program = program(compiler, &[sanitizer, "-DSANITIZED"]);
        let job = Job::with_program((launcher, name), &program, "threads");
        job.has_all_calls();
        assert!(!job.case.contains("Sanitizer"), "{}", job.case);
    }
}

/// In front of `record`'s libraries, the tool goes past them.
#[test]
fn calls_that_another_tool_hides_are_named() {
    for (compiler, launcher, name) in LIBRARIES {
        let tool = compile("tests/programs/mpi_tool.c", compiler, &["-fno-openmp", "-shared", "-fPIC"]);
        let program = program(compiler, &[]);
        let traces = Traces::folder();
        let script = traces.path().join("in_front.sh");
        let words = format!("LD_PRELOAD={}:$LD_PRELOAD exec {} \"$@\"", tool.display(), program.display());
        fs::write(&script, format!("#!/bin/sh\n{words}\n")).expect("the folder is ours");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("the file is ours");
        let output = launched(traces.path(), (launcher, RANKS), &script, Some(&["--quiet"]), &["plain"]);
        assert!(output.status.success(), "{name}: {output:?}");
        let note = info(&trace(traces.path(), 0))["mpi_note"].clone();
        assert!(note.as_str().is_some_and(|note| note.contains("mpi_tool")), "{name}: {note}");
    }
}

#[test]
fn only_some_ranks_are_recorded() {
    for (compiler, launcher, name) in LIBRARIES {
        let program = program(compiler, &[]);
        let traces = Traces::folder();
        let options = ["--quiet", "--ranks", "1,5-7"];
        let output = launched(traces.path(), (launcher, RANKS), &program, Some(&options), &["plain"]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(traces.files(), [trace(traces.path(), 1)], "{name}: {output:?}");
        let settings = info(&trace(traces.path(), 1))["settings"].to_string();
        assert!(settings.contains("1,5-7"), "{name}: {settings}");
    }
}
