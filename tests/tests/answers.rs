//! The messages of `omptrace record` on what it could not see: libraries apart from what is preloaded, traces without a
//! note.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, archer, compile, libgomp_adapter, omptrace_program, python, runtime, tool_library,
};
use omptrace_tests::trace::{Traces, counts, dump, info, omptrace};

/// Runs `omptrace record` with `arguments` to its good end; the traces appear in `traces`.
fn record<A: AsRef<OsStr>>(traces: &Traces, arguments: impl IntoIterator<Item = A>) -> Output {
    let libomp = runtime("llvm-19").join("libomp.so.5");
    record_by(&omptrace_program(), &libomp, traces, arguments)
}

/// The same by this program, with this runtime of LLVM.
fn record_by<A: AsRef<OsStr>>(
    omptrace: &Path,
    libomp: &Path,
    traces: &Traces,
    arguments: impl IntoIterator<Item = A>,
) -> Output {
    let output = Command::new(omptrace)
        .arg("record")
        .arg("--libomp")
        .arg(libomp)
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

fn plugin(compiler: Compiler) -> PathBuf {
    let rpath = format!("-Wl,-rpath,{}", runtime("llvm-19").display());
    let flags = match compiler {
        Compiler::Gcc => vec!["-shared", "-fPIC"],
        _ => vec!["-shared", "-fPIC", &*rpath],
    };
    compile("tests/programs/openmp_library.c", compiler, &flags)
}

/// They do not see the runtime that is preloaded, and find their own libgomp.
#[test]
fn a_library_apart_that_runs_on_libgomp_is_reported() {
    let host = compile("tests/programs/plugin_host.c", Compiler::Gcc, &["-ldl"]);
    let library = plugin(Compiler::Gcc);
    let observed = &["--libgomp", "observe", "--"][..];
    for (way, how) in [
        ("plain", None),
        ("deepbind", Some("dlopen with RTLD_DEEPBIND")),
        ("closed", Some("dlopen with RTLD_DEEPBIND")),
        ("dlmopen", Some("dlmopen")),
    ] {
        for options in [&["--"][..], observed] {
            let traces = Traces::folder();
            let program = [host.as_os_str(), way.as_ref(), library.as_os_str()];
            let options = options.iter().map(OsStr::new);
            let output = record(&traces, options.chain(program));
            assert_eq!(output.stdout, b"2\n", "{way}: {output:?}");
            let said = said(&output);
            assert_eq!(traces.all_files().len(), usize::from(how.is_none()), "{said}");
            let words = how.map(|how| {
                let regions = format!("the parallel regions of {} were not recorded", library.display());
                [regions, format!("in this library, which the program loaded using {how}")]
            });
            assert_eq!(said.contains("were not recorded"), words.is_some(), "{said}");
            assert!(words.into_iter().flatten().all(|words| said.contains(&words)), "{said}");
            assert!(!said.contains("likely reason"), "{said}");
        }
    }
}

/// As those of Python's extensions that ask for it: `sys.setdlopenflags`.
#[test]
fn a_library_apart_is_reported_beside_a_trace() {
    let traces = Traces::folder();
    let script = "import ctypes, os, sys
for path, flags in zip(sys.argv[1:], (os.RTLD_NOW, os.RTLD_NOW | os.RTLD_DEEPBIND)):
    print(ctypes.CDLL(path, flags).count_threads(2))";
    let (seen, apart) = (
        plugin(Compiler::Gcc),
        compile("tests/programs/openmp_library.c", Compiler::Gcc, &["-shared", "-fPIC", "-DAPART"]),
    );
    let arguments = [
        OsStr::new("--"),
        python().leak().as_os_str(),
        "-c".as_ref(),
        script.as_ref(),
        seen.as_os_str(),
        apart.as_os_str(),
    ];
    let output = record(&traces, arguments);
    assert_eq!(output.stdout, b"2\n2\n", "{output:?}");
    let said = said(&output);
    let words = format!("the parallel regions of {} were not", apart.display());
    assert!(said.contains(&words), "{said}");
    assert!(!said.contains(&seen.display().to_string()), "{said}");
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 1, "{said}");
}

/// LLVM's runtime looks for tools wherever it is.
#[test]
fn a_library_apart_that_runs_on_the_runtime_of_llvm_is_traced() {
    let host = compile("tests/programs/plugin_host.c", Compiler::Gcc, &["-ldl"]);
    let library = plugin(Compiler::Clang22);
    for way in ["plain", "deepbind", "dlmopen"] {
        let traces = Traces::folder();
        let program = [host.as_os_str(), way.as_ref(), library.as_os_str()];
        let output = record(&traces, [OsStr::new("--")].into_iter().chain(program));
        assert_eq!(output.stdout, b"2\n", "{way}: {output:?}");
        assert!(!said(&output).contains("were not recorded"), "{output:?}");
        assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 1, "{way}");
    }
}

/// A folder that everybody may write into, as `/tmp` is.
fn open_folder(path: &Path) {
    fs::create_dir(path).expect("a folder");
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("our folder");
}

/// It cannot leave a note in the registry, which is ours alone.
#[test]
fn the_trace_of_a_process_of_another_user_is_found() {
    let traces = Traces::folder();
    fs::set_permissions(traces.path(), fs::Permissions::from_mode(0o755)).expect("our folder");
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    // Folders on the way to these may be closed to others, as root's home is.
    let copy = |from: &Path, name: &str| {
        let copy = traces.path().join(name);
        fs::copy(from, &copy).expect("it can be copied");
        copy
    };
    copy(&program, "app");
    let omptrace = copy(&omptrace_program(), "omptrace");
    copy(&tool_library(), "libomptrace.so");
    copy(&libgomp_adapter(), "libomptgomp.so");
    let libomp = copy(&runtime("llvm-19").join("libomp.so.5"), "libomp.so.5");
    // SAFETY: no arguments, and it cannot fail.
    let script = match unsafe { libc::geteuid() } {
        0 => "exec setpriv --reuid=65534 --regid=65534 --clear-groups ./app 2 4",
        _ => "chmod 0 $OMPTRACE_REGISTRY; ./app 2 4; chmod 700 $OMPTRACE_REGISTRY",
    };
    let script = format!("export PMI_RANK=7 LD_LIBRARY_PATH=$PWD; {script}");
    for (folder, output) in [("plain", "plain/"), ("run-7", "run-%r/x.%p.omptrace")] {
        let at = traces.path().join(folder);
        open_folder(&at);
        // A trace of another run stays as it is.
        fs::write(at.join("other.omptrace"), "no trace").expect("our folder");
        let words = ["-o", output, "--", "sh", "-c", &script];
        let output = record_by(&omptrace, &libomp, &traces, words);
        let said = said(&output);
        let found = fs::read_dir(&at).expect("our folder").flatten();
        let found: Vec<_> =
            found.map(|entry| entry.path()).filter(|path| !path.ends_with("other.omptrace")).collect();
        let [trace] = &*found else {
            panic!("{found:?} {said}");
        };
        let name = format!("{folder}/{}", trace.file_name().expect("a name").display());
        assert!(said.contains(&format!("{name} belongs to this run")), "{said}");
        assert!(said.contains(&format!("  Trace  {name} (")), "{said}");
        assert!(!said.contains("nothing was traced"), "{said}");
        assert!(info(trace)["record"].is_object(), "{said}");
    }
}

/// As where the product lies below root's home. Who is not root cannot run a program as another user.
#[test]
fn a_tracer_that_another_user_cannot_load_is_reported() {
    let traces = Traces::folder();
    fs::set_permissions(traces.path(), fs::Permissions::from_mode(0o755)).expect("our folder");
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    fs::copy(&program, traces.path().join("app")).expect("it can be copied");
    let closed = traces.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    let tool = closed.join("libomptrace.so");
    fs::copy(tool_library(), &tool).expect("it can be copied");
    // The user cannot reach a runtime below root's home either.
    let libomp = runtime("llvm-19").join("libomp.so.5");
    fs::copy(libomp, traces.path().join("libomp.so.5")).expect("it can be copied");
    let tool = tool.to_str().expect("UTF-8");
    open_folder(&traces.path().join("out"));
    // SAFETY: no arguments, and it cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    for (mode, is_closed) in [(0o700, true), (0o755, false)] {
        fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("our folder");
        if !is_root {
            continue;
        }
        let script = "export LD_LIBRARY_PATH=$PWD; \
                      exec setpriv --reuid=65534 --regid=65534 --clear-groups ./app 2 4";
        let output = record(&traces, ["--tool", tool, "-o", "out/", "--", "sh", "-c", script]);
        let said = said(&output);
        assert_eq!(said.contains("nothing was traced"), is_closed, "{said}");
        let words = format!("other users have no access to {}", closed.display());
        assert_eq!(said.contains(&words), is_closed, "{said}");
    }
}

/// Scripts that run `$1` so that its file is gone when it has ended.
const GOING: &[(&str, &str)] = &[
    ("removed", "mkdir d; cp \"$1\" d/app; d/app 2 4; r=$?; rm -r d; exit $r"),
    ("replaced", "cp \"$1\" app; ./app 2 4; cp /bin/true other; mv other app"),
    (
        "unmounted",
        "mkdir m; unshare --map-root-user --mount sh -ec 'mount -t tmpfs none m; cp \"$1\" m/app; m/app 2 4; umount m' sh \"$1\"",
    ),
    (
        "in_memory",
        "exec \"$2\" -c 'import os, sys
file = os.memfd_create(\"app\")
os.write(file, open(sys.argv[1], \"rb\").read())
os.execve(file, [\"app\", \"2\", \"4\"], os.environ)' \"$1\"",
    ),
];

/// One that unpacks itself, as those of PyInstaller and AppImage do, or has no file system any more.
#[test]
fn functions_of_a_program_that_is_gone_have_names() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &["-g", "-Wl,--build-id"]);
    let without_id = compile("tests/programs/tasks.c", Compiler::Clang22, &["-g", "-Wl,--build-id=none"]);
    let lines = |text: &str| text.contains("tasks.c:") && !text.contains("app+0x");
    for (way, script) in GOING {
        for program in [&program, &without_id] {
            let traces = Traces::folder();
            let program = program.as_os_str();
            let arguments = ["-o", "x.omptrace", "--", "sh", "-c", script, "sh"].map(OsStr::new);
            let arguments = arguments.into_iter().chain([program, python().leak().as_os_str()]);
            let said = said(&record(&traces, arguments));
            let trace = traces.path().join("x.omptrace");
            let stats = omptrace(["stats".as_ref(), "--full".as_ref(), trace.as_os_str()]);
            let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
            assert!(lines(&stats), "{way}: {stats} {said}");
            assert!(!said.contains("no names"), "{way}: {said}");
        }
    }
}

#[test]
fn functions_of_a_library_that_is_gone_have_names() {
    let library = compile("tests/programs/openmp_library.c", Compiler::Gcc, &["-g", "-shared", "-fPIC"]);
    let script = "import ctypes, shutil, os, sys
shutil.copy(sys.argv[1], 'unpacked.so')
print(ctypes.CDLL('./unpacked.so').count_threads(2))
os.remove('unpacked.so')";
    let traces = Traces::folder();
    let python = python();
    let arguments = ["-o", "x.omptrace", "--"].map(OsStr::new);
    let arguments = arguments.into_iter().chain([
        python.as_os_str(),
        "-c".as_ref(),
        script.as_ref(),
        library.as_os_str(),
    ]);
    let said = said(&record(&traces, arguments));
    let trace = traces.path().join("x.omptrace");
    let stats = omptrace(["stats".as_ref(), "--full".as_ref(), trace.as_os_str()]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(stats.contains("openmp_library.c:"), "{stats} {said}");
}

/// Without `record`, nobody has looked while the files were there.
#[test]
fn names_that_are_missing_are_reported() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &["-g"]);
    let traces = Traces::folder();
    let copy = traces.path().join("app");
    fs::copy(program, &copy).expect("it can be copied");
    let mut command = Command::new(&copy);
    traces.record(command.args(["2", "4"]));
    let [trace] = &*traces.files() else {
        panic!("one trace: {:?}", traces.files());
    };
    let printed = |command: &str| {
        let output = omptrace([command.as_ref(), trace.as_os_str()]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let words = "app: the file is gone, so its addresses have no names";
    for command in ["check", "info"] {
        assert!(!printed(command).contains(words), "{}", printed(command));
    }
    fs::remove_file(&copy).expect("our own file");
    for command in ["check", "info"] {
        assert!(printed(command).contains(words), "{}", printed(command));
    }
    assert!(printed("check").contains(": sound"), "{}", printed("check"));
}

/// LLVM's runtime takes one tool: Archer where there is no other. The tracer passes on to it.
#[test]
fn programs_that_archer_watches_are_watched_while_recorded() {
    let program =
        compile("tests/programs/thread_sanitizer.c", Compiler::Clang22, &["-g", "-fsanitize=thread"]);
    let with_options = |command: &mut Command| {
        command
            .env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")
            // Where the runtime looks for Archer.
            .env("LD_LIBRARY_PATH", archer().parent().expect("a folder"))
            .output()
            .expect("it can be run")
    };
    let alone = with_options(&mut Command::new(&program));
    assert!(alone.status.success(), "{alone:?}");
    assert_eq!((&*alone.stdout, &*alone.stderr), (&b"5 2\n"[..], &b""[..]));

    let traces = Traces::folder();
    let mut command = Command::new(omptrace_program());
    command.args(["record", "-o", "x.omptrace", "--"]);
    let recorded = with_options(command.arg(&program).current_dir(traces.path()));
    assert_eq!(recorded.stdout, alone.stdout, "{recorded:?}");
    assert_eq!(recorded.status, alone.status, "{recorded:?}");
    let words = "is built with ThreadSanitizer, so LLVM's OpenMP runtime would load the tool Archer";
    let text = said(&recorded);
    assert!(!text.contains(words) && !text.contains("WARNING"), "{text}");
    assert_eq!(traces.all_files().len(), 1, "{text}");

    // Where it may not pass on, that is reported.
    let traces = Traces::folder();
    let mut command = Command::new(omptrace_program());
    command.args(["record", "-o", "x.omptrace", "--"]);
    command.env("OMPTRACE_CHAIN", "0");
    let refused = with_options(command.arg(&program).current_dir(traces.path()));
    let text = said(&refused);
    assert!(text.contains(words), "{text}");
    assert!(text.contains("unset OMPTRACE_CHAIN"), "{text}");
}

/// Of a pair, one end alone shows nothing.
#[test]
fn a_selection_with_half_a_pair_is_reported() {
    let program = compile("tests/programs/locks.c", Compiler::Clang22, &[]);
    for (events, half) in [
        ("-mutex_released", Some("mutex_released")),
        ("parallel,thread,mutex_acquire", Some("mutex_acquired")),
        ("-parallel_end", Some("parallel_end")),
        ("-task_create", Some("task_create")),
        ("-mutex", None),
        ("parallel", None),
    ] {
        let traces = Traces::folder();
        let arguments = ["-o", "x.omptrace", "--events", events, "--"].map(OsStr::new);
        let said = said(&record(&traces, arguments.into_iter().chain([program.as_os_str()])));
        let check = omptrace(["check".as_ref(), traces.path().join("x.omptrace").as_os_str()]);
        let check = String::from_utf8_lossy(&check.stdout).into_owned();
        let words = half.map(|half| format!("without {half}"));
        for report in [&said, &check] {
            assert_eq!(report.contains("was recorded without"), half.is_some(), "{report}");
            let is_reported = words.as_ref().is_none_or(|words| report.contains(words));
            assert!(is_reported, "{events}: {report}");
        }
    }
}

/// Folders of LLVM have its runtime under the name of GCC's, too: that one must not be asked while it starts.
#[test]
fn a_runtime_of_llvm_by_the_name_of_libgomp_is_replaced() {
    let program = compile("tests/programs/gcc_loops.c", Compiler::Gcc, &[]);
    let traces = Traces::folder();
    let libomp = runtime("llvm-19").join("libomp.so.5");
    let llvm = tempfile::tempdir().expect("a folder");
    for name in ["libomp.so.5", "libgomp.so.1"] {
        symlink(&libomp, llvm.path().join(name)).expect("our folder");
    }
    let output = Command::new("timeout")
        .arg("60")
        .arg(omptrace_program())
        .args(["record", "-o", "x.omptrace", "--libomp"])
        .arg(&libomp)
        .arg("--")
        .arg(program)
        .env("LD_LIBRARY_PATH", llvm.path())
        .current_dir(traces.path())
        .output()
        .expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"checksum 200\n", "{output:?}");
    assert_eq!(counts(&dump(&traces.only()))["parallel_begin"], 10);
}
