//! Programs that read other clocks than `record`: a container that was moved, and times that are faked.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::{Traces, info, omptrace};

use crate::{ended_well, record, recording};

/// More than a short program takes, on any machine.
const LONG_S: u64 = 60;

/// `unshare` into a time namespace whose clocks are this many seconds ahead. Who is not root gets one with a user namespace.
fn elsewhere(seconds: i64) -> Vec<String> {
    // SAFETY: no arguments, and it cannot fail.
    let kind = match unsafe { libc::geteuid() } {
        0 => "-T",
        _ => "-rT",
    };
    let seconds = seconds.to_string();
    let words = ["unshare", kind, "--monotonic", &seconds, "--boottime", &seconds];
    words.map(str::to_owned).to_vec()
}

#[track_caller]
fn is_short(trace: &Path) {
    let info = info(trace);
    let ns = info["duration_ns"].as_u64().expect("a duration");
    assert!(ns < LONG_S * 1_000_000_000, "{info}");
    let checked = omptrace([Path::new("check"), trace]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}

#[test]
fn a_clock_that_is_behind_or_ahead_makes_no_run_long() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/tasks.c", compiler, &[]);
        let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
        for seconds in [-200, 200, -2, 2] {
            let traces = Traces::folder();
            let elsewhere = elsewhere(seconds);
            let words = ["--libgomp", "observe", "--"].map(OsStr::new).into_iter();
            let elsewhere = elsewhere.iter().map(OsStr::new);
            record(&traces, words.chain(elsewhere).chain(program));
            is_short(&traces.only());
        }
    }
}

#[test]
fn a_faked_time_around_record_makes_no_run_long() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/tasks.c", compiler, &[]);
        for shift in ["-15d", "+15d", "+0 x100"] {
            let traces = Traces::folder();
            let mut command = Command::new("faketime");
            command
                .args(["-f", shift])
                .arg(omptrace_program())
                .args(["record", "--libgomp", "observe", "-o", "x.omptrace", "--"])
                .arg(&program)
                .args(["2", "4"])
                .current_dir(traces.path());
            ended_well(&mut command);
            is_short(&traces.only());
        }
    }
}

/// Process starts are given by the clock of who asks: such a process is not gone, and its trace is not to be taken.
#[test]
fn a_program_by_another_clock_is_seen_to_run() {
    let traces = Traces::folder();
    let program = compile("tests/programs/kill_me.c", Compiler::Clang22, &[]);
    let elsewhere = elsewhere(-200);
    let options = ["-o", "x.omptrace", "--"].map(OsStr::new).into_iter();
    let words = elsewhere.iter().map(OsStr::new);
    let words = words.chain([program.as_os_str(), "finished".as_ref()]);
    let mut command = recording(&traces, options.chain(words));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it can be run");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut ready = [0; 5];
    stdout.read_exact(&mut ready).expect("it says that it is ready");
    let trace = traces.path().join("x.omptrace");
    while !trace.exists() {
        std::thread::yield_now();
    }
    let recovered = omptrace([Path::new("recover"), &trace]);
    let top = omptrace([OsStr::new("top"), "--once".as_ref(), trace.as_os_str()]);
    // SAFETY: `record` is our child, and forwards the signal.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    child.wait().expect("it can be waited for");
    let said = String::from_utf8_lossy(&recovered.stderr);
    assert!(said.contains("still running"), "{said}");
    assert!(top.status.success(), "{top:?}");
}

/// Traces without a note are found by when their files came. The clock that says so is the system's, also where others are faked.
#[test]
fn a_trace_without_a_note_is_found_where_a_time_is_faked() {
    // What is written there is gone with the process.
    let script = "mount -t tmpfs none \"$OMPTRACE_REGISTRY\" && exec \"$@\"";
    // SAFETY: no arguments, and it cannot fail.
    let kind = match unsafe { libc::geteuid() } {
        0 => "-m",
        _ => "-rm",
    };
    let without_note = ["unshare", kind, "sh", "-c", script, "sh"];
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/tasks.c", compiler, &[]);
        let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
        for shift in [None, Some("-15d"), Some("+15d"), Some("+0 x100")] {
            for is_within in [false, true] {
                let traces = Traces::folder();
                let faked = shift.map(|shift| ["faketime", "-f", shift]);
                let faked = faked.iter().flatten().map(OsStr::new);
                let record = [omptrace_program().into_os_string(), "record".into()];
                let options = ["--libgomp", "observe", "-o", "x.omptrace", "--"].map(OsStr::new);
                let record: Vec<&OsStr> = record.iter().map(|word| word.as_os_str()).chain(options).collect();
                let outside: Vec<&OsStr> = match is_within {
                    false => faked.clone().chain(record).collect(),
                    true => record,
                };
                let mut command = Command::new(outside[0]);
                command.args(&outside[1..]).args(without_note).current_dir(traces.path());
                if is_within {
                    command.args(faked);
                }
                ended_well(command.args(program));
                let trace = traces.only();
                assert_eq!(info(&trace)["size"]["sealed"], true, "{shift:?} {is_within}");
                is_short(&trace);
            }
        }
    }
    // The same by another clock of the machine.
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for seconds in [-200, 200] {
        let traces = Traces::folder();
        let elsewhere = elsewhere(seconds);
        let words = ["-o", "x.omptrace", "--"].map(OsStr::new).into_iter();
        let words = words.chain(elsewhere.iter().map(OsStr::new)).chain(without_note.map(OsStr::new));
        record(&traces, words.chain([program.as_os_str(), "2".as_ref(), "4".as_ref()]));
        is_short(&traces.only());
    }
}
