//! Runtimes older than OpenMP 5.0, for which the tracer is preloaded.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, omptrace_program, root, runtime};
use omptrace_tests::trace::{Traces, counts, dump, info};

use crate::record;

#[test]
fn doctor_names_the_generation_of_each_runtime() {
    for (name, dialect, callbacks) in
        [("intel-2018", "TR6", 23), ("intel-2019", "TR6", 22), ("intel-2021", "5.x", 37)]
    {
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
    let mut words = vec!["-pthread".as_ref(), "-o".as_ref(), program.as_os_str(), main.as_os_str()];
    if links {
        words.extend(["-Wl,--no-as-needed".as_ref(), library.as_os_str(), rpath.as_ref()]);
    }
    build(&words);
    (library, program)
}

#[test]
fn a_runtime_with_the_collector_api_is_traced() {
    let traces = Traces::folder();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, program) = old_runtime(COLLECTOR, folder.path(), true);
    let output = record(&traces, ["-o".as_ref(), "x.omptrace".as_ref(), program.as_os_str()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n");
    let trace = traces.path().join("x.omptrace");
    let counts = counts(&dump(&trace));
    assert_eq!((counts["parallel_begin"], counts["parallel_end"]), (3, 3));
    let info = info(&trace);
    assert_eq!(info["runtime"]["dialect"], "Collector API");
    assert_eq!(info["runtime"]["version"], "libopenmp.so.1");
    assert_eq!(info["callbacks"]["UNSUPPORTED"].as_array().map(Vec::len), Some(20));
}

/// LLVM's runtimes of that time, too, ask the tool where OpenMP is used first.
#[test]
fn a_runtime_of_tr2_may_start_on_the_smallest_stack() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, program) = old_runtime(TR2, folder.path(), true);
    let traces = Traces::folder();
    let output = Command::new(&program)
        .env("ON_SMALLEST_STACK", "1")
        .env("LD_PRELOAD", omptrace_tests::env::tool_library())
        .env("OMPTRACE_OUTPUT", traces.path().join("x.omptrace"))
        .output()
        .expect("the program can be run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n", "{output:?}");
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 3);
}

/// A name without a folder means a library that depends on who loads it: such calls are left to the C library.
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
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3\n", "{output:?}");
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 3);
}

#[test]
fn an_old_runtime_that_is_loaded_later_is_traced_whether_it_is_seen_or_not() {
    for (runtime, dialect) in [(TR2, "TR2"), (COLLECTOR, "Collector API")] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (library, program) = old_runtime(runtime, folder.path(), false);
        let script = format!("exec {} {}", program.display(), library.display());
        let hidden: [&OsStr; 3] = ["sh".as_ref(), "-c".as_ref(), script.as_ref()];
        let seen = [program.as_os_str(), library.as_os_str()];

        let option: &OsStr = "--preload".as_ref();
        let with_option: Vec<_> = [option].into_iter().chain(hidden).collect();
        for words in [hidden.into(), with_option, seen.into()] {
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
                _ => "ended by exit(), but the runtime did not call the tracer's finalize function",
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
    let libomp = runtime("llvm-19");
    let of_libomp = ["-L", "-Wl,-rpath,"].map(|flag| format!("{flag}{}", libomp.display()));
    for (words, expected) in [
        (vec!["-Wl,--no-as-needed", &*of_libomp[0], &*of_libomp[1], "-l:libomp.so.5"], "no"),
        (vec!["-Wl,--no-as-needed", library.to_str().expect("UTF-8")], "yes"),
        // It may start programs that need it.
        (vec![], "yes"),
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
    assert!(words.contains("TR2 runtime; tools interface TR2, 5 of"), "{words}");
}
