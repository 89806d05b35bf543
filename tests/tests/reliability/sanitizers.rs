//! Programs that are built with a sanitizer: recorded, they end as they do alone, and the sanitizer reports the same.

use std::path::PathBuf;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, omptrace_program, runtime};
use omptrace_tests::trace::{Traces, count, dump};

/// A compiler, its flags, and the ways of `sanitized.c` that the sanitizer reports.
const SANITIZERS: &[(Compiler, &[&str], &[&str])] = &[
    (Compiler::Gcc, &["-fsanitize=address"], &["leak", "overrun"]),
    (Compiler::Gcc, &["-fsanitize=address", "-static-libasan"], &["leak", "overrun"]),
    (Compiler::Gcc, &["-fsanitize=leak"], &["leak"]),
    (Compiler::Gcc, &["-fsanitize=undefined"], &["overflow"]),
    (Compiler::Gcc, &["-fsanitize=undefined", "-static-libubsan"], &["overflow"]),
    (Compiler::Gcc, &["-fsanitize=undefined", "-fno-sanitize-recover=all"], &["overflow"]),
    (Compiler::Clang22, &["-fsanitize=address"], &["leak", "overrun"]),
    (Compiler::Clang22, &["-fsanitize=address", "-shared-libsan"], &["leak", "overrun"]),
    (Compiler::Clang22, &["-fsanitize=leak"], &["leak"]),
    (Compiler::Clang22, &["-fsanitize=memory"], &["uninitialized"]),
    (Compiler::Clang22, &["-fsanitize=undefined"], &["overflow"]),
    (Compiler::Clang22, &["-fsanitize=undefined", "-shared-libsan"], &["overflow"]),
];

/// The folder of clang's shared sanitizers.
fn shared_sanitizers() -> PathBuf {
    let asked = Command::new(Compiler::Clang22.path())
        .arg("-print-file-name=libclang_rt.asan-x86_64.so")
        .output()
        .expect("clang can be run");
    let path = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    path.parent().expect("it lies in a folder").to_owned()
}

/// Runs the command with clang's libraries, and statuses of the user's own for what is reported.
fn ran(command: &mut Command) -> Output {
    let folders = [runtime("llvm-19"), shared_sanitizers()];
    let folders = std::env::join_paths(folders).expect("no colon is in a path");
    command
        .env("LD_LIBRARY_PATH", folders)
        .env("ASAN_OPTIONS", "exitcode=71")
        .env("LSAN_OPTIONS", "exitcode=72")
        .env("MSAN_OPTIONS", "exitcode=73");
    command.output().expect("it can be run")
}

/// `omptrace record` into `traces`.
fn recorder(traces: &Traces, options: &[&str]) -> Command {
    let mut command = Command::new(omptrace_program());
    command.args(["record", "--quiet", "-o"]);
    command.arg(traces.path().join("%p.omptrace"));
    command.args(options).arg("--");
    command
}

/// What a sanitizer reported, without what differs from run to run.
fn reports(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_report = |line: &&str| {
        ["ERROR:", "WARNING:", "SUMMARY:", "runtime error", "leak of"]
            .iter()
            .any(|words| line.contains(words))
    };
    // `==123==`, `0x7f00`.
    let without_numbers = |line: &str| {
        let words = line.split([' ', '=', '(', ')', '+']);
        let is_number = |word: &&str| word.starts_with("0x") || word.parse::<u32>().is_ok();
        let kept: Vec<&str> = words.filter(|word| !is_number(word)).collect();
        kept.join(" ")
    };
    said.lines().filter(is_report).map(without_numbers).collect()
}

#[test]
fn a_program_under_a_sanitizer_ends_as_alone_and_is_traced() {
    for (compiler, flags, reported) in SANITIZERS {
        let program = compile("tests/programs/sanitized.c", *compiler, flags);
        for how in ["well", "within"].iter().chain(*reported) {
            let case = format!("{compiler:?} {flags:?} {how}");
            let alone = ran(Command::new(&program).arg(how));
            assert!(alone.stdout.starts_with(b"threads 1000\n"), "{case}");
            assert_eq!(reports(&alone).is_empty(), ["well", "within"].contains(how), "{case}: {alone:?}");
            let options: [&[&str]; 2] = [&[], &["--sample", "--cpu-time"]];
            for options in options {
                let traces = Traces::folder();
                let recorded = ran(recorder(&traces, options).arg(&program).arg(how));
                let case = format!("{case} {options:?}: {recorded:?}");
                let status = alone.status.code().unwrap_or(128 + 6);
                assert_eq!(recorded.status.code(), Some(status), "{case}");
                assert_eq!(recorded.stdout, alone.stdout, "{case}");
                assert_eq!(reports(&recorded), reports(&alone), "{case}");
                let events = dump(&traces.only());
                assert!(count(&events, "parallel_begin") >= 500, "{case}");
            }
        }
    }
}

/// A shell passes the environment on, and the loader meets the sanitizer in the child only. A library that is preloaded by
/// hand, as for Python's extensions, is behind those of `record`.
#[test]
fn a_sanitizer_is_met_in_a_child_and_where_it_is_preloaded() {
    let program = compile("tests/programs/sanitized.c", Compiler::Gcc, &["-fsanitize=address"]);
    let unaware = compile("tests/programs/sanitized.c", Compiler::Gcc, &[]);
    let asked = Command::new(Compiler::Gcc.path())
        .arg("-print-file-name=libasan.so")
        .output()
        .expect("gcc can be run");
    let library = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    let with_library = format!("LD_PRELOAD={library}:$LD_PRELOAD exec \"$0\" well");
    let behind = format!("LD_PRELOAD=$LD_PRELOAD:{library} exec \"$0\" well");
    for (script, program) in [("\"$0\" well", &program), (&*with_library, &unaware), (&*behind, &unaware)] {
        let traces = Traces::folder();
        let mut command = recorder(&traces, &["--libgomp", "observe"]);
        let recorded = ran(command.args(["sh", "-c", script]).arg(program));
        assert_eq!(recorded.status.code(), Some(5), "{script}: {recorded:?}");
        assert_eq!(recorded.stdout, b"threads 1000\n", "{script}");
        assert_eq!(reports(&recorded), [""; 0], "{script}: {recorded:?}");
        let events = dump(&traces.only());
        assert_eq!(count(&events, "parallel_begin"), 500, "{script}");
    }
}

/// Without Archer, ThreadSanitizer reports races that are none, of the runtime. None is the tracer's.
#[test]
fn thread_sanitizer_reports_nothing_of_the_tracer() {
    for (compiler, flag) in [(Compiler::Gcc, "-fsanitize=thread"), (Compiler::Clang22, "-fsanitize=thread")] {
        let program = compile("tests/programs/sanitized.c", compiler, &[flag]);
        for options in [&[][..], &["--sample", "--cpu-time"]] {
            let traces = Traces::folder();
            let mut command = recorder(&traces, options);
            let recorded = ran(command.arg(&program).arg("well").env("TSAN_OPTIONS", "exitcode=5"));
            // The adapter calls the runtime, and so is in the stacks of its races.
            let said = String::from_utf8_lossy(&recorded.stderr);
            let is_ours = |line: &str| {
                let summary = line.contains("SUMMARY") && line.contains("libompt");
                summary || line.contains("(libomptrace.so+")
            };
            let ours: Vec<&str> = said.lines().filter(|line| is_ours(line)).collect();
            assert!(ours.is_empty(), "{compiler:?} {options:?}: {said}");
            assert_eq!(recorded.status.code(), Some(5), "{said}");
            assert_eq!(recorded.stdout, b"threads 1000\n");
            traces.only();
        }
    }
}
