//! Programs that use OpenMP where a tool must not wait or call back. The loader holds its lock meanwhile, or the tracer itself
//! calls the function.

use std::process::Command;

use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::{Traces, count, dump};

use crate::patient;

/// `command` under `omptrace record` with `options`; killed where it hangs.
fn recorded(traces: &Traces, options: &[&str], command: &Command) -> Command {
    let mut record = patient(omptrace_program().to_str().expect("UTF-8"));
    record.args(["record", "-o"]).arg(traces.path().join("t.omptrace"));
    record.args(options).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        record.env(name, value.expect("set"));
    }
    record
}

#[test]
fn the_first_use_of_openmp_may_be_a_constructors() {
    let library = compile("tests/programs/constructors.c", Compiler::Gcc, &["-shared", "-fPIC"]);
    let host = compile("tests/programs/constructors_host.c", Compiler::Gcc, &["-ldl"]);
    for when in ["opened", "closed"] {
        for variables in [&[][..], &["ON_A_THREAD"]] {
            let mut command = Command::new(&host);
            command.arg(&library).env("WHEN", when);
            command.envs(variables.iter().map(|name| (name, "1")));
            let alone = command.output().expect("it can be run");
            for options in [&[][..], &["--sample"], &["--flight", "1M"], &["--cpu-time"]] {
                let traces = Traces::folder();
                let output = recorded(&traces, options, &command).output().expect("it can be run");
                assert_eq!(
                    (output.status.code(), &output.stdout),
                    (alone.status.code(), &alone.stdout),
                    "{when} {variables:?} {options:?}: {output:?}"
                );
            }
        }
    }
}

#[test]
fn functions_that_the_tracer_calls_may_be_the_programs_and_use_openmp() {
    for replaced in ["-DMALLOC", "-DOTHERS"] {
        let flags =
            ["-O1", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-DHOW=0", replaced, "-ldl"];
        let command = Command::new(compile("tests/programs/own_functions.c", Compiler::Gcc, &flags));
        let alone = command_output(&command);
        let traces = Traces::folder();
        let output = recorded(&traces, &[], &command).output().expect("it can be run");
        assert_eq!(output.status.code(), Some(7), "{replaced}: {output:?}");
        assert_eq!(output.stdout, alone, "{replaced}");
        // The program's threads, and none of the tracer's.
        let events = dump(&traces.files()[0]);
        let begun = count(&events, "parallel_begin");
        assert_eq!(begun, 6, "{replaced}");
    }
}

/// What it prints, alone.
fn command_output(command: &Command) -> Vec<u8> {
    let output = Command::new(command.get_program()).output();
    output.expect("it can be run").stdout
}
