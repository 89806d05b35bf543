//! Programs that use OpenMP where a tool must not wait or call back. The loader holds its lock meanwhile, or the tracer itself
//! calls the function.

use std::path::PathBuf;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, libgomp_adapter, omptrace_program, runtime, tool_library};
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

const LOCKED: &str = "tests/programs/loader_locked.c";

/// A program that uses OpenMP while the loader is locked, on a runtime or GCC's; and the library whose constructor waits for it.
fn locked(runtime_name: &str) -> [PathBuf; 2] {
    let program = match runtime_name {
        GCC => compile(LOCKED, Compiler::Gcc, &["-rdynamic", "-ldl", "-lpthread"]),
        _ => compile(LOCKED, Compiler::Clang14, &["-DCONTROL", "-rdynamic", "-ldl", "-lpthread"]),
    };
    [program, compile(LOCKED, Compiler::Gcc, &["-DLIBRARY", "-shared", "-fPIC", "-fno-openmp"])]
}

const GCC: &str = "libgomp";

/// Settings under which threads of the program do other things on their cold paths.
const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[("OMPTRACE_SAMPLE", "cpu,tasks")],
    &[("OMPTRACE_SAMPLE", "perf")],
    &[("OMPTRACE_MODE", "flight"), ("OMPTRACE_BUFFER", "512K")],
    &[("OMPTRACE_CPU_TIME", "1"), ("OMPTRACE_COUNTERS", "page-faults,cycles")],
    &[("OMPTRACE_BUFFER", "256K")],
    &[("OMPTRACE_BUFFER", "256K"), ("OMPTRACE_ON_FULL", "drop")],
    &[("OMPTRACE_EVENTS", "all"), ("OMPTRACE_SAMPLE", "cpu")],
    &[("OMPTRACE_COMPRESS", "off")],
];

/// Runs it under all settings, begun as `begin` says: as alone, and with a trace.
fn every_cold_path(runtime_name: &str, iterates: bool, begin: impl Fn(&mut Command)) {
    let [program, library] = locked(runtime_name);
    let command = || {
        let mut command = patient(program.to_str().expect("UTF-8"));
        command.arg(&library);
        if runtime_name != GCC {
            command.env("LD_LIBRARY_PATH", runtime(runtime_name));
        }
        if iterates {
            command.env("ITERATES", "1");
        }
        command
    };
    let alone = command().output().expect("it can be run");
    assert_eq!(alone.status.code(), Some(6), "{runtime_name}: {alone:?}");
    for settings in SETTINGS {
        let traces = Traces::folder();
        let mut command = command();
        begin(traces.trace(&mut command));
        let output = command.envs(settings.iter().copied()).output().expect("it can be run");
        assert_eq!(
            (output.status.code(), &output.stdout),
            (alone.status.code(), &alone.stdout),
            "{runtime_name} {iterates} {settings:?}: {output:?}"
        );
        // The child makes none.
        traces.only();
    }
}

#[test]
fn no_cold_path_waits_for_the_loader() {
    for iterates in [false, true] {
        for name in ["llvm-13", "llvm-19", "intel-2026"] {
            every_cold_path(name, iterates, |_| ());
        }
        // It finds the tool where it is preloaded.
        every_cold_path("intel-2018", iterates, |command| {
            command.env("LD_PRELOAD", tool_library());
        });
    }
}

#[test]
fn no_cold_path_of_a_program_of_gcc_waits_for_the_loader() {
    for iterates in [false, true] {
        every_cold_path(GCC, iterates, |command| {
            command.env("LD_PRELOAD", libgomp_adapter());
        });
        let mut replaced = runtime("llvm-19").join("libomp.so.5").into_os_string();
        replaced.push(":");
        replaced.push(tool_library());
        every_cold_path(GCC, iterates, |command| {
            command.env("LD_PRELOAD", &replaced);
        });
    }
}

/// Before glibc 2.35 the loader can be asked only under a lock, which a library's constructor does not hold.
#[test]
fn an_older_c_library_is_asked_under_the_lock_that_constructors_do_not_hold() {
    let flags = ["-O2", "-shared", "-fPIC", "-fno-openmp"];
    let older = compile("tests/programs/without_find_object.c", Compiler::Gcc, &flags);
    every_cold_path("llvm-19", false, |command| {
        command.env("LD_PRELOAD", &older);
    });
    // Threads use OpenMP while others fork, and so do the children.
    let traces = Traces::folder();
    let mut command = patient(compile(FORKS, Compiler::Clang14, &[]).to_str().expect("UTF-8"));
    command.env("LD_LIBRARY_PATH", runtime("llvm-19")).env("LD_PRELOAD", &older);
    let output = traces.trace(&mut command).output().expect("it can be run");
    assert_eq!(output.stdout, b"40 children\n", "{output:?}");
    assert_eq!(traces.files().len(), 41);
}

const FORKS: &str = "tests/programs/forks_beside_threads.c";
