//! What `cargo xtask sanitize` passes to tests, so that they run their programs with a sanitizer.

use std::env;
use std::path::Path;
use std::process::Command;

/// Further flags for the compiler of the programs: ThreadSanitizer's own runtime, which must be part of the program.
pub fn compiler_flags() -> Vec<String> {
    words("OMPTRACE_TEST_GCC_FLAGS")
}

/// Runs a program, with the sanitizer that runs programs if there is one (valgrind).
pub fn command(program: &Path) -> Command {
    let mut runner = words("OMPTRACE_TEST_RUNNER");
    runner.push(program.display().to_string());
    let mut command = Command::new(&runner[0]);
    command.args(&runner[1..]);
    command
}

/// The words of a variable.
fn words(variable: &str) -> Vec<String> {
    let text = env::var(variable).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
