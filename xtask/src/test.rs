//! Every check and every test; at the end what failed is listed, and all are counted.

use std::collections::VecDeque;
use std::process::Command;

use crate::Result;
use crate::omptrace::{build, release};
use crate::process::{cargo, command, run_watched, succeeds};
use crate::requirements::{Purpose, tools};
use crate::setup;

/// So much of what a failed check printed is repeated at the end.
const MAX_LAST_LINES: usize = 60;

/// GB that a whole run writes, tools and what is built included.
const DISK_GB: u64 = 12;

/// `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// Only what needs nothing but Rust and a C compiler: the tests of each crate, and those on the reference runtime.
    /// Installs nothing
    #[arg(long)]
    core: bool,
}

/// Runs everything to its end, whatever fails on the way; the last line of stdout is `N passed, N failed`.
///
/// # Errors
/// Something failed.
pub(crate) fn run(arguments: &Test, install: bool) -> Result<()> {
    let mut total = Count::default();
    if let Some(free) = free_gb().filter(|free| !arguments.core && *free < DISK_GB) {
        eprintln!("warning: {free} GB of disk are free, and a whole run needs {DISK_GB}");
    }
    let prepared = match arguments.core {
        true => Ok(()),
        false => setup::ensure(Purpose::Tests, install),
    };
    // What the end-to-end tests trace with is what a user gets.
    match prepared.and_then(|()| build()) {
        Ok(()) => {
            for step in if arguments.core {
                core_steps()
            } else {
                steps()
            } {
                let count = step.run()?;
                total.passed += count.passed;
                total.failed += count.failed;
                total.lines.extend(count.lines);
                total.flaky.extend(count.flaky);
            }
        }
        Err(error) => total.fail(format!("before any test: {error}")),
    }
    println!();
    for line in &total.flaky {
        println!("{line}");
    }
    for line in &total.lines {
        println!("FAILED  {line}");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    match total.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} failed").into()),
    }
}

/// Free space where things are built, in GB; `None` where `df` does not say.
fn free_gb() -> Option<u64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kib: u64 = text
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()?;
    Some((kib << 10) / 1_000_000_000)
}

/// One command of the whole.
struct Step {
    name: &'static str,
    command: Command,
    /// Whether it runs tests and counts them; a command that does not is itself one test.
    counts: bool,
}

/// A command that is one test.
fn check(name: &'static str, command: Command) -> Step {
    Step {
        name,
        command,
        counts: false,
    }
}

/// A command that runs tests.
fn tests(name: &'static str, command: Command) -> Step {
    Step {
        name,
        command,
        counts: true,
    }
}

fn formatting() -> Step {
    check("formatting", cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Step {
    let words = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "--deny=warnings",
    ];
    check("clippy", cargo(words))
}

fn growth() -> Step {
    check("places of growth", cargo(["xtask", "growth"]))
}

fn prose() -> Step {
    check("plain English", cargo(["xtask", "prose"]))
}

/// The steps that need no tool and no further runtime.
fn core_steps() -> Vec<Step> {
    /// Packages all of whose tests are of that kind.
    const PACKAGES: &[&str] = &[
        "--package=omptrace-settings",
        "--package=omptrace-runtimes",
        "--package=omptrace-trace-format",
        "--package=omptrace-device",
        "--package=omptrace-tracer",
        "--package=omptrace-libgomp-adapter",
        "--package=ompt-conformance",
        "--package=ompt-reference-runtime",
        "--package=omptrace-common",
        "--package=omptrace-symbols",
        "--package=omptrace-timeline",
        "--package=omptrace-analysis",
        "--package=otf2-archive",
        "--package=omptrace-viewer-export",
        "--package=omptrace-cli",
    ];
    /// Tests on the reference runtime that need headers or OTF2's tools.
    const NEED_TOOLS: [&str; 4] = ["counts::", "runtime::", "migration::", "archives"];
    let run = |words: &[&str]| cargo(["test", "--no-fail-fast"].iter().chain(words));
    let mut of_packages = run(PACKAGES);
    of_packages.args(["--lib", "--bins", "--tests"]);
    let mut on_reference_runtime = run(&[
        "--package=omptrace-tests",
        "--lib",
        "--test=reference",
        "--",
    ]);
    on_reference_runtime.args(NEED_TOOLS.iter().flat_map(|name| ["--skip", name]));
    with_environment(vec![
        formatting(),
        clippy(),
        prose(),
        // Its other test compares it with headers that are downloaded.
        tests("the interface", run(&["--package=ompt-sys", "--lib"])),
        tests("each package", of_packages),
        tests("the reference runtime", on_reference_runtime),
    ])
}

fn steps() -> Vec<Step> {
    let runner = if succeeds(&mut cargo(["nextest", "--version"])) {
        cargo(["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        cargo([
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ])
    };
    let mut deny = command(tools().join("bin/cargo-deny"), ["--workspace", "check"]);
    deny.args(["bans", "licenses", "sources"]);
    with_environment(vec![
        formatting(),
        clippy(),
        prose(),
        growth(),
        check("cargo-deny", deny),
        tests("tests", runner),
        check(
            "instructions per event",
            cargo(["xtask", "--no-install", "bench", "--short"]),
        ),
        check(
            "ThreadSanitizer and memcheck",
            cargo(["xtask", "--no-install", "sanitize"]),
        ),
        check(
            "a minute of each fuzzer",
            // The same seed each time. libFuzzer goes by the clock, too, so that other inputs come all the same.
            cargo(["xtask", "--no-install", "fuzz", "--seed=1"]),
        ),
        tests(
            "documentation's tests",
            cargo(["test", "--workspace", "--doc", "--no-fail-fast"]),
        ),
    ])
}

/// The steps, with what their commands find in the environment.
fn with_environment(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        step.command
            .env("CARGO_TERM_COLOR", "never")
            .env("OMPTRACE_TEST_BIN_DIR", release());
    }
    steps
}

impl Step {
    fn run(mut self) -> Result<Count> {
        let mut count = Count::default();
        let mut last = VecDeque::new();
        let ended_well = run_watched(&mut self.command, |line| {
            if self.counts {
                count.look(line);
            } else {
                if last.len() == MAX_LAST_LINES {
                    last.pop_front();
                }
                last.push_back(format!("\n  | {line}"));
            }
        })?;
        match (self.counts, ended_well) {
            (false, true) => count.passed += 1,
            (true, true) => {}
            // Tests that failed are counted already; a command that failed without them did not get that far.
            (_, false) if count.failed == 0 => {
                // Where all output is too long to be kept, its end may be.
                let last: String = last.into_iter().collect();
                count.fail(format!("{}{last}", self.name));
            }
            (_, false) => {}
        }
        Ok(count)
    }
}

/// How many tests passed and failed, as their runner reports.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    /// The lines of tests that failed.
    lines: Vec<String>,
    /// The lines of tests that passed, but not at once.
    flaky: Vec<String>,
    /// Whether nextest's summary has come, below which it repeats what is not as it should be.
    summed_up: bool,
}

impl Count {
    fn fail(&mut self, line: String) {
        self.failed += 1;
        self.lines.push(line);
    }

    /// Takes in one line of a runner's output: the summaries of `cargo test`, one per binary,
    ///
    /// ```text
    /// test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
    /// ```
    ///
    /// and the one of `cargo nextest run`. Below it are the tests that failed, and those that passed at a later try only:
    ///
    /// ```text
    ///      Summary [  15.254s] 4 tests run: 2 passed (1 flaky), 1 failed, 1 timed out, 0 skipped
    ///    FLAKY 2/3 [   0.013s] (1/4) package module::test
    ///   TRY 3 FAIL [   0.146s] (3/4) package module::other_test
    ///    TRY 3 TMT [   4.004s] (4/4) package module::test_that_hangs
    /// ```
    ///
    /// Above, it shows the output of each test that failed, indented, in the form of `cargo test`.
    fn look(&mut self, line: &str) {
        let trimmed = line.trim_start();
        let sums_up = trimmed.starts_with("Summary [");
        if line.starts_with("test result:") || sums_up {
            self.passed += before(line, "passed");
            self.failed += before(line, "failed") + before(line, "timed out");
            self.summed_up |= sums_up;
        } else if line.starts_with("test ") && line.ends_with("... FAILED") {
            self.lines.push(line.to_owned());
        } else if self.summed_up && trimmed.starts_with("FLAKY ") {
            self.flaky.push(trimmed.to_owned());
        } else if self.summed_up && trimmed.contains("s] ") {
            self.lines.push(trimmed.to_owned());
        }
    }
}

/// The number in front of `word`; 0 where the line does not have it.
fn before(line: &str, word: &str) -> u64 {
    line.split([',', ';', '.', ':'])
        .filter_map(|part| part.trim_start().split_once(' '))
        .find(|(_, rest)| *rest == word || rest.starts_with(&format!("{word} (")))
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(output: &str) -> (u64, u64) {
        let mut count = Count::default();
        output.lines().for_each(|line| count.look(line));
        (count.passed, count.failed)
    }

    #[test]
    fn adds_up_the_binaries_of_cargo_test() {
        let output = "\
running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(counted(output), (5, 4));
    }

    #[test]
    fn understands_nextest() {
        let well = "     Summary [   2.059s] 12 tests run: 12 passed (2 slow), 3 skipped";
        assert_eq!(counted(well), (12, 0));
        let badly =
            "     Summary [   0.059s] 5 tests run: 3 passed, 1 failed, 1 timed out, 0 skipped";
        assert_eq!(counted(badly), (3, 2));
    }

    #[test]
    fn names_what_passed_at_a_later_try_and_what_never_did() {
        let output = "\
  TRY 1 FAIL [   0.208s] (───) package late
  TRY 2 PASS [   0.013s] (1/4) package late
        PASS [   0.013s] (2/4) package well
  TRY 3 FAIL [   0.146s] (3/4) package never
    test never ... FAILED
   TRY 3 TMT [   4.004s] (4/4) package hangs
     Summary [  15.254s] 4 tests run: 2 passed (1 flaky), 1 failed, 1 timed out, 0 skipped
   FLAKY 2/3 [   0.013s] (1/4) package late
  TRY 3 FAIL [   0.146s] (3/4) package never
   TRY 3 TMT [   4.004s] (4/4) package hangs
error: test run failed";
        let mut count = Count::default();
        output.lines().for_each(|line| count.look(line));
        assert_eq!((count.passed, count.failed), (2, 2));
        assert_eq!(count.flaky, ["FLAKY 2/3 [   0.013s] (1/4) package late"]);
        let failed = [
            "TRY 3 FAIL [   0.146s] (3/4) package never",
            "TRY 3 TMT [   4.004s] (4/4) package hangs",
        ];
        assert_eq!(count.lines, failed);
    }
}
