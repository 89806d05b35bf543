//! Programs built by GCC: on the runtime of LLVM, and observed on libgomp.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{
    Compiler, compile, compile_with_renamed_libgomp, compile_with_rpath, omptrace_program, python, runtime,
};
use omptrace_tests::trace::{Traces, counts, dump, info};

use crate::{ended_well, record, recording, said};

#[test]
fn programs_of_gcc_run_on_the_runtime_of_llvm() {
    const SOURCE: &str = "tests/programs/gcc_loops.c";
    for program in [
        compile(SOURCE, Compiler::Gcc, &[]),
        compile_with_rpath(SOURCE),
        compile_with_renamed_libgomp(SOURCE),
    ] {
        let traces = Traces::folder();
        let output =
            record(&traces, ["-o".as_ref(), "x.omptrace".as_ref(), "--".as_ref(), program.as_os_str()]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "checksum 200\n", "{program:?}");
        assert!(said(&output).contains("libomp.so.5"), "one line says so: {}", said(&output));
        let trace = traces.only();
        assert_eq!(counts(&dump(&trace))["parallel_begin"], 10, "{program:?}");
        let replaced = &info(&trace)["record"]["libgomp_replaced_by"];
        assert!(replaced.as_str().is_some_and(|path| path.ends_with("libomp.so.5")), "{replaced}");
    }
}

/// libgomp's constructor binds the first thread; LLVM's runtime took its place for the machine.
#[test]
fn programs_see_the_processors_that_they_see_without_the_tracer() {
    let program = compile("tests/programs/gcc_binding.c", Compiler::Gcc, &[]);
    for (name, value) in [
        ("OMP_PROC_BIND", "close"),
        ("OMP_PROC_BIND", "true"),
        ("OMP_PROC_BIND", "false"),
        ("OMP_PLACES", "cores"),
        ("OMP_PLACES", "{1},{0}"),
        ("GOMP_CPU_AFFINITY", "0-1"),
        ("OMP_DYNAMIC", "false"),
    ] {
        for (launcher, arguments) in [
            (&["env"][..], &["wide", "narrow"][..]),
            (&["taskset", "--cpu-list", "1"], &["wide"]),
            (&["sh", "-c", "\"$@\"; exit $?", "sh"], &["wide"]),
        ] {
            for argument in arguments {
                let mut alone = Command::new(launcher[0]);
                alone.args(&launcher[1..]).arg(&program).arg(argument);
                let alone = ended_well(alone.env(name, value));
                let traces = Traces::folder();
                let mut recorded = recording(&traces, ["--"]);
                recorded.args(launcher).arg(&program).arg(argument);
                let recorded = ended_well(recorded.env(name, value));
                // One that binds itself before OpenMP starts is left alone; libgomp had looked earlier. libgomp counts places
                // on processors that it may not use.
                let may_differ =
                    *argument == "narrow" || launcher[0] == "taskset" && value.contains(char::is_numeric);
                let is_same = recorded.stdout == alone.stdout;
                assert!(is_same || may_differ, "{name}={value} {launcher:?} {recorded:?} {alone:?}");
                let is_reported = said(&recorded).contains("in the recorded run, but it returns");
                assert_eq!(is_reported, !is_same, "{recorded:?} {alone:?}");
                assert_eq!(traces.all_files().len(), 1, "{recorded:?}");
            }
        }
    }
}

/// libgomp passes such a value over, LLVM's runtime does not.
#[test]
fn what_a_program_sees_otherwise_is_reported() {
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let traces = Traces::folder();
    let mut command = recording(&traces, [OsStr::new("--"), program.as_os_str()]);
    let output = ended_well(command.env("OMP_NUM_THREADS", "7,"));
    let words = "omp_get_max_threads returned 7 in the recorded run, but it returns";
    assert!(said(&output).contains(words), "{}", said(&output));
}

/// Half on one runtime and half on another, such programs gave wrong results, hung or crashed.
#[test]
fn programs_that_the_runtime_of_llvm_cannot_run_keep_libgomp() {
    const SOURCE: &str = "tests/programs/gcc_beyond_llvm.c";
    let gcc = |case| compile(SOURCE, Compiler::Gcc, &[case]);
    let fortran =
        compile("tests/programs/gcc_long_integers.f90", Compiler::Gfortran, &["-fdefault-integer-8"]);
    for (program, function) in [
        (gcc("-DDETACH"), "omp_fulfill_event"),
        (gcc("-DTARGET_TEAMS"), "GOMP_target_ext, GOMP_teams4"),
        (gcc("-DTARGET_DEPEND"), "GOMP_target_ext"),
        (gcc("-DNUM_TEAMS"), "omp_set_num_teams"),
        (gcc("-DALLOCATOR"), "omp_destroy_allocator, omp_init_allocator"),
        (gcc("-DSCOPE"), "GOMP_scope_start"),
        (gcc("-DSCAN"), "GOMP_loop_start"),
        (fortran, "omp_set_num_threads_8_"),
    ] {
        let traces = Traces::folder();
        let output = record(&traces, ["--".as_ref(), program.as_os_str()]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n", "{function}: {output:?}");
        let said = said(&output);
        let reason = format!("lacks functions that the program calls: {function} (called by");
        assert!(said.contains(&reason), "{said}");
        assert!(said.contains("--libgomp replace"), "{said}");
        assert!(traces.all_files().is_empty(), "{said}");

        let doctor = Command::new(omptrace_program())
            .args(["doctor", "--libomp"])
            .arg(runtime("llvm-19").join("libomp.so.5"))
            .arg(&program)
            .output()
            .expect("omptrace can be run");
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert!(said.contains(&reason), "{said}");
    }
}

/// On libgomp itself they are right, and traced.
#[test]
fn programs_of_gcc_are_observed_on_libgomp_by_themselves() {
    const SOURCE: &str = "tests/programs/gcc_beyond_llvm.c";
    for case in
        ["-DDETACH", "-DTARGET_TEAMS", "-DTARGET_DEPEND", "-DNUM_TEAMS", "-DALLOCATOR", "-DSCOPE", "-DSCAN"]
    {
        let program = compile(SOURCE, Compiler::Gcc, &[case]);
        let traces = Traces::folder();
        let mut command = Command::new(omptrace_program());
        command.args(["record", "-o", "x.omptrace", "--"]);
        let output = ended_well(command.arg(&program).current_dir(traces.path()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n", "{case}");
        assert!(said(&output).contains("libomptgomp.so observes"), "{output:?}");
        let runtime = &info(&traces.only())["runtime"];
        assert!(runtime.to_string().contains("libgomp"), "{runtime}");
    }
    let program = compile(SOURCE, Compiler::Gcc, &["-DDETACH"]);
    let doctor =
        Command::new(omptrace_program()).arg("doctor").arg(&program).output().expect("omptrace can be run");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("can be traced on GCC's runtime"), "{said}");
}

#[test]
fn replacing_libgomp_can_be_insisted_on() {
    let program = compile("tests/programs/gcc_beyond_llvm.c", Compiler::Gcc, &["-DNUM_TEAMS"]);
    let traces = Traces::folder();
    let insisting = ["--libgomp".as_ref(), "replace".as_ref(), "--".as_ref()];
    let output = record(&traces, insisting.into_iter().chain([program.as_os_str()]));
    let said = said(&output);
    assert!(said.contains("omp_set_num_teams"), "{said}");
    assert!(said.contains("the program's results may be wrong"), "{said}");
    assert_eq!(traces.all_files().len(), 1, "{said}");
}

/// No symbol shows how a loop counts.
#[test]
fn a_death_on_the_runtime_of_llvm_is_no_riddle() {
    let program = compile("tests/programs/gcc_beyond_llvm.c", Compiler::Gcc, &["-DCOUNTS_DOWN"]);
    let traces = Traces::folder();
    let output =
        recording(&traces, [OsStr::new("--"), program.as_os_str()]).output().expect("omptrace can be run");
    assert_eq!(output.status.code(), Some(128 + 6), "{output:?}");
    let said = said(&output);
    assert!(said.contains("--libgomp keep"), "{said}");
    assert!(said.contains("taskloop whose loop variable decreases"), "{said}");
}

/// Libraries that a program loads while it runs are known when it has run.
#[test]
fn a_library_loaded_later_that_runs_on_two_runtimes_is_reported() {
    let library = compile("tests/programs/gcc_beyond_llvm_library.c", Compiler::Gcc, &["-shared", "-fPIC"]);
    let traces = Traces::folder();
    let ask = "import ctypes, sys; print(ctypes.CDLL(bytes.fromhex(sys.argv[1]).decode()).work())";
    let path: String = library.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = recording(&traces, ["--"]);
    let output = ended_well(command.arg(python()).args(["-c", ask, &path]));
    let said = said(&output);
    assert!(said.contains("ran on two OpenMP runtimes"), "{said}");
    assert!(said.contains("omp_set_num_teams"), "{said}");
}

/// The loader binds these calls past what is preloaded.
#[test]
fn what_is_loaded_apart_is_observed_by_audit() {
    let host = compile("tests/programs/plugin_host.c", Compiler::Gcc, &["-ldl"]);
    let looks_up = compile("tests/programs/looks_up_libgomp.c", Compiler::Gcc, &["-fno-openmp", "-ldl"]);
    let plugin =
        compile("tests/programs/unloaded_library.c", Compiler::Gcc, &["-shared", "-fPIC", "-DOFFSET=0"]);
    let run = |options: &[&str], program: &Path, argument: &str| {
        let traces = Traces::folder();
        let mut command = Command::new(omptrace_program());
        command.arg("record").args(options).arg("--").arg(program);
        let output = ended_well(command.arg(argument).arg(&plugin).current_dir(traces.path()));
        let regions = traces.all_files().first().map(|trace| counts(&dump(trace)));
        let regions = regions.and_then(|counts| counts.get("parallel_begin").copied());
        (output.stdout.clone(), said(&output), regions)
    };
    for (program, argument) in [(&host, "deepbind"), (&host, "closed"), (&looks_up, "")] {
        let (expected, words, regions) = run(&["--libgomp", "observe"], program, argument);
        assert_eq!(regions, None, "{argument}: {words}");
        if argument == "deepbind" {
            assert!(words.contains("hint: record with --audit"), "{words}");
        }
        let (found, words, regions) = run(&["--audit"], program, argument);
        assert_eq!(found, expected, "{argument}: {words}");
        assert_eq!(regions, Some(1), "{argument}: {words}");
        assert!(!words.contains("were not recorded"), "{words}");
    }
    let (_, words, regions) = run(&["--audit"], &host, "dlmopen");
    assert!(words.contains("loaded using dlmopen"), "{words}");
    assert_eq!(regions, None, "{words}");

    let failed = Command::new(omptrace_program())
        .args(["record", "--audit", "--libgomp", "keep", "--", "true"])
        .output()
        .expect("omptrace can be run");
    assert!(!failed.status.success());
    assert!(said(&failed).contains("turns this observation off"), "{failed:?}");
}

/// glibc takes the room of libraries that audit from that of the program's own.
#[test]
fn audit_leaves_room_for_thread_local_storage() {
    let large =
        compile("tests/programs/large_storage.c", Compiler::Gcc, &["-shared", "-fPIC", "-fno-openmp"]);
    let program = compile("tests/programs/nested.c", Compiler::Gcc, &[]);
    let linked = compile(
        "tests/programs/nested.c",
        Compiler::Gcc,
        &["-Wl,--no-as-needed", large.to_str().expect("a text")],
    );
    let by_shell = "LD_PRELOAD=$1:$LD_PRELOAD exec \"$0\" 2 2 2";
    for (command, preloaded) in [
        (vec![linked.as_os_str()], None),
        (vec![program.as_os_str()], Some(&large)),
        (vec!["sh".as_ref(), "-c".as_ref(), by_shell.as_ref(), program.as_os_str(), large.as_os_str()], None),
    ] {
        let traces = Traces::folder();
        let mut recorded = Command::new(omptrace_program());
        recorded
            .args(["record", "--audit", "--"])
            .args(&command)
            .args(["2", "2", "2"])
            .env("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
            .envs(preloaded.map(|library| ("LD_PRELOAD", library)))
            .current_dir(traces.path());
        let output = ended_well(&mut recorded);
        let traced = traces.all_files();
        assert_eq!(traced.len(), 1, "{command:?}: {output:?}");
    }
}

#[test]
fn observes_libgomp_itself_where_that_is_asked_for() {
    let program = compile("tests/programs/nearly_everything.c", Compiler::Gcc, &[]);
    let bare = Command::new(&program).args(["2", "20"]).output().expect("the program can be run");
    let traces = Traces::folder();
    let trace = traces.path().join("gcc.omptrace");
    let output = Command::new(omptrace_program())
        .args(["record", "--libgomp", "observe", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .args(["2", "20"])
        .output()
        .expect("omptrace can be run");
    assert_eq!(output.status, bare.status, "{output:?}");
    assert_eq!(output.stdout, bare.stdout, "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("libomptgomp.so observes GCC's libgomp"), "{words}");
    assert_eq!(info(&trace)["runtime"]["version"], "libgomp of GCC 12 through libomptgomp");
}
