//! Programs of several processes: scripts, children of other kinds, ranks of MPI.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, omptrace_program, root, unshare};
use omptrace_tests::trace::{Traces, chrome_events, convert, counts, dump, info};
use serde_json::Value;

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
        let source = if name == "of_32_bits" { "no_library.c" } else { "hello.c" };
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
        let recorded = run(&mut recording(&traces, ["--quiet".as_ref(), "--".as_ref(), program.as_os_str()]));
        assert_eq!(
            String::from_utf8_lossy(&recorded.stdout),
            String::from_utf8_lossy(&alone.stdout),
            "{child:?}"
        );
        assert!(recorded.stdout.ends_with(b"hello\n"), "{recorded:?}");
        let from_others = said(&recorded);
        let mut from_others = from_others.lines().filter(|line| !line.starts_with("omptrace: "));
        assert_eq!(from_others.next(), None, "{child:?}");

        // A shell's children, too: what they need is not known before the run.
        let script = format!("{} 2>err; exit $?", child.display());
        let traces = Traces::folder();
        let recorded = by_default(&traces, ["sh", "-c", &script]);
        assert!(recorded.stdout.ends_with(b"hello\n"), "{recorded:?}");
        let err = fs::read_to_string(traces.path().join("err")).expect("a file");
        assert_eq!(err, "", "{child:?}");
    }
}

/// Runs a command under `omptrace record` without options; it must end well.
fn by_default<'a>(traces: &Traces, command: impl IntoIterator<Item = &'a str>) -> Output {
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--"]).args(command);
    ended_well(record.current_dir(traces.path()))
}

#[test]
fn programs_that_others_start_are_traced() {
    const SOURCE: &str = "tests/programs/locks.c";
    for compiler in [Compiler::Gcc, Compiler::Clang22] {
        let program = compile(SOURCE, compiler, &[]);
        let call = format!("{} 2 10", program.display());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = folder.path().join("run.sh");
        fs::write(&script, format!("#!/bin/sh\n{call}\n")).expect("a file");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
        let makefile = folder.path().join("Makefile");
        fs::write(&makefile, format!("test:\n\t{call}\n")).expect("a file");
        let [script, makefile] = [&script, &makefile].map(|path| path.to_str().expect("text"));
        for command in [
            &[script][..],
            &["sh", "-c", &format!("{call}; exit $?")],
            &["env", "A=1", "sh", script],
            &["make", "-f", makefile, "test"],
        ] {
            let traces = Traces::folder();
            by_default(&traces, command.iter().copied());
            let trace = traces.only();
            assert_eq!(counts(&dump(&trace))["parallel_begin"], 1, "{command:?}");
            // The functions that both compilers call are those of the program's runtime, and the places the program's own.
            let text = traces.path().join("text");
            convert(&trace, "text", &text, &[]);
            let text = fs::read_to_string(text).expect("a file");
            let locks = text.lines().filter(|line| line.contains("omp_init_lock"));
            let locks: Vec<_> = locks.collect();
            assert_eq!(locks.len(), 3, "{command:?}: {text}");
            assert!(locks.iter().all(|line| line.contains("@locks.c:")), "{command:?}: {locks:?}");
        }
    }
}

/// Each runtime has a function for the program's own words to the tool.
#[test]
fn a_program_of_a_script_names_its_phases() {
    let program = compile("tests/programs/control_tool.c", Compiler::Clang22, &[]);
    let alone = Traces::folder();
    let program = program.to_str().expect("text");
    by_default(&alone, [program]);
    let traces = Traces::folder();
    by_default(&traces, ["sh", "-c", &format!("{program}; exit $?")]);
    let controls = |traces: &Traces| counts(&dump(&traces.only())).get("control_tool").copied();
    assert!(controls(&alone) > Some(0));
    assert_eq!(controls(&traces), controls(&alone));
}

#[test]
fn every_process_of_a_script_has_a_file() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let script = format!("{0}; {0} & wait; exit 0", program.display());
    let output = record(&traces, ["--", "sh", "-c", &script]);
    assert_eq!(traces.all_files().len(), 2, "{}", said(&output));
    assert!(said(&output).contains("2 files in "), "{}", said(&output));
    for trace in traces.files() {
        assert_eq!(info(&trace)["ending"], "ended");
    }
}

/// Two hosts, one after the other, whose monotonic clocks are 100,000 s apart and whose process ids are the same. They are
/// namespaces here (unshare(1)). The launcher's host records.
#[test]
fn hosts_of_a_job_have_one_timeline() {
    let program = compile("tests/programs/planted.c", Compiler::Clang22, &[]);
    let unshare = unshare();
    let words = [unshare.get_program()].into_iter().chain(unshare.get_args());
    let unshare: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let unshare = unshare.join(" ");
    let host = |rank: u64| {
        format!(
            "{unshare} --uts --pid --time --monotonic {rank}00000 --fork --kill-child sh -ec \
             'hostname node{rank}; OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE=2 {} imbalance'",
            program.display()
        )
    };
    let job = format!("set -e; {}; {}", host(0), host(1));
    let traces = Traces::folder();
    let words = ["-o", "%e.%p.omptrace", "--", "sh", "-c", &job];
    ended_well(recording(&traces, words).env("OMP_NUM_THREADS", "2"));
    let mut infos: Vec<Value> = traces.files().iter().map(|trace| info(trace)).collect();
    infos.sort_by_key(|info| info["program"]["rank"].as_u64());
    assert_eq!(infos.len(), 2, "{infos:?}");
    for (rank, info) in infos.iter().enumerate() {
        assert_eq!(info["program"]["rank"], rank, "{info}");
        assert_eq!(info["machine"]["host"], format!("node{rank}"), "{info}");
        assert_eq!(info["ending"], "ended", "{info}");
    }
    assert_eq!(infos[0]["program"]["pid"], infos[1]["program"]["pid"]);
    let events = chrome_events(traces.path());
    let times_of = |name: &str| -> (f64, f64) {
        let is_it = |event: &&Value| {
            let shown = event["args"]["name"].as_str().unwrap_or_default();
            event["name"] == "process_name" && shown.starts_with(name)
        };
        let pid = &events.iter().find(is_it).expect("a process")["pid"];
        let of_process = events.iter().filter(|event| &event["pid"] == pid);
        let times: Vec<f64> = of_process.filter_map(|it| it["ts"].as_f64()).collect();
        (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(f64::MIN, f64::max))
    };
    let ((_, end), (begin, _)) = (times_of("rank 0"), times_of("rank 1"));
    // In microseconds. By their monotonic clocks, the hosts would be 100,000 s apart.
    assert!((end - 1e6..end + 10_000e6).contains(&begin), "{end} {begin}");
}

/// What each answer says of a program whose time in MPI is not recorded.
const MPI_NOT_SEEN: &str = "MPI calls were not recorded, so the time in MPI calls counts as useful work";

/// The numbers say that they lack the time in MPI. No finding advises to parallelise a wait for other ranks. What TALP would have
/// measured is not known.
fn each_answer_names_mpi(traces: &Traces) {
    let talp = traces.path().join("talp.json");
    let words = |arguments: &[&str]| {
        let mut command = Command::new(omptrace_program());
        let output = ended_well(command.args(arguments).current_dir(traces.path()));
        let words = String::from_utf8(output.stdout).expect("text");
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for arguments in [
        &["stats", "--talp", "talp.json", "."][..],
        &["stats", "--by", "region", "."],
        &["stats", "--from", "events", "."],
        &["report", "--md", ".", "-o", "-"],
        &["scaling", "rank0.omptrace", "."],
        &["info", "."],
    ] {
        let words = words(arguments);
        assert!(words.contains(MPI_NOT_SEEN), "{arguments:?}: {words}");
        assert!(!words.contains("parallelise this code"), "{words}");
    }
    let stats: Value = serde_json::from_str(&words(&["stats", "--json", "--all", "."])).expect("JSON");
    let findings = stats["findings"].as_array().expect("a list");
    for finding in findings {
        let id = finding["id"].as_str().expect("an id");
        assert!(!["serial_part", "single_serialises"].contains(&id), "{finding}");
    }
    let talp: Value = serde_json::from_slice(&fs::read(talp).expect("a file")).expect("JSON");
    let global = &talp["Application"]["Global"];
    assert_eq!(global["numMpiRanks"], 2);
    for field in [
        "mpiParallelEfficiency",
        "mpiLoadBalance",
        "mpiTime",
        "numMpiCalls",
        "usefulTime",
        "parallelEfficiency",
    ] {
        assert!(global[field].is_null(), "{field}: {global}");
    }
}

/// Real launchers of real MPI programs. The program is named without a folder, as users do, and nobody asks for libgomp to
/// be replaced. Of MPI itself nothing is recorded, which each answer says.
#[test]
fn ranks_of_mpi_programs_are_traces_of_one_job() {
    const RANKS: u64 = 2;
    for (compiler, launcher) in [
        (Compiler::OpenMpi, &["mpirun.openmpi", "--oversubscribe"][..]),
        (Compiler::Mpich, &["mpirun.mpich", "-launcher", "fork"][..]),
    ] {
        let program = compile("tests/programs/hybrid.c", compiler, &[]);
        let folders = [program.parent(), Some("/usr/bin".as_ref()), Some("/bin".as_ref())];
        let path = std::env::join_paths(folders.into_iter().flatten()).expect("a path");
        let traces = Traces::folder();
        let name = program.file_name().expect("a file").to_string_lossy();
        let ranks = RANKS.to_string();
        let arguments =
            [&["--mpi", "off", "-o", "rank%r.omptrace", "--"], launcher, &["-n", &ranks, &name, "30"]];
        let output = ended_well(
            recording(&traces, arguments.concat())
                .env("PATH", path)
                .env("OMP_NUM_THREADS", "2")
                // Tests may run as root.
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ranks 2 checksum 60000\n", "{output:?}");
        for rank in 0..RANKS {
            let trace = traces.path().join(format!("rank{rank}.omptrace"));
            let info = info(&trace);
            assert_eq!(info["program"]["rank"], rank, "{info}");
            assert_eq!(info["ending"], "ended");
            assert_eq!(info["mpi_note"], MPI_NOT_SEEN, "{info}");
            assert_eq!(counts(&dump(&trace))["parallel_begin"], 30);
        }
        assert!(said(&output).contains(MPI_NOT_SEEN), "{output:?}");
        assert_eq!(traces.all_files().len() as u64, RANKS, "{output:?}");
        each_answer_names_mpi(&traces);
    }
}
