//! The reference runtime, and the tracer under it.

mod collector;
mod counts;
mod cupti;
mod devices;
mod drafts;
mod forks;
mod migration;
mod runtime;
mod states;
mod tr2;
mod tr2_runtimes;
mod tracer;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use ompt_reference_runtime::{Call, Report, Round, Script, Step};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// The reference runtime, in an environment without variables that speak to it or to tools. `cargo xtask sanitize` names
/// another build of it, or a program that runs it, with what that needs.
fn reference_runtime() -> Command {
    const THIS_BUILD: &str = env!("CARGO_BIN_EXE_play-script");
    let words = std::env::var("OMPTRACE_TEST_REFERENCE_RUNTIME");
    let words = words.as_deref().unwrap_or(THIS_BUILD);
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if ["OMP_", "OMPTRACE_", "COUNT_"].iter().any(|start| name_text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Plays a script: what was played, and how the process ended.
fn play(script: &Script, runtime: &mut Command) -> (Report, Output) {
    let mut process = runtime
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the reference runtime can be run");
    let mut stdin = process.stdin.take().expect("a pipe");
    stdin
        .write_all(&serde_json::to_vec(script).expect("a script has no keys but strings"))
        .expect("the reference runtime reads its script");
    drop(stdin);
    let output = process.wait_with_output().expect("the reference runtime ends");
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("no report ({error}): {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
    });
    (report, output)
}

/// A script of one round that ends regularly.
fn script(threads: Vec<Vec<Step>>) -> Script {
    Script { rounds: vec![Round::new(threads)], ..Script::default() }
}

fn steps(calls: impl IntoIterator<Item = Call>) -> Vec<Step> {
    calls.into_iter().map(Step::from).collect()
}

/// A value that is the same in every run.
fn sample<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> T {
    let tree = strategy.new_tree(&mut TestRunner::deterministic());
    tree.expect("nothing is rejected").current()
}
