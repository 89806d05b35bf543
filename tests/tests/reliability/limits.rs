//! Limits of memory, stack, threads and files.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use omptrace_tests::env::{
    Compiler, FURTHER_RUNTIMES, RUNTIMES, RUNTIMES_OF_TR6, compile, failing_calls, libgomp_adapter, limited,
    runtime, tool_library,
};
use omptrace_tests::trace::{Traces, count, dump};

use crate::{all_regions, number, one_line, program, run};

#[test]
fn without_a_writer_thread_nothing_is_lost() {
    let shim = failing_calls();
    let traces = Traces::folder();
    // The first one made is the runtime's second, the next one would be the writer.
    let mut command = program("reliability_ends.c", &["none", "2", "50000"]);
    command.env("LD_PRELOAD", &shim).env("OMPTRACE_TEST_FAIL", format!("pthread_create:{}:2", libc::EAGAIN));
    let output = run(&traces, &mut command);
    one_line(&output, "cannot start the writer thread");
    traces.only();
    assert_eq!(all_regions(&traces), [[50000, 50000, 100_000]]);
}

#[test]
fn any_limit_that_the_program_can_live_with_it_can_live_with_traced() {
    let mib = 1 << 20;
    let limits = (3..9)
        .map(|files| (libc::RLIMIT_NOFILE, files))
        .chain([0, 1, 4095, 4096, 5000, 100 << 10, mib, 3 * mib].map(|n| (libc::RLIMIT_FSIZE, n)))
        .chain([20, 28, 36, 48, 64, 96, 128, 256, 1024].map(|n| (libc::RLIMIT_AS, n * mib)));
    let (mut lived, mut traced) = (0, 0);
    for (resource, limit) in limits {
        let ends = || {
            let mut command = program("reliability_ends.c", &["_exit", "2", "5000"]);
            command.env("OMP_STACKSIZE", "1M").stderr(Stdio::piped());
            limited(&mut command, resource, limit);
            command
        };
        let alone = ends().output().expect("it can be run");
        if !alone.status.success() {
            continue;
        }
        let traces = Traces::folder();
        let output = run(&traces, &mut ends());
        assert!(output.status.success() && output.stdout == alone.stdout, "{resource} {limit}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().filter(|line| line.starts_with("omptrace: "));
        let lines = lines.count();
        assert!(lines <= 1, "{resource} {limit}: {said}");
        lived += 1;
        if lines == 0 {
            // Nothing to say: nothing is missing.
            let expected = [[5000, 5000, 10000]];
            assert_eq!(all_regions(&traces), expected, "{resource} {limit}");
            traced += 1;
        }
    }
    assert!(lived >= 15 && traced >= 10, "{lived}, {traced}");
}

#[test]
fn a_program_that_has_no_memory_left_goes_on() {
    for (mode, compress) in [("record", "auto"), ("record", "off"), ("flight", "auto")] {
        let traces = Traces::folder();
        let mut command = program("reliability_extremes.c", &["memory"]);
        command.env("OMPTRACE_MODE", mode).env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{mode} {compress}: {output:?}");
        assert_eq!(output.stdout, b"done\n");
        let events = dump(&traces.files()[0]);
        assert!(count(&events, "mutex_acquired") > 10_000, "{mode} {compress}");
    }
}

#[test]
fn a_small_stack_is_enough() {
    // What tracing may add to the stack of the thread that uses OpenMP first. That thread asks the runtime for its
    // processors; the others need less: see below.
    const MAX_BYTES: usize = 16 << 10;
    let alone = program("reliability_stack.c", &[]).output().expect("it can be run");
    let alone = number(&String::from_utf8_lossy(&alone.stdout), "used");
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_stack.c", &[]);
        let said = traces.record(command.env("OMPTRACE_COMPRESS", compress));
        let used = number(&said, "used");
        assert!(used <= alone + MAX_BYTES, "{used} bytes of stack, {alone} untraced");

        let traces = Traces::folder();
        let mut command = program("nested.c", &[]);
        traces.record(command.env("OMPTRACE_COMPRESS", compress).env("OMP_STACKSIZE", "16k"));
    }
}

/// `PTHREAD_STACK_MIN` is enough for the first use of OpenMP, wherever it is enough alone.
#[test]
fn the_first_use_of_openmp_may_be_on_the_smallest_stack() {
    const SOURCE: &str = "tests/programs/smallest_stack.c";
    let of_gcc = compile(SOURCE, Compiler::Gcc, &["-lpthread"]);
    let of_clang = compile(SOURCE, Compiler::Clang14, &["-lpthread"]);
    let joined = |one: PathBuf, other: PathBuf| {
        let mut both = one.into_os_string();
        both.push(":");
        both.push(other);
        both
    };
    let further = FURTHER_RUNTIMES.iter().filter(|runtime| runtime.dialect.is_some());
    let names = RUNTIMES.iter().chain(RUNTIMES_OF_TR6).copied().chain(further.map(|runtime| runtime.name));
    let mut programs = Vec::new();
    for name in names {
        let with_library = |program: &PathBuf| {
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", runtime(name));
            command
        };
        let in_libgomps_place = || {
            let mut command = Command::new(&of_gcc);
            command.env("LD_PRELOAD", joined(runtime(name).join("libomp.so.5"), tool_library()));
            command
        };
        programs.push((name, with_library(&of_clang)));
        programs.push((name, in_libgomps_place()));
    }
    let mut observed = Command::new(&of_gcc);
    observed.env("LD_PRELOAD", joined(libgomp_adapter(), tool_library()));
    programs.push(("libgomp", observed));
    let mut lived = 0;
    for (name, command) in &programs {
        for more in ["0", "4096", "8192", "16384"] {
            let start = || {
                let mut again = Command::new(command.get_program());
                again.arg(more).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
                again
            };
            let mut alone = start();
            // The runtime alone, in libgomp's place, too.
            if *name == "libgomp" {
                alone.env_remove("LD_PRELOAD");
            }
            let alone = alone.env("OMP_TOOL", "disabled").output().expect("it can be run");
            lived += usize::from(alone.status.code() == Some(3));
            for settings in [&[][..], &[("OMPTRACE_SAMPLE", "cpu")], &[("OMPTRACE_COUNTERS", "page-faults")]]
            {
                let traces = Traces::folder();
                let output = run(&traces, start().envs(settings.iter().copied()));
                let what = format!("{name} + {more} {settings:?}");
                assert_eq!(
                    (output.status, &output.stdout),
                    (alone.status, &alone.stdout),
                    "{what}: {output:?}"
                );
                if alone.status.code() == Some(3) {
                    traces.only();
                }
            }
        }
    }
    assert!(lived > programs.len(), "{lived} of {}", programs.len());
}

/// The program's files have the numbers that they have alone, and it can open two fewer: what the tracer keeps open has the highest
/// numbers.
#[test]
fn the_programs_descriptors_are_those_that_it_has_alone() {
    const SOURCE: &str = "tests/programs/descriptors_left.c";
    let of_clang = compile(SOURCE, Compiler::Clang14, &[]);
    let of_gcc = compile(SOURCE, Compiler::Gcc, &[]);
    let numbers = |output: &std::process::Output| -> Vec<String> {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().filter(|line| !line.starts_with("threads")).map(str::to_owned).collect()
    };
    for (program, preloaded) in [(&of_clang, None), (&of_gcc, Some(libgomp_adapter()))] {
        for limit in [8, 9, 10, 12, 16, 24, 32, 64, 100, 2000] {
            let ends = || {
                let mut command = Command::new(program);
                command.env("LD_LIBRARY_PATH", runtime("llvm-19"));
                limited(&mut command, libc::RLIMIT_NOFILE, limit);
                command
            };
            let alone = ends().output().expect("it can be run");
            assert_eq!(alone.status.code(), Some(3), "{limit}: {alone:?}");
            for settings in [&[][..], &[("OMPTRACE_SAMPLE", "cpu")], &[("OMPTRACE_COMPRESS", "off")]] {
                let traces = Traces::folder();
                let mut command = ends();
                command.envs(settings.iter().copied());
                command.envs(preloaded.iter().map(|library| ("LD_PRELOAD", library)));
                let output = run(&traces, &mut command);
                assert_eq!(output.status, alone.status, "{limit} {settings:?}: {output:?}");
                let [alone, traced] = [&alone, &output].map(numbers);
                assert_eq!(traced.len(), alone.len() - 2, "{limit} {settings:?}");
                // Where there may be more, they are the last that are looked for.
                let same = match limit {
                    0..=64 => traced.len(),
                    65..=1000 => 50,
                    _ => 950,
                };
                assert_eq!(traced[..same], alone[..same], "{limit} {settings:?}");
            }
        }
    }
}
