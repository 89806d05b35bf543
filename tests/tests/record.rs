//! `omptrace record` on real programs as users have them: built by GCC, in Python, in scripts; and what it says.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, compile, compile_with_renamed_libgomp, compile_with_rpath, further_runtimes,
    omptrace_program, python, root, runtime,
};
use omptrace_tests::trace::{Traces, convert, counts, dump, info};

/// Runs `omptrace record` with `arguments`; the traces appear in `traces`.
fn record<A: AsRef<OsStr>>(traces: &Traces, arguments: impl IntoIterator<Item = A>) -> Output {
    ended_well(&mut recording(traces, arguments))
}

/// The command that does so.
fn recording<A: AsRef<OsStr>>(traces: &Traces, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(omptrace_program());
    command
        .arg("record")
        .args([
            "--libomp".as_ref(),
            runtime("llvm-19").join("libomp.so.5").as_os_str(),
        ])
        .args(arguments)
        .env("OMPTRACE_OUTPUT", "")
        .current_dir(traces.path());
    command
}

fn ended_well(command: &mut Command) -> Output {
    let output = command.output().expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn programs_of_gcc_run_on_the_runtime_of_llvm() {
    const SOURCE: &str = "tests/programs/gcc_loops.c";
    for program in [
        compile(SOURCE, Compiler::Gcc, &[]),
        compile_with_rpath(SOURCE),
        compile_with_renamed_libgomp(SOURCE),
    ] {
        let traces = Traces::folder();
        let output = record(
            &traces,
            [
                "-o".as_ref(),
                "x.omptrace".as_ref(),
                "--".as_ref(),
                program.as_os_str(),
            ],
        );
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "checksum 200\n",
            "{program:?}"
        );
        assert!(
            said(&output).contains("libomp.so.5"),
            "one line says so: {}",
            said(&output)
        );
        let trace = traces.only();
        assert_eq!(counts(&dump(&trace))["parallel_begin"], 10, "{program:?}");
        let replaced = &info(&trace)["record"]["libgomp_replaced_by"];
        assert!(
            replaced
                .as_str()
                .is_some_and(|path| path.ends_with("libomp.so.5")),
            "{replaced}"
        );
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
                let may_differ = *argument == "narrow"
                    || launcher[0] == "taskset" && value.contains(char::is_numeric);
                let is_same = recorded.stdout == alone.stdout;
                assert!(
                    is_same || may_differ,
                    "{name}={value} {launcher:?} {recorded:?} {alone:?}"
                );
                let is_told = said(&recorded).contains("on GCC's libgomp it is");
                assert_eq!(is_told, !is_same, "{recorded:?} {alone:?}");
                assert_eq!(traces.all_files().len(), 1, "{recorded:?}");
            }
        }
    }
}

/// libgomp passes such a value over, LLVM's runtime does not.
#[test]
fn what_a_program_sees_otherwise_is_told() {
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let traces = Traces::folder();
    let mut command = recording(&traces, [OsStr::new("--"), program.as_os_str()]);
    let output = ended_well(command.env("OMP_NUM_THREADS", "7,"));
    let words = "omp_get_max_threads was 7 in the recorded program; on GCC's libgomp it is";
    assert!(said(&output).contains(words), "{}", said(&output));
}

/// They have another C library, or other registers: libraries made for this machine's would end them, or be complained of.
#[test]
fn children_that_cannot_take_what_is_preloaded_run_as_they_do_alone() {
    let program = compile("tests/programs/gcc_binding.c", Compiler::Gcc, &[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let built = |compiler: &str, name: &str, flags: &[&str]| {
        let child = folder.path().join(name);
        let mut command = Command::new(compiler);
        command.args(flags).arg("-o").arg(&child);
        let source = if name == "of_32_bits" {
            "no_library.c"
        } else {
            "hello.c"
        };
        ended_well(command.arg(root().join("tests/programs").join(source)));
        child
    };
    for child in [
        built("musl-gcc", "of_musl", &[]),
        built("musl-gcc", "of_musl_alone", &["-static"]),
        built("gcc", "static", &["-static"]),
        built("gcc", "usual", &[]),
        built(
            "gcc",
            "of_32_bits",
            &[
                "-m32",
                "-nostdlib",
                "-no-pie",
                "-fno-pic",
                "-rdynamic",
                "-Wl,--dynamic-linker=/lib/ld-linux.so.2",
                "-Wl,--no-as-needed",
                "-L/lib32",
                "-l:libc.so.6",
            ],
        ),
    ] {
        let run = |command: &mut Command| {
            let arguments = ["child".as_ref(), child.as_os_str()];
            ended_well(command.env("OMP_NUM_THREADS", "2").args(arguments))
        };
        let traces = Traces::folder();
        let alone = run(&mut Command::new(&program));
        let recorded = run(&mut recording(
            &traces,
            [OsStr::new("--"), program.as_os_str()],
        ));
        assert_eq!(
            String::from_utf8_lossy(&recorded.stdout),
            String::from_utf8_lossy(&alone.stdout),
            "{child:?}"
        );
        assert!(recorded.stdout.ends_with(b"hello\n"), "{recorded:?}");
        let from_others = said(&recorded);
        let mut from_others = from_others
            .lines()
            .filter(|line| !line.starts_with("omptrace: "));
        assert_eq!(from_others.next(), None, "{child:?}");
    }
}

/// Its runtime finds it before it looks for those that `OMP_TOOL_LIBRARIES` names.
#[test]
fn a_program_with_a_tool_of_its_own_is_told_before_and_after() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tool = compile("tests/programs/own_tool.c", Compiler::Clang22, &["-c"]);
    let library = compile(
        "tests/programs/own_tool.c",
        Compiler::Clang22,
        &["-shared", "-fPIC"],
    );
    let built = |name: &str, with: &Path| {
        let program = folder.path().join(name);
        let rpath = format!("-Wl,-rpath,{}", with.parent().expect("a folder").display());
        ended_well(
            Command::new(Compiler::Clang22.path())
                .args(["-fopenmp", "-rdynamic", "-Wl,--no-as-needed", &rpath, "-o"])
                .arg(&program)
                .arg(root().join("tests/programs/tasks.c"))
                .arg(with),
        );
        program
    };
    let inside = built("inside", &tool);
    let beside = built("beside", &library);
    for (program, remedy) in [(&inside, "without that tool"), (&beside, "--preload")] {
        let doctor = Command::new(omptrace_program())
            .arg("doctor")
            .arg(program)
            .output()
            .expect("omptrace can be run");
        let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(
            told.contains("cannot be traced") && told.contains("ompt_start_tool"),
            "{told}"
        );
        assert!(told.contains(remedy), "{told}");
        let traces = Traces::folder();
        let output = record(
            &traces,
            [
                "--".as_ref(),
                program.as_os_str(),
                "2".as_ref(),
                "4".as_ref(),
            ],
        );
        let said = said(&output);
        assert!(
            said.contains("ompt_start_tool") && said.contains(remedy),
            "{said}"
        );
        assert!(
            said.contains("likely reason: the OMPT tool of its own"),
            "{said}"
        );
    }
    let traces = Traces::folder();
    let arguments = [
        "--preload".as_ref(),
        "--".as_ref(),
        beside.as_os_str(),
        "2".as_ref(),
        "4".as_ref(),
    ];
    let output = record(&traces, arguments);
    assert_eq!(traces.all_files().len(), 1, "{output:?}");
}

#[test]
fn code_in_a_folder_whose_name_is_no_text_has_names() {
    let traces = Traces::folder();
    let folder = traces.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("app");
    let original = compile("tests/programs/tasks.c", Compiler::Clang22, &["-g"]);
    fs::copy(original, &program).expect("it can be copied");
    let arguments = [
        "-o".as_ref(),
        "x.omptrace".as_ref(),
        "--".as_ref(),
        program.as_os_str(),
    ];
    let output = record(&traces, arguments);
    let trace = traces.path().join("x.omptrace");
    let stats = omptrace_tests::trace::omptrace([Path::new("stats"), &trace]);
    let told = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(told.contains("tasks.c:"), "{told} {output:?}");
}

/// Half on one runtime and half on another, such programs gave wrong results, hung or crashed.
#[test]
fn programs_that_the_runtime_of_llvm_cannot_run_keep_libgomp() {
    const SOURCE: &str = "tests/programs/gcc_beyond_llvm.c";
    let gcc = |case| compile(SOURCE, Compiler::Gcc, &[case]);
    let fortran = compile(
        "tests/programs/gcc_long_integers.f90",
        Compiler::Gfortran,
        &["-fdefault-integer-8"],
    );
    for (program, function) in [
        (gcc("-DDETACH"), "omp_fulfill_event"),
        (gcc("-DTARGET_TEAMS"), "GOMP_target_ext, GOMP_teams4"),
        (gcc("-DTARGET_DEPEND"), "GOMP_target_ext"),
        (gcc("-DNUM_TEAMS"), "omp_set_num_teams"),
        (
            gcc("-DALLOCATOR"),
            "omp_destroy_allocator, omp_init_allocator",
        ),
        (gcc("-DSCOPE"), "GOMP_scope_start"),
        (gcc("-DSCAN"), "GOMP_loop_start"),
        (fortran, "omp_set_num_threads_8_"),
    ] {
        let traces = Traces::folder();
        let output = record(&traces, ["--".as_ref(), program.as_os_str()]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "right\n",
            "{function}: {output:?}"
        );
        let said = said(&output);
        let reason = format!("cannot do what it calls: {function} (called by");
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
    for case in [
        "-DDETACH",
        "-DTARGET_TEAMS",
        "-DTARGET_DEPEND",
        "-DNUM_TEAMS",
        "-DALLOCATOR",
        "-DSCOPE",
        "-DSCAN",
    ] {
        let program = compile(SOURCE, Compiler::Gcc, &[case]);
        let traces = Traces::folder();
        let mut command = Command::new(omptrace_program());
        command.args(["record", "-o", "x.omptrace", "--"]);
        let output = ended_well(command.arg(&program).current_dir(traces.path()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n", "{case}");
        assert!(
            said(&output).contains("libomptgomp.so observes"),
            "{output:?}"
        );
        let runtime = &info(&traces.only())["runtime"];
        assert!(runtime.to_string().contains("libgomp"), "{runtime}");
    }
    let program = compile(SOURCE, Compiler::Gcc, &["-DDETACH"]);
    let doctor = Command::new(omptrace_program())
        .arg("doctor")
        .arg(&program)
        .output()
        .expect("omptrace can be run");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("can be traced on GCC's runtime"), "{said}");
}

#[test]
fn replacing_libgomp_can_be_insisted_on() {
    let program = compile(
        "tests/programs/gcc_beyond_llvm.c",
        Compiler::Gcc,
        &["-DNUM_TEAMS"],
    );
    let traces = Traces::folder();
    let insisting = ["--libgomp".as_ref(), "replace".as_ref(), "--".as_ref()];
    let output = record(&traces, insisting.into_iter().chain([program.as_os_str()]));
    let said = said(&output);
    assert!(said.contains("omp_set_num_teams"), "{said}");
    assert!(said.contains("results may be wrong"), "{said}");
    assert_eq!(traces.all_files().len(), 1, "{said}");
}

/// No symbol tells how a loop counts.
#[test]
fn a_death_on_the_runtime_of_llvm_is_no_riddle() {
    let program = compile(
        "tests/programs/gcc_beyond_llvm.c",
        Compiler::Gcc,
        &["-DCOUNTS_DOWN"],
    );
    let traces = Traces::folder();
    let output = recording(&traces, [OsStr::new("--"), program.as_os_str()])
        .output()
        .expect("omptrace can be run");
    assert_eq!(output.status.code(), Some(128 + 6), "{output:?}");
    let said = said(&output);
    assert!(said.contains("--libgomp keep"), "{said}");
    assert!(said.contains("taskloop that counts down"), "{said}");
}

/// What a program loads while it runs is known when it has run.
#[test]
fn a_library_loaded_later_that_runs_on_two_runtimes_is_told() {
    let library = compile(
        "tests/programs/gcc_beyond_llvm_library.c",
        Compiler::Gcc,
        &["-shared", "-fPIC"],
    );
    let traces = Traces::folder();
    let ask = "import ctypes, sys; print(ctypes.CDLL(bytes.fromhex(sys.argv[1]).decode()).work())";
    let path: String = library
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut command = recording(&traces, ["--"]);
    let output = ended_well(command.arg(python()).args(["-c", ask, &path]));
    let said = said(&output);
    assert!(said.contains("ran on two OpenMP runtimes"), "{said}");
    assert!(said.contains("omp_set_num_teams"), "{said}");
}

/// What `python_extension.py` loads.
fn extension_by_gcc() -> PathBuf {
    compile(
        "tests/programs/openmp_library.c",
        Compiler::Gcc,
        &["-shared", "-fPIC"],
    )
}

#[test]
fn python_with_an_extension_by_gcc() {
    let library = extension_by_gcc();
    let traces = Traces::folder();
    let script = root().join("tests/programs/python_extension.py");
    let arguments = [
        "--".as_ref(),
        python().as_os_str().to_owned().leak(),
        script.as_os_str(),
        library.as_os_str(),
    ];
    let output = record(&traces, arguments);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "checksum 6\n",
        "{output:?}"
    );
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 3);
}

/// MKL's packages bring Intel's runtime: beside LLVM's in the place of libgomp, its first call would not return.
#[test]
fn python_whose_environment_has_a_runtime() {
    let library = extension_by_gcc();
    let traces = Traces::folder();
    let environment = tempfile::tempdir().expect("a folder");
    let [interpreter, intel] = ["bin/python3", "lib/libiomp5.so"].map(|name| {
        let path = environment.path().join(name);
        fs::create_dir(path.parent().expect("a folder")).expect("it can be made");
        path
    });
    std::os::unix::fs::symlink(python(), &interpreter).expect("a link");
    fs::copy(runtime("intel-2026").join("libiomp5.so"), &intel).expect("it can be copied");
    let mut command = Command::new(omptrace_program());
    command
        .args(["record", "--", "timeout", "60"])
        .arg(interpreter)
        .arg(root().join("tests/programs/python_extension.py"))
        .arg(library)
        .args(["2", "3"])
        .arg(&intel)
        .env("OMPTRACE_OUTPUT", "")
        .current_dir(traces.path());
    let output = ended_well(&mut command);
    assert_eq!(output.stdout, b"checksum 6\n", "{output:?}");
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 3);
}

#[test]
fn a_second_runtime_is_told() {
    let traces = Traces::folder();
    let ask = "import ctypes, sys
for runtime in sys.argv[1:]: ctypes.CDLL(runtime).omp_get_max_threads()";
    let runtimes = ["llvm-19/libomp.so.5", "intel-2026/libiomp5.so"].map(|name| {
        let (name, file) = name.split_once('/').expect("two parts");
        runtime(name).join(file)
    });
    let mut command = recording(&traces, ["--libgomp", "keep", "--"]);
    command.arg(python()).args(["-c", ask]).args(runtimes);
    // Else Intel's runtime would end the program.
    let output = ended_well(command.env("KMP_DUPLICATE_LIB_OK", "TRUE"));
    let words = "a second OpenMP runtime in this process is not traced: Intel(R) OMP version";
    assert!(said(&output).contains(words), "{}", said(&output));
    let told = info(&traces.only())["messages"][0].to_string();
    assert!(told.contains(words), "{told}");
}

#[test]
fn every_process_of_a_script_has_a_file() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let script = format!("{0}; {0} & wait; exit 0", program.display());
    let output = record(&traces, ["--", "sh", "-c", &script]);
    assert_eq!(traces.all_files().len(), 2, "{}", said(&output));
    for trace in traces.files() {
        assert!(
            said(&output).contains(
                &trace
                    .file_name()
                    .expect("a file")
                    .to_string_lossy()
                    .into_owned()
            )
        );
        assert_eq!(info(&trace)["ending"], "ended");
    }
}

/// Real launchers of real MPI programs. The program is named without a folder, as users do, and nobody asks for libgomp to
/// be replaced.
#[test]
fn ranks_of_mpi_programs_are_traces_of_one_job() {
    const RANKS: u64 = 2;
    for (compiler, launcher) in [
        (
            Compiler::OpenMpi,
            &["mpirun.openmpi", "--oversubscribe"][..],
        ),
        (Compiler::Mpich, &["mpirun.mpich", "-launcher", "fork"][..]),
    ] {
        let program = compile("tests/programs/hybrid.c", compiler, &[]);
        let folders = [
            program.parent(),
            Some("/usr/bin".as_ref()),
            Some("/bin".as_ref()),
        ];
        let path = std::env::join_paths(folders.into_iter().flatten()).expect("a path");
        let traces = Traces::folder();
        let name = program.file_name().expect("a file").to_string_lossy();
        let ranks = RANKS.to_string();
        let arguments = [
            &["-o", "rank%r.omptrace", "--"],
            launcher,
            &["-n", &ranks, &name, "30"],
        ];
        let output = ended_well(
            recording(&traces, arguments.concat())
                .env("PATH", path)
                .env("OMP_NUM_THREADS", "2")
                // Tests may run as root.
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        );
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "ranks 2 checksum 60000\n",
            "{output:?}"
        );
        for rank in 0..RANKS {
            let trace = traces.path().join(format!("rank{rank}.omptrace"));
            let info = info(&trace);
            assert_eq!(info["program"]["rank"], rank, "{info}");
            assert_eq!(info["ending"], "ended");
            assert_eq!(counts(&dump(&trace))["parallel_begin"], 30);
        }
        assert_eq!(traces.all_files().len() as u64, RANKS, "{output:?}");
    }
}

#[test]
fn folders_may_have_any_name() {
    let traces = Traces::folder();
    let folder = traces.path().join(OsStr::from_bytes(b"100 % \xff\n'"));
    fs::create_dir(&folder).expect("a folder");
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let output = recording(&traces, [OsStr::new("--"), program.as_os_str()])
        .current_dir(&folder)
        .output()
        .expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(&folder).expect("a folder");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 1, "{output:?}");
    assert!(!said(&output).contains("not allowed"), "{output:?}");
    assert!(counts(&dump(&files[0]))["parallel_begin"] > 0);
}

#[test]
fn nothing_traced_is_told_with_the_reason() {
    let traces = Traces::folder();
    let output = record(&traces, ["--", "true"]);
    assert!(
        said(&output).contains("nothing was traced"),
        "{}",
        said(&output)
    );
    assert!(said(&output).contains("OpenMP"), "{}", said(&output));
    // Before a run that may be long.
    let before = "omptrace: no OpenMP runtime can be seen before the run";
    assert!(said(&output).starts_with(before), "{}", said(&output));

    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let output = record(
        &traces,
        [
            "--libgomp".as_ref(),
            "keep".as_ref(),
            "--".as_ref(),
            program.as_os_str(),
        ],
    );
    assert!(said(&output).contains("libgomp"), "{}", said(&output));
    assert!(!said(&output).contains(before), "{}", said(&output));
    assert!(traces.all_files().is_empty());
}

#[test]
fn a_program_that_was_killed_too_early_is_told_apart() {
    let traces = Traces::folder();
    let program = compile("tests/programs/reliability_ends.c", Compiler::Gcc, &[]);
    // No round: GCC's code does not come to the runtime.
    let output = recording(&traces, [OsStr::new("--"), program.as_os_str()])
        .args(["abort", "2", "0"])
        .output()
        .expect("omptrace can be run");
    let said = said(&output);
    assert!(said.contains("killed by signal 6 (SIGABRT)"), "{said}");
    assert!(
        said.contains("before it came to its first OpenMP construct"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(128 + 6));
    assert!(traces.all_files().is_empty());
}

#[test]
fn further_runtimes_without_a_tools_interface_are_told() {
    for runtime in further_runtimes() {
        if runtime.dialect.is_some() {
            continue;
        }
        let untraced = || {
            let command = runtime.program(
                "tests/programs/tasks.c",
                Compiler::Clang14,
                &[],
                &["2", "6"],
            );
            command.expect("it is for every runtime")
        };
        let traces = Traces::folder();
        let mut words = vec![untraced().get_program().to_owned()];
        words.extend(untraced().get_args().map(Into::into));
        let output = Command::new(omptrace_program())
            .args(["record", "--"])
            .args(words)
            .env("LD_LIBRARY_PATH", runtime.folder())
            .current_dir(traces.path())
            .output()
            .expect("omptrace can be run");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "checksum 64\n");
        let library = runtime.folder().join("libomp.so.5");
        let reason = format!(
            "uses an OpenMP runtime without a tools interface: {}\n",
            library.display()
        );
        assert!(said(&output).contains(&reason), "{}", said(&output));
        assert!(traces.all_files().is_empty());
    }
}

#[test]
fn a_sealed_trace_is_packed_sound_and_small() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let arguments = [
        "-o",
        "x.omptrace",
        "--",
        program.to_str().expect("UTF-8"),
        "2",
        "16",
    ];
    record(&traces, arguments);
    let trace = traces.only();
    let checked = omptrace_tests::trace::omptrace([Path::new("check"), &trace]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let per_event = info(&trace)["size"]["bytes_per_event"].as_f64();
    assert!(
        per_event.is_some_and(|bytes| bytes < 2.0),
        "{per_event:?} bytes per event"
    );
}

#[test]
fn doctor_names_the_generation_of_each_runtime() {
    for (name, dialect, callbacks) in [
        ("intel-2018", "TR6", 23),
        ("intel-2019", "TR6", 22),
        ("intel-2021", "5.x", 37),
    ] {
        let folder = runtime(name);
        let output = Command::new(omptrace_program())
            .args(["doctor", "--json"])
            .env("LD_LIBRARY_PATH", &folder)
            .output()
            .expect("omptrace can be run");
        assert!(output.status.success(), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let is_there = |runtime: &&serde_json::Value| {
            let path = runtime["path"].as_str().expect("a path");
            Path::new(path).parent() == folder.canonicalize().ok().as_deref()
        };
        let runtime = report["runtimes"]
            .as_array()
            .expect("a list")
            .iter()
            .find(is_there)
            .unwrap_or_else(|| panic!("{name} is not there: {report}"));
        assert_eq!(runtime["dialect"], dialect, "{name}");
        let granted = runtime["granted"].as_array().expect("a list").len();
        assert_eq!(granted, callbacks, "{name}");
    }
}

const COLLECTOR: &str = "collector_runtime.c";
const TR2: &str = "tr2_runtime.c";

/// Compiles a runtime of `tests/programs` to a library, and a program with it or that loads it.
fn old_runtime(
    source_of_runtime: &str,
    folder: &Path,
    links: bool,
) -> (std::path::PathBuf, std::path::PathBuf) {
    let (library, program) = (folder.join("libopenmp.so.1"), folder.join("app"));
    let build = |words: &[&std::ffi::OsStr]| {
        let status = Command::new(Compiler::Gcc.path()).args(words).status();
        assert!(status.expect("gcc can be run").success(), "{words:?}");
    };
    let source = |name: &str| root().join("tests/programs").join(name);
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libopenmp.so.1", "-o"];
    let mut words: Vec<_> = shared.map(std::ffi::OsStr::new).into();
    let runtime = source(source_of_runtime);
    words.extend([library.as_os_str(), runtime.as_os_str()]);
    build(&words);
    let main = source("old_regions.c");
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let mut words = vec!["-o".as_ref(), program.as_os_str(), main.as_os_str()];
    if links {
        words.extend([
            "-Wl,--no-as-needed".as_ref(),
            library.as_os_str(),
            rpath.as_ref(),
        ]);
    }
    build(&words);
    (library, program)
}

#[test]
fn a_runtime_with_the_collector_api_is_traced() {
    let traces = Traces::folder();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, program) = old_runtime(COLLECTOR, folder.path(), true);
    let output = record(
        &traces,
        ["-o".as_ref(), "x.omptrace".as_ref(), program.as_os_str()],
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n");
    let trace = traces.path().join("x.omptrace");
    let counts = counts(&dump(&trace));
    assert_eq!((counts["parallel_begin"], counts["parallel_end"]), (3, 3));
    let info = info(&trace);
    assert_eq!(info["runtime"]["dialect"], "Collector API");
    assert_eq!(info["runtime"]["version"], "libopenmp.so.1");
    assert_eq!(
        info["callbacks"]["UNSUPPORTED"].as_array().map(Vec::len),
        Some(20)
    );
}

/// What is loaded by a name without a folder depends on who loads it: such calls are left to the C library.
#[test]
fn a_runtime_with_the_collector_api_may_be_loaded_later() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (library, program) = old_runtime(COLLECTOR, folder.path(), false);
    let traces = Traces::folder();
    let output = Command::new(&program)
        .arg(&library)
        .env("LD_PRELOAD", omptrace_tests::env::tool_library())
        .env("OMPTRACE_OUTPUT", traces.path().join("x.omptrace"))
        .output()
        .expect("the program can be run");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "sum 3\n",
        "{output:?}"
    );
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 3);
}

#[test]
fn an_old_runtime_that_is_loaded_later_takes_an_option_where_it_is_not_seen() {
    for (runtime, dialect) in [(TR2, "TR2"), (COLLECTOR, "Collector API")] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (library, program) = old_runtime(runtime, folder.path(), false);
        let script = format!("exec {} {}", program.display(), library.display());
        let hidden: [&OsStr; 3] = ["sh".as_ref(), "-c".as_ref(), script.as_ref()];
        let seen = [program.as_os_str(), library.as_os_str()];

        let traces = Traces::folder();
        let output = record(&traces, hidden);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.contains("nothing was traced"), "{words}");
        assert!(words.contains("record with --preload"), "{words}");

        let option: &OsStr = "--preload".as_ref();
        let with_option: Vec<_> = [option].into_iter().chain(hidden).collect();
        for words in [with_option, seen.into()] {
            let traces = Traces::folder();
            let output = record(&traces, words);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n");
            let trace = traces.only();
            let counts = counts(&dump(&trace));
            assert_eq!((counts["parallel_begin"], counts["parallel_end"]), (3, 3));
            let info = info(&trace);
            assert_eq!(info["runtime"]["dialect"], dialect);
            // The runtime's destructor comes after that of a preloaded library.
            let ends = counts.get("thread_end").copied().unwrap_or(0);
            assert_eq!(ends, u64::from(dialect == "TR2"));
            let ending = match dialect {
                "TR2" => "ended",
                _ => "ended by exit() without the runtime's finalize",
            };
            assert_eq!(info["ending"], ending);
        }
    }
}

#[test]
fn only_programs_that_need_it_have_the_tracer_preloaded() {
    const SOURCE: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\") ? \"yes\" : \"no\"); }";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (library, _) = old_runtime(COLLECTOR, folder.path(), true);
    std::fs::write(folder.path().join("x.c"), SOURCE).expect("written");
    for (words, expected) in [
        (
            vec![
                "-Wl,--no-as-needed",
                "-L/usr/lib/llvm-19/lib",
                "-l:libomp.so.5",
            ],
            "no",
        ),
        (
            vec!["-Wl,--no-as-needed", library.to_str().expect("UTF-8")],
            "yes",
        ),
        (vec![], "no"),
    ] {
        let program = folder.path().join("x");
        let status = Command::new(Compiler::Gcc.path())
            .arg("-o")
            .arg(&program)
            .arg(folder.path().join("x.c"))
            .args(&words)
            .arg(format!("-Wl,-rpath,{}", folder.path().display()))
            .status();
        assert!(status.expect("gcc can be run").success());
        let traces = Traces::folder();
        let output = record(&traces, [program.as_os_str()]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed.trim(), expected, "{words:?}");
    }
}

#[test]
fn doctor_asks_a_runtime_with_the_collector_api() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, program) = old_runtime(COLLECTOR, folder.path(), true);
    let output = Command::new(omptrace_program())
        .arg("doctor")
        .arg(&program)
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("omptrace can be run");
    let words = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "libopenmp.so.1 (OpenUH)",
        "tools interface Collector API, 2 of 22 callbacks",
        "can be traced",
        "omptrace record",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
}

#[test]
fn a_flight_recorder_is_one_option() {
    for (source, words, ending) in [
        ("locks.c", ["2", "30000"].as_slice(), "ended"),
        (
            "reliability_ends.c",
            &["_exit", "2", "100000"],
            "did not finish",
        ),
    ] {
        let program = compile(&format!("tests/programs/{source}"), Compiler::Clang22, &[]);
        let traces = Traces::folder();
        let mut arguments = vec!["--flight", "512K", "-o", "x.omptrace", "--"];
        arguments.push(program.to_str().expect("UTF-8"));
        arguments.extend(words);
        record(&traces, arguments);
        let info = info(&traces.only());
        assert_eq!(info["ending"], ending);
        assert_eq!(info["size"]["sealed"], true);
        assert_eq!(info["settings"]["OMPTRACE_MODE"], "flight");
        // Half a megabyte for each of two threads, of which an event takes eight bytes or more.
        let events = info["events"].as_u64().expect("a number");
        assert!(
            (10_000..=2 * (512 << 10) / 8).contains(&events),
            "{source}: {events}"
        );
        let timeline = traces.path().join("x.pftrace");
        convert(&traces.files()[0], "perfetto", &timeline, &[]);
    }
}

#[test]
fn a_runtime_that_speaks_tr2_is_traced() {
    let traces = Traces::folder();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, program) = old_runtime(TR2, folder.path(), true);
    let options = ["-o".as_ref(), "x.omptrace".as_ref()];
    let output = record(&traces, options.into_iter().chain([program.as_os_str()]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n");
    let trace = traces.path().join("x.omptrace");
    let counts = counts(&dump(&trace));
    assert_eq!((counts["parallel_begin"], counts["parallel_end"]), (3, 3));
    let info = info(&trace);
    assert_eq!(info["runtime"]["dialect"], "TR2");
    let always = &info["callbacks"]["always"];
    assert_eq!(always.as_array().map(Vec::len), Some(5));

    let doctor = Command::new(omptrace_program())
        .arg("doctor")
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("omptrace can be run");
    let words = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        words.contains("TR2 runtime; tools interface TR2, 5 of"),
        "{words}"
    );
}

#[test]
fn the_reason_is_known_where_the_tracer_could_not_begin_or_the_trace_has_gone() {
    let ends = compile("tests/programs/reliability_ends.c", Compiler::Clang22, &[]);
    let (traces, ends) = (Traces::folder(), ends.display().to_string());
    let removes = format!("{ends} _exit; rm $1.omptrace");
    let clears = format!("{ends} _exit; rm -r $TMPDIR/*");
    let elsewhere = Traces::folder();
    let clears_and_moves = format!("{clears}; mv c.omptrace* {}", elsewhere.path().display());
    let notes = traces.path().join("notes");
    fs::create_dir(&notes).expect("a folder");
    for (output, script, reason) in [
        (
            "/proc/x.omptrace",
            &*ends,
            "the tracer could not begin: cannot create /proc/x.omptrace",
        ),
        (
            "a.omptrace",
            &removes.replace("$1", "a"),
            "a.omptrace was moved or removed",
        ),
        ("b.omptrace", &clears, "b.omptrace is of this run"),
        (
            "c.omptrace",
            &clears_and_moves,
            "the program removed the folder",
        ),
    ] {
        let mut command = recording(&traces, ["-o", output, "--", "sh", "-c", script]);
        let output = command
            .env("TMPDIR", &notes)
            .output()
            .expect("omptrace can be run");
        assert!(said(&output).contains(reason), "{output:?}");
        assert!(!said(&output).contains("likely reason"), "{output:?}");
    }
}

#[test]
fn observes_libgomp_itself_where_that_is_asked_for() {
    let program = compile("tests/programs/nearly_everything.c", Compiler::Gcc, &[]);
    let bare = Command::new(&program)
        .args(["2", "20"])
        .output()
        .expect("the program can be run");
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
    assert!(
        words.contains("libomptgomp.so observes GCC's libgomp"),
        "{words}"
    );
    assert_eq!(
        info(&trace)["runtime"]["version"],
        "GNU libgomp through libomptgomp"
    );
}
