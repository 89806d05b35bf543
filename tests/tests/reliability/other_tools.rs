//! Other tools and preloaded libraries in the same process.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use omptrace_tests::env::{Compiler, compile, program_on, runtime, tool_library};
use omptrace_tests::trace::{Traces, count, dump, info};

use crate::{ROUNDS, THREADS, all_regions, program, run};

/// A library whose functions take the place of the C library's, as libfaketime's do, may be gone before the tracer is.
#[test]
fn the_tracer_calls_nothing_that_a_preloaded_library_replaced_and_took_away() {
    let shim = compile(
        "tests/programs/reliability_gone_wrappers.c",
        Compiler::Clang22,
        &["-shared", "-fPIC", "-fno-openmp"],
    );
    for runtime in ["llvm-14", "llvm-19", "intel-2021"] {
        for compress in ["auto", "off"] {
            // As a tool, and preloaded: then the runtime says how it ends when all destructors of preloaded libraries are
            // done.
            for tracer in ["OMP_TOOL_LIBRARIES", "LD_PRELOAD"] {
                let traces = Traces::folder();
                let mut command = program_on(runtime, "reliability_ends.c", &["none"]);
                let mut preloaded = shim.clone().into_os_string();
                traces.trace(&mut command);
                if tracer == "LD_PRELOAD" {
                    command.env_remove("OMP_TOOL_LIBRARIES");
                    preloaded.push(":");
                    preloaded.push(tool_library());
                }
                command.env("LD_PRELOAD", preloaded).env("OMPTRACE_COMPRESS", compress);
                let output = command.output().expect("it can be run");
                let case = format!("{runtime} {compress} {tracer}");
                assert_eq!(output.status.code(), Some(3), "{case}: {output:?}");
                assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{case}");
                assert_eq!(output.stdout, b"checksum 2000\n", "{case}");
                let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
                assert_eq!(all_regions(&traces), expected, "{case}");
            }
        }
    }
}

/// Debian's `faketime`, which is such a library.
#[test]
fn a_program_under_faketime_is_traced() {
    for shift in ["+0", "-1d"] {
        let traces = Traces::folder();
        let program = compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]);
        let mut command = Command::new("faketime");
        command.args(["-f", shift]).arg(program).arg("none");
        command.env("LD_LIBRARY_PATH", runtime("llvm-19"));
        let output = run(&traces, &mut command);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(output.stdout, b"checksum 2000\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
        assert_eq!(all_regions(&traces), expected);
    }
}

#[test]
fn two_tools_share_a_runtime() {
    let tool = compile("tests/programs/reliability_multiplex.c", Compiler::Clang22, &["-shared", "-fPIC"]);
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["none"]);
    traces
        .trace(&mut command)
        .env("OMP_TOOL_LIBRARIES", &tool)
        .env("OMPTRACE_TEST_TOOL_LIBRARIES", tool_library());
    let output = command.output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "checksum 2000\nother tool: 1000 regions, 2 threads, 0 wrong\n", "{output:?}");
    traces.only();
    assert_eq!(all_regions(&traces), [[ROUNDS, ROUNDS, 2 * ROUNDS]]);
}

#[test]
fn memcheck_has_nothing_against_the_tracer() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        // Debian's valgrind reads no newer debug information.
        let nested = compile("tests/programs/nested.c", Compiler::Clang14, &["-gdwarf-4"]);
        let log = traces.path().join("log");
        let mut command = Command::new("valgrind");
        command
            .arg(format!("--log-file={}", log.display()))
            .arg(nested)
            .args(["2", "2", "2"])
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .env("OMPTRACE_COMPRESS", compress);
        let started = Instant::now();
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{output:?}");
        // The search for leaks looks at all memory that can be read: at what is reserved, not at what may ever be.
        assert!(started.elapsed() < Duration::from_secs(60));
        let log = fs::read_to_string(log).expect("valgrind writes it");
        assert!(log.contains("ERROR SUMMARY"), "{log}");
        assert!(!log.contains("libomptrace"), "{log}");
        assert!(count(&dump(&traces.files()[0]), "parallel_end") > 0);
    }
}

#[test]
fn a_program_under_address_sanitizer_is_traced() {
    // GCC's sanitizer comes with the compiler. It wants to be the first of all libraries, before the runtime.
    let program = compile("tests/programs/nearly_everything.c", Compiler::Gcc, &["-fsanitize=address"]);
    let asked = Command::new(Compiler::Gcc.path())
        .arg("-print-file-name=libasan.so")
        .output()
        .expect("gcc can be run");
    let sanitizer = String::from_utf8_lossy(&asked.stdout);
    let libomp = runtime("llvm-19").join("libomp.so.5");
    let preload = format!("{} {}", sanitizer.trim(), libomp.display());
    let traces = Traces::folder();
    traces.record(Command::new(program).args(["2", "20"]).env("LD_PRELOAD", preload));
    let trace = traces.only();
    assert_eq!(info(&trace)["ending"], "ended");
    assert_eq!(count(&dump(&trace), "parallel_end"), 20 * (12 + 2));
}
