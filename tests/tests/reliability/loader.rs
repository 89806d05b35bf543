//! What a program learns by asking the loader, and of devices: the same as alone.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, omptrace_program, runtime};
use omptrace_tests::trace::Traces;

/// Runs the program alone and under `record` with options. It has an error for `dlerror` only where it has one alone, and all else is
/// the same.
#[track_caller]
fn learns_the_same(program: &Path, arguments: &[&OsStr], folder: &Path, options: &[&[&str]]) {
    let alone = Command::new(program).args(arguments).env("LD_LIBRARY_PATH", folder).output();
    let alone = alone.expect("it can be run");
    assert_eq!(alone.status.code(), Some(4), "{alone:?}");
    for options in options {
        let traces = Traces::folder();
        let mut command = Command::new(omptrace_program());
        command.args(["record", "-q", "-o"]).arg(traces.path().join("t.omptrace"));
        command.arg("--libomp").arg(runtime("llvm-19").join("libomp.so.5"));
        command.args(*options).arg(program).args(arguments).env("LD_LIBRARY_PATH", folder);
        let output = command.output().expect("it can be run");
        assert_eq!(output.status.code(), Some(4), "{options:?}: {output:?}");
        assert!(!traces.files().is_empty(), "{options:?}: {output:?}");
        let [alone, traced] = [&alone, &output].map(|output| String::from_utf8_lossy(&output.stdout));
        assert_eq!(alone.lines().count(), traced.lines().count(), "{options:?}: {traced}");
        for (alone, traced) in alone.lines().zip(traced.lines()) {
            // A runtime leaves errors of its own, one of each kind of tool that it does not find.
            let is_error = alone.contains("undefined symbol");
            assert!(alone == traced || is_error, "{options:?}: {alone:?} alone, and {traced:?}");
        }
    }
}

#[test]
fn dlerror_says_nothing_where_it_says_nothing_alone() {
    const ASKS: &str = "tests/programs/asks_around.c";
    const LIBRARY: &str = "tests/programs/openmp_library.c";
    let missing = OsStr::new("./is_not_there.so");
    let of_gcc = compile(LIBRARY, Compiler::Gcc, &["-shared", "-fPIC"]);
    let of_clang = compile(LIBRARY, Compiler::Clang14, &["-shared", "-fPIC"]);
    let llvm = runtime("llvm-19");
    let program = compile(ASKS, Compiler::Clang14, &["-fopenmp-version=51", "-ldl"]);
    let arguments = [of_clang.as_os_str(), missing];
    learns_the_same(&program, &arguments, &llvm, &[&[], &["--preload"], &["--sample"]]);
    let program = compile(ASKS, Compiler::Gcc, &["-ldl"]);
    let options: &[&[&str]] = &[
        &["--libgomp", "observe"],
        &["--libgomp", "observe", "--sample"],
        &["--libgomp", "observe", "--preload"],
        &["--libgomp", "observe", "--audit"],
    ];
    let replaced: &[&[&str]] = &[&["--libgomp", "replace"]];
    learns_the_same(&program, &[of_gcc.as_os_str(), missing], &llvm, options);
    learns_the_same(&program, &[of_gcc.as_os_str(), missing], &llvm, replaced);
    learns_the_same(&program, &[of_clang.as_os_str(), missing], &llvm, options);
}

/// Where several libgomps were opened, the adapter asks the loader which one a library is bound to.
#[test]
fn dlerror_says_nothing_where_several_libgomps_are_looked_through() {
    const LIBRARY: &str = "tests/programs/openmp_library.c";
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-shared", "-fPIC"];
    let usual = compile(LIBRARY, Compiler::Gcc, &flags);
    let libgomp = fs::canonicalize(gcc_file("libgomp.so.1")).expect("GCC has it");
    let renamed = folder.path().join("libgomp-a34b3233.so.1");
    fs::copy(libgomp, &renamed).expect("our folder");
    let other = folder.path().join("other.so");
    fs::copy(&usual, &other).expect("our folder");
    patchelf(&["--set-soname", "libgomp-a34b3233.so.1"], &renamed);
    patchelf(&["--replace-needed", "libgomp.so.1", "libgomp-a34b3233.so.1"], &other);
    let program = compile("tests/programs/asks_around.c", Compiler::Gcc, &["-fno-openmp", "-ldl"]);
    let arguments = [usual.as_os_str(), other.as_os_str(), usual.as_os_str()];
    learns_the_same(
        &program,
        &arguments,
        folder.path(),
        &[&["--libgomp", "observe"], &["--libgomp", "observe", "--sample"]],
    );
}

fn gcc_file(name: &str) -> String {
    let output = Command::new(Compiler::Gcc.path()).arg(format!("-print-file-name={name}")).output();
    String::from_utf8_lossy(&output.expect("GCC is there").stdout).trim().to_owned()
}

fn patchelf(words: &[&str], file: &Path) {
    let status = Command::new("patchelf").args(words).arg(file).status();
    assert!(status.expect("patchelf is there").success());
}

/// libgomp looks for its plugins when the program asks first, and not before.
#[test]
fn there_are_as_many_devices_behind_the_adapter_as_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-fno-openmp", "-shared", "-fPIC"];
    let plugin = compile("tests/programs/gcc_device_plugin.c", Compiler::Gcc, &flags);
    fs::copy(plugin, folder.path().join("libgomp-plugin-nvptx.so.1")).expect("our folder");
    let program = compile("tests/programs/asks_around.c", Compiler::Gcc, &["-ldl"]);
    let library = compile("tests/programs/openmp_library.c", Compiler::Gcc, &["-shared", "-fPIC"]);
    let options: &[&[&str]] =
        &[&["--libgomp", "observe"], &["--libgomp", "observe", "--counters", "task-clock"]];
    for folder in [folder.path(), Path::new("/nowhere")] {
        learns_the_same(&program, &[library.as_os_str()], folder, options);
    }
}
