//! Sandboxes, namespaces and rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, failing_calls, omptrace_program, runtime, tool_library};
use omptrace_tests::trace::{Traces, count, dump, dump_with_warnings, info};

use crate::{all_regions, one_line, program, regions, run};

/// Some calls are for processes of one thread only. So is the tracer's share in a process until it has a second.
#[test]
fn a_program_of_one_thread_stays_one() {
    for (regions, variables) in [
        (1, [("OMPTRACE_MODE", "record")]),
        // Several chunks.
        (100_000, [("OMPTRACE_MODE", "record")]),
        (100_000, [("OMPTRACE_MODE", "flight")]),
    ] {
        let traces = Traces::folder();
        let mut command = program("reliability_one_thread.c", &[&regions.to_string()]);
        let said = traces.record(command.envs(variables));
        assert_eq!(said, "threads 1, a user namespace of its own: 1\n");
        let trace = traces.only();
        let lost = info(&trace)["lost"].as_u64();
        assert_eq!(lost, Some(0), "{regions} {variables:?}");
        if variables[0].1 == "record" {
            // And one of two threads behind it.
            let events = dump(&trace);
            assert_eq!(count(&events, "parallel_begin"), regions + 1);
            assert_eq!(count(&events, "parallel_end"), regions + 1);
        }
    }
}

/// What the filter does not know ends tracing, in a line of the tracer's: the standard library's words about a panic are not
/// among them. Where the filter kills, `record` says so.
#[test]
fn a_program_that_forbids_itself_system_calls_is_traced_until_then() {
    for compiler in [Compiler::Gcc, Compiler::Clang22] {
        let program = compile("tests/programs/filtered.c", compiler, &[]);
        let record = |how: &str| {
            let traces = Traces::folder();
            let output = Command::new(omptrace_program())
                .args(["record", "--quiet", "-o"])
                .arg(traces.path().join("%p.omptrace"))
                .arg("--")
                .arg(&program)
                .arg(how)
                .env("LD_LIBRARY_PATH", runtime("llvm-19"))
                .output()
                .expect("omptrace can be run");
            traces.only();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output, said)
        };
        let (output, said) = record("refuse");
        assert_eq!(output.status.code(), Some(4), "{compiler:?}: {said}");
        assert_eq!(output.stdout, b"threads 40002\n");
        assert!(said.contains("tracing was turned off"), "{said}");
        for word in ["panicked", "backtrace", "internal error"] {
            assert!(!said.contains(word), "{compiler:?}: {said}");
        }
        let (output, said) = record("kill");
        assert_eq!(output.status.code(), Some(128 + 31), "{compiler:?}: {said}");
        assert!(said.contains("its own seccomp filter"), "{said}");
    }
}

#[test]
fn where_files_may_not_be_mapped_events_wait_in_memory() {
    let sandbox = compile("tests/programs/reliability_seccomp.c", Compiler::Gcc, &["-fno-openmp"]);
    let sandboxed = |how: &str| {
        let ends = program("reliability_ends.c", &[]);
        let mut command = Command::new(&sandbox);
        command.arg(ends.get_program()).args([how, "2", "20000"]).env("LD_LIBRARY_PATH", runtime("llvm-19"));
        command
    };
    let traces = Traces::folder();
    let output = run(&traces, &mut sandboxed("none"));
    one_line(&output, "are kept in the program's memory");
    let trace = traces.only();
    assert_eq!(all_regions(&traces), [[20000, 20000, 40000]]);
    let info = info(&trace);
    assert_eq!(info["ending"], "ended");
    assert!(info["messages"][0].as_str().expect("a message").contains("cannot be mapped"));

    // Killed, it has what was written.
    let traces = Traces::folder();
    run(&traces, &mut sandboxed("_exit"));
    // The newest events are, and perhaps some before.
    let trace = traces.files().remove(0);
    assert!(regions(&dump_with_warnings(&trace).0) < [20000, 20000, 40000]);
    let messages = self::info(&trace)["messages"].to_string();
    assert!(messages.contains("cannot be mapped"), "{messages}");
}

#[test]
fn a_program_with_more_rights_than_its_user_is_not_traced() {
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["_exit"]);
    command.env("LD_PRELOAD", failing_calls()).env("OMPTRACE_TEST_FAIL", "secure");
    let output = run(&traces, &mut command);
    one_line(&output, "more privileges than its user");
    assert_eq!(traces.all_files(), [""; 0].map(PathBuf::from));

    // The real thing, which only root can make.
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let rpath = format!("-Wl,-rpath,{}", runtime("llvm-19").display());
    let ends = compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[&rpath]);
    let setuid = traces.path().join("setuid");
    fs::copy(ends, &setuid).expect("can be copied");
    let output = traces.path().join("out");
    fs::create_dir(&output).expect("a folder");
    for (path, mode) in [(traces.path(), 0o755), (&output, 0o777), (&setuid, 0o4755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    }
    // Where a user that is nobody can read it.
    let tool = traces.path().join("libomptrace.so");
    fs::copy(tool_library(), &tool).expect("can be copied");
    let mut command = Command::new(&setuid);
    command
        .arg("_exit")
        .uid(65534)
        .env("OMP_TOOL_LIBRARIES", &tool)
        .env("OMPTRACE_OUTPUT", output.join("x.omptrace"));
    let said = command.output().expect("it can be run");
    assert_eq!(said.stdout, b"checksum 2000\n", "{said:?}");
    one_line(&said, "more privileges than its user");
    assert_eq!(fs::read_dir(&output).expect("it is there").count(), 0);
}

#[test]
fn traces_are_their_users_alone() {
    let traces = Traces::folder();
    run(&traces, &mut program("reliability_ends.c", &["_exit"]));
    assert_eq!(traces.all_files().len(), 2);
    for file in traces.all_files() {
        let mode = fs::metadata(&file).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{file:?}");
    }
}
