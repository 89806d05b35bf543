//! Archer, a tool of LLVM's, on libgomp: it learns by the adapter's events what OpenMP orders, and lets ThreadSanitizer know.

use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, archer, compile, libgomp_adapter};
use omptrace_tests::trace::{Traces, omptrace};

/// The program as GCC's ThreadSanitizer instruments it, with the adapter before libgomp.
fn sanitized(flags: &[&str]) -> Command {
    let flags = [&["-fsanitize=thread"], flags].concat();
    let program = compile("tests/programs/thread_sanitizer.c", Compiler::Gcc, &flags);
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", libgomp_adapter())
        // libgomp and the adapter order by atomics that ThreadSanitizer does not see.
        .env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    command
}

/// How many races were reported, and all that was.
fn races(command: &mut Command) -> (usize, String) {
    let output = command.output().expect("the program can be run");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    // The planted race may lose one of both members.
    assert!(stdout.starts_with("5 "), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let races = said.matches("WARNING: ThreadSanitizer: data race").count();
    (races, said)
}

#[test]
fn archer_finds_the_race_and_nothing_else() {
    let alone = |flags: &[&str]| races(sanitized(flags).env("OMP_TOOL_LIBRARIES", archer()));
    let (found, said) = alone(&[]);
    assert_eq!(found, 0, "{said}");
    let (found, said) = alone(&["-DRACE"]);
    assert_eq!(found, 1, "{said}");
    assert!(said.contains("thread_sanitizer.c:18"), "{said}");
    let (found, said) = races(&mut sanitized(&[]));
    assert!(found > 0, "without Archer there are false ones: {said}");
}

#[test]
fn archer_finds_the_same_behind_the_tracer() {
    for (flags, expected) in [([].as_slice(), 0), (&["-DRACE"], 1)] {
        let traces = Traces::folder();
        let mut command = sanitized(flags);
        traces.trace(&mut command).env("OMPTRACE_NEXT_TOOL", archer());
        let (found, said) = races(&mut command);
        assert_eq!(found, expected, "{said}");
        let check = omptrace([Path::new("check"), &traces.only()]);
        assert!(check.status.success(), "{check:?}");
    }
}
