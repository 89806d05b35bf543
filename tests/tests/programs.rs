//! The test programs themselves, on every runtime: they come to their end, print their checksum, and make the callbacks
//! that they say they make. What a trace of them must hold is checked elsewhere; here, that the yardstick is right.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{
    Compiler, RUNTIMES, compile, compile_with_renamed_libgomp, compile_with_rpath, count_tool, python, root,
    runtime,
};
use tempfile::TempDir;

const LIBRARY: &str = "tests/programs/openmp_library.c";

type Counts = BTreeMap<String, u64>;

/// Runs under the counting tool; returns what the program printed last, and what was counted in this process.
fn run(command: &mut Command) -> (String, Counts) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let counted = folder.path().join("counts.json");
    let output = command
        .env("OMP_TOOL_LIBRARIES", count_tool())
        .env("COUNT_OUT", &counted)
        .output()
        .expect("the program can be run");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let counts = fs::read(&counted).expect("the tool was loaded");
    let counts = serde_json::from_slice(&counts).expect("the tool writes JSON");
    (printed.lines().last().unwrap_or_default().to_owned(), counts)
}

/// A program that clang 14 built, on the runtime of that name.
fn on_runtime(name: &str, source: &str, arguments: &[&str]) -> (String, Counts) {
    let program = compile(&format!("tests/programs/{source}"), Compiler::Clang14, &[]);
    run(Command::new(program).args(arguments).env("LD_LIBRARY_PATH", runtime(name)))
}

/// A program that GCC built, on LLVM's runtime in the place of libgomp.
fn on_llvm(program: &Path) -> (String, Counts) {
    run(Command::new(program).env("LD_PRELOAD", runtime("llvm-19").join("libomp.so.5")))
}

#[track_caller]
fn check(counts: &Counts, expected: &[(&str, u64)]) {
    for (name, expected) in expected {
        assert_eq!(counts.get(*name).copied().unwrap_or(0), *expected, "{name} of {counts:?}");
    }
}

#[test]
fn nearly_everything_keeps_its_promises() {
    let (threads, rounds) = (3, 2);
    for name in RUNTIMES {
        let (printed, counts) = on_runtime(name, "nearly_everything.c", &["3", "2"]);
        assert_eq!(printed, format!("checksum {}", rounds * (32 * threads + 144)), "{name}");
        let of_teams = if *name == "intel-2026" { 1 } else { 3 };
        check(
            &counts,
            &[
                ("parallel_begin", rounds * (12 + threads + of_teams)),
                ("parallel_end", rounds * (12 + threads + of_teams)),
                ("task_create", rounds * (18 + 3 * threads)),
                ("dependences", rounds * 4),
                ("task_dependence", rounds * 3),
                ("work/begin", rounds * (12 * threads + 3)),
                ("work/end", rounds * (12 * threads + 3)),
                ("mutex_acquire", rounds * 13 * threads),
                ("mutex_acquired", rounds * 12 * threads),
                ("mutex_released", rounds * 12 * threads),
                ("nest_lock/begin", rounds * threads),
                ("nest_lock/end", rounds * threads),
                ("lock_init", rounds * 3),
                ("lock_destroy", rounds * 3),
                ("masked/begin", rounds * 2),
                ("masked/end", rounds * 2),
                ("control_tool", rounds),
                ("flush", 0),
            ],
        );
    }
}

#[test]
fn tasks_locks_and_nested_keep_their_promises() {
    for name in RUNTIMES {
        let (printed, counts) = on_runtime(name, "tasks.c", &["2", "6"]);
        assert_eq!(printed, "checksum 64", "{name}");
        check(&counts, &[("parallel_begin", 1), ("task_create", 126)]);

        let (printed, counts) = on_runtime(name, "locks.c", &["2", "50"]);
        assert_eq!(printed, "checksum 400", "{name}");
        check(&counts, &[("mutex_released", 500), ("nest_lock/begin", 100), ("lock_init", 4)]);

        let (printed, counts) = on_runtime(name, "nested.c", &["2", "3", "4"]);
        assert_eq!(printed, "checksum 32", "{name}");
        check(&counts, &[("parallel_begin", 28), ("parallel_end", 28)]);
    }
}

#[test]
fn processes_and_threads_keep_their_promises() {
    for (source, arguments, checksum, regions) in [
        ("fork_system.c", &["2"][..], "4", 2),
        ("fork_exit.c", &["2", "2"], "6", 3),
        ("fork_openmp.c", &["2", "20"], "40", 40),
        ("foreign_pthreads.c", &["2", "2", "5"], "30", 15),
        ("pause_resource.c", &["2", "hard"], "4", 1),
        ("pause_resource.c", &["2", "soft"], "4", 2),
        ("fork_first.c", &["2"], "2", 1),
        ("exit_in_parallel.c", &["2", "0"], "2", 2),
        ("control_tool.c", &["2", "10"], "100", 50),
    ] {
        let (printed, counts) = on_runtime("llvm-19", source, arguments);
        assert_eq!(printed, format!("checksum {checksum}"), "{source}");
        check(&counts, &[("parallel_begin", regions)]);
    }
}

#[test]
fn target_regions_run_on_the_host() {
    let offload = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/target.c", Compiler::Clang22, &offload);
    let (printed, counts) = run(&mut Command::new(program));
    assert_eq!(printed, "checksum 1501503");
    check(
        &counts,
        &[("target_emi/begin", 18), ("target_emi/end", 18), ("target_submit_emi/begin", 6), ("target", 0)],
    );
}

#[test]
fn gcc_programs_run_on_llvm_however_they_find_libgomp() {
    const SOURCE: &str = "tests/programs/gcc_loops.c";
    for program in [
        compile(SOURCE, Compiler::Gcc, &[]),
        compile_with_rpath(SOURCE),
        compile_with_renamed_libgomp(SOURCE),
    ] {
        let (printed, counts) = on_llvm(&program);
        assert_eq!(printed, "checksum 200", "{}", program.display());
        check(
            &counts,
            &[
                ("parallel_begin", 10),
                ("task_create", 20),
                ("mutex_acquired", 20),
                ("work/begin", 20),
                ("work/end", 20),
            ],
        );
    }
}

#[test]
fn a_python_extension_built_by_gcc_runs_on_llvm() {
    let library = compile(LIBRARY, Compiler::Gcc, &["-shared", "-fPIC"]);
    let (printed, counts) = run(Command::new(python())
        .arg(root().join("tests/programs/python_extension.py"))
        .arg(library)
        .env("LD_PRELOAD", runtime("llvm-19").join("libomp.so.5")));
    assert_eq!(printed, "checksum 6");
    check(&counts, &[("parallel_begin", 3)]);
}

#[test]
fn a_library_can_be_loaded_twice() {
    let library = compile(LIBRARY, Compiler::Clang14, &["-shared", "-fPIC"]);
    let program = compile("tests/programs/dlclose.c", Compiler::Gcc, &["-fno-openmp"]);
    // Intel's is unloaded with it, and starts the tool anew the second time, which then writes to another file; Debian's stays.
    for (name, regions) in [("llvm-19", 2), ("intel-2026", 1)] {
        let (printed, counts) =
            run(Command::new(&program).arg(&library).env("LD_LIBRARY_PATH", runtime(name)));
        assert_eq!(printed, "checksum 4", "{name}");
        check(&counts, &[("parallel_begin", regions)]);
    }
}

#[test]
fn examples_run() {
    for (source, arguments, printed) in [
        ("stencil.c", &["100", "3"][..], "heat 9233.935547"),
        ("task_tree.c", &["8", "3"], "8 queens: 92 solutions"),
        ("lock_fight.c", &["100"], "300 samples in 256 bins"),
        ("nested.c", &["64", "2"], "trace 49140"),
    ] {
        let program =
            compile(&format!("examples/{source}"), Compiler::Clang22, &["-Wall", "-Wextra", "-Werror"]);
        assert_eq!(run(Command::new(program).args(arguments)).0, printed, "{source}");
    }
    let program = compile(
        "examples/offload.c",
        Compiler::Clang22,
        &["-Wall", "-Wextra", "-Werror", "-fopenmp-targets=x86_64-pc-linux-gnu"],
    );
    let (printed, _) = run(Command::new(program).args(["1000", "5"]));
    assert_eq!(printed, "wave 1.000000");
    let program = compile("examples/heat.f90", Compiler::Gfortran, &["-Wall", "-Werror"]);
    assert_eq!(on_llvm(&program).0, "heat 2135.643082");
}
