//! Programs of several processes: scripts, children of other kinds, ranks of MPI.

use std::ffi::OsStr;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, root};
use omptrace_tests::trace::{Traces, counts, dump, info};

use crate::{ended_well, record, recording, said};

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
