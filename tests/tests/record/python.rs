//! Python with extensions, and two runtimes in one process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, omptrace_program, python, root, runtime};
use omptrace_tests::trace::{Traces, counts, dump, info};

use crate::{ended_well, record, recording, said};

/// The extension that `python_extension.py` loads.
fn extension_by_gcc() -> PathBuf {
    compile("tests/programs/openmp_library.c", Compiler::Gcc, &["-shared", "-fPIC"])
}

#[test]
fn python_with_an_extension_by_gcc() {
    let library = extension_by_gcc();
    let traces = Traces::folder();
    let script = root().join("tests/programs/python_extension.py");
    let arguments =
        ["--".as_ref(), python().as_os_str().to_owned().leak(), script.as_os_str(), library.as_os_str()];
    let output = record(&traces, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "checksum 6\n", "{output:?}");
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
    // The file is no sign that the program runs on it.
    assert!(said(&output).contains("observes GCC's libgomp"), "{output:?}");
    let version = info(&traces.only())["runtime"]["version"].to_string();
    assert!(version.contains("libgomp of GCC"), "{version}");
}

#[test]
fn a_second_runtime_is_reported() {
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
    let message = info(&traces.only())["messages"][0].to_string();
    assert!(message.contains(words), "{message}");
}
