//! `omptrace record` on real programs as users have them: built by GCC, in Python, in scripts; and what it says.

use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, compile, compile_with_renamed_libgomp, compile_with_rpath, omptrace_program, python,
    root, runtime,
};
use omptrace_tests::trace::{Traces, counts, dump, info};

/// Runs `omptrace record` with `arguments`; the traces appear in `traces`.
fn record<A: AsRef<std::ffi::OsStr>>(
    traces: &Traces,
    arguments: impl IntoIterator<Item = A>,
) -> Output {
    let output = Command::new(omptrace_program())
        .arg("record")
        .args([
            "--libomp".as_ref(),
            runtime("llvm-19").join("libomp.so.5").as_os_str(),
        ])
        .args(arguments)
        .env("OMPTRACE_OUTPUT", "")
        .current_dir(traces.path())
        .output()
        .expect("omptrace can be run");
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

#[test]
fn python_with_an_extension_by_gcc() {
    let library = compile(
        "tests/programs/openmp_library.c",
        Compiler::Gcc,
        &["-shared", "-fPIC"],
    );
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
    assert!(traces.all_files().is_empty());
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
