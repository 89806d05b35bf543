//! The reason, where nothing is traced.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, further_runtimes, omptrace_program, root};
use omptrace_tests::trace::Traces;

use crate::{ended_well, record, recording, said};

/// Its runtime finds it before it looks for those that `OMP_TOOL_LIBRARIES` names.
#[test]
fn a_program_with_a_tool_of_its_own_is_reported_before_and_after() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tool = compile("tests/programs/own_tool.c", Compiler::Clang22, &["-c"]);
    let library = compile("tests/programs/own_tool.c", Compiler::Clang22, &["-shared", "-fPIC"]);
    let built = |name: &str, with: &Path| {
        let program = folder.path().join(name);
        let rpath = format!("-Wl,-rpath,{}", with.parent().expect("a folder").display());
        ended_well(
            Command::new(Compiler::Clang22.path())
                .args(Compiler::Clang22.flags())
                .args(["-rdynamic", "-Wl,--no-as-needed", &rpath, "-o"])
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
        let printed = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(printed.contains("cannot be traced") && printed.contains("ompt_start_tool"), "{printed}");
        assert!(printed.contains(remedy), "{printed}");
        let traces = Traces::folder();
        let output = record(&traces, ["--".as_ref(), program.as_os_str(), "2".as_ref(), "4".as_ref()]);
        let said = said(&output);
        assert!(said.contains("ompt_start_tool") && said.contains(remedy), "{said}");
        assert!(said.contains("likely reason: the program has its own OMPT tool"), "{said}");
    }
    let traces = Traces::folder();
    let arguments = ["--preload".as_ref(), "--".as_ref(), beside.as_os_str(), "2".as_ref(), "4".as_ref()];
    let output = record(&traces, arguments);
    assert_eq!(traces.all_files().len(), 1, "{output:?}");
}

#[test]
fn nothing_traced_is_reported_with_the_reason() {
    let traces = Traces::folder();
    let output = record(&traces, ["--", "true"]);
    assert!(said(&output).contains("nothing was traced"), "{}", said(&output));
    assert!(said(&output).contains("OpenMP"), "{}", said(&output));
    // Before a run that may be long.
    let before = "omptrace: no OpenMP runtime was found before the run";
    assert!(said(&output).starts_with(before), "{}", said(&output));

    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let output = record(&traces, ["--libgomp".as_ref(), "keep".as_ref(), "--".as_ref(), program.as_os_str()]);
    assert!(said(&output).contains("libgomp"), "{}", said(&output));
    assert!(!said(&output).contains(before), "{}", said(&output));
    assert!(traces.all_files().is_empty());
}

/// What the hint names is typed, and then the program is traced.
#[test]
fn the_remedy_where_the_tracer_was_kept_away_works() {
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let (program, omptrace) = (program.display(), omptrace_program());
    let record = format!("{} record --", omptrace.display());
    for (start, reason) in [
        ("env -i PATH=\"$PATH\"", "the environment"),
        ("env LD_PRELOAD=", "LD_PRELOAD"),
        ("unset LD_PRELOAD; ", "LD_PRELOAD"),
    ] {
        let traces = Traces::folder();
        let run = |by: &str| {
            let mut command = Command::new(&omptrace);
            command.args(["record", "--", "sh", "-c"]);
            command.arg(format!("{start} {by} {program}; exit $?"));
            said(&ended_well(command.current_dir(traces.path())))
        };
        let words = run("");
        assert!(words.contains("likely reason: ") && words.contains(reason), "{words}");
        assert!(words.contains("with: omptrace record -- PROGRAM"), "{words}");
        assert!(!words.contains("OMP_TOOL_VERBOSE_INIT"), "{words}");
        assert!(traces.all_files().is_empty(), "{words}");
        run(&record);
        assert_eq!(traces.all_files().len(), 1, "{start}");
    }
    // A runtime without words about tools is not asked for them.
    let traces = Traces::folder();
    let idle = compile("tests/programs/hello.c", Compiler::Gcc, &["-Wl,--no-as-needed"]);
    let mut command = Command::new(&omptrace);
    command.args(["record", "--"]).arg(idle).current_dir(traces.path());
    let words = said(&ended_well(&mut command));
    assert!(words.contains("executed no OpenMP construct"), "{words}");
    assert!(!words.contains("OMP_TOOL_VERBOSE_INIT"), "{words}");
}

#[test]
fn a_program_that_was_killed_too_early_is_distinguished() {
    let traces = Traces::folder();
    let program = compile("tests/programs/reliability_ends.c", Compiler::Gcc, &[]);
    // No round: GCC's code does not come to the runtime.
    let output = recording(&traces, [OsStr::new("--"), program.as_os_str()])
        .args(["abort", "2", "0"])
        .output()
        .expect("omptrace can be run");
    let said = said(&output);
    assert!(said.contains("killed by signal 6 (SIGABRT)"), "{said}");
    assert!(said.contains("before its first OpenMP construct"), "{said}");
    assert_eq!(output.status.code(), Some(128 + 6));
    assert!(traces.all_files().is_empty());
}

#[test]
fn further_runtimes_without_a_tools_interface_are_reported() {
    for runtime in further_runtimes() {
        if runtime.dialect.is_some() {
            continue;
        }
        let untraced = || {
            let command = runtime.program("tests/programs/tasks.c", Compiler::Clang14, &[], &["2", "6"]);
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
        let reason = format!("uses an OpenMP runtime without a tools interface: {}\n", library.display());
        assert!(said(&output).contains(&reason), "{}", said(&output));
        assert!(traces.all_files().is_empty());
    }
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
        ("/proc/x.omptrace", &*ends, "the tracer could not start: cannot create /proc/x.omptrace"),
        ("a.omptrace", &removes.replace("$1", "a"), "a.omptrace is no longer where the tracer created it"),
        ("b.omptrace", &clears, "b.omptrace belongs to this run"),
        ("c.omptrace", &clears_and_moves, "the program removed the directory"),
    ] {
        let mut command = recording(&traces, ["-o", output, "--", "sh", "-c", script]);
        let output = command.env("TMPDIR", &notes).output().expect("omptrace can be run");
        assert!(said(&output).contains(reason), "{output:?}");
        assert!(!said(&output).contains("likely reason"), "{output:?}");
    }
}
