//! Every check and every test; at the end what failed is listed, and all are counted.

use std::collections::VecDeque;
use std::process::Command;
use std::time::Instant;

use crate::omptrace::{build, release};
use crate::process::{End, PATIENCE, cargo, command, run_watched};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::{nextest, tools};

/// So much of what a failed check printed is repeated at the end.
const MAX_LAST_LINES: usize = 60;

/// A test of `cargo test` that fails is tried so often at most, as .config/nextest.toml has it for nextest.
const TRIES: u32 = 3;

/// GB that a whole run writes, tools and what is built included.
const DISK_GB: u64 = 16;

/// `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// Run only the tests that need nothing but Rust and a C compiler: those of each crate, and those on the
    /// reference runtime. Install nothing
    #[arg(long)]
    core: bool,
}

/// Runs everything to its end, whatever fails on the way; the last line of stdout is `N passed, N failed`.
///
/// # Errors
/// Something failed.
pub(crate) fn run(arguments: &Test, install: bool) -> Result<()> {
    let mut total = Count::default();
    if !arguments.core {
        eprintln!(
            "All tests together take about 90 minutes on two CPUs, and need {DISK_GB} GB of disk space."
        );
        if let Some(free) = free_gb().filter(|free| *free < DISK_GB) {
            eprintln!("warning: only {free} GB of disk space are free");
        }
    }
    let mut times = Times::default();
    let prepared = match arguments.core {
        true => Ok(()),
        false => times.of("tools", || setup::ensure(Purpose::Tests, install)),
    };
    // What the end-to-end tests trace with is what a user gets.
    match prepared.and_then(|()| times.of("release build", build)) {
        Ok(()) => {
            for step in if arguments.core { core_steps() } else { steps() } {
                let count = times.of(step.name, || step.run())?;
                total.passed += count.passed;
                total.failed += count.failed;
                total.lines.extend(count.lines);
                total.flaky.extend(count.flaky);
            }
        }
        Err(error) => total.fail(format!("before any test: {error}")),
    }
    println!();
    for (name, seconds) in times.0 {
        println!("{seconds:>6} s  {name}");
    }
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

/// What each step took, in seconds.
#[derive(Debug, Default)]
struct Times(Vec<(&'static str, u64)>);

impl Times {
    fn of<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = step();
        self.0.push((name, begun.elapsed().as_secs()));
        result
    }
}

/// Free space where things are built, in GB; `None` where `df` does not say.
fn free_gb() -> Option<u64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kib: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some((kib << 10) / 1_000_000_000)
}

/// One command of the whole.
struct Step {
    name: &'static str,
    command: Command,
    runs: Runs,
}

/// What a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    /// Itself, which is one test.
    Check,
    /// Tests, by `cargo test`, which does not try again what fails.
    CargoTest,
    /// Tests, by nextest.
    Nextest,
}

/// A command that is one test.
fn check(name: &'static str, command: Command) -> Step {
    Step { name, command, runs: Runs::Check }
}

/// A `cargo test` of these words.
fn tests(name: &'static str, words: &[&str]) -> Step {
    Step { name, command: cargo(["test", "--no-fail-fast"].iter().chain(words)), runs: Runs::CargoTest }
}

fn formatting() -> Step {
    check("formatting", cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Step {
    let words = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny=warnings"];
    check("clippy", cargo(words))
}

fn growth() -> Step {
    check("places of growth", cargo(["xtask", "growth"]))
}

/// Packages all of whose tests need no tool and no further runtime.
const PACKAGES: &[&str] = &[
    "--package=omptrace-settings",
    "--package=omptrace-runtimes",
    "--package=omptrace-trace-format",
    "--package=omptrace-device",
    "--package=omptrace-tracer",
    "--package=omptrace-libgomp-adapter",
    "--package=omptrace-waits",
    "--package=omptrace-mpi-api",
    "--package=omptrace-mpi",
    "--package=omptrace-mpi4",
    "--package=omptrace-mpi-large-count",
    "--package=ompt-conformance",
    "--package=ompt-reference-runtime",
    "--package=omptrace-symbols",
    "--package=omptrace-timeline",
    "--package=omptrace-analysis",
    "--package=omptrace-report",
    "--package=otf2-archive",
    "--package=omptrace-viewer-export",
    "--package=omptrace-cli",
];

/// The steps that need no tool and no further runtime.
fn core_steps() -> Vec<Step> {
    /// Tests on the reference runtime that need headers or OTF2's tools.
    const NEED_TOOLS: [&str; 4] = ["counts::", "runtime::", "migration::", "archives"];
    let of_packages = [PACKAGES, &["--lib", "--bins", "--tests"]].concat();
    let mut on_reference_runtime = vec!["--package=omptrace-tests", "--lib", "--test=reference", "--"];
    on_reference_runtime.extend(NEED_TOOLS.iter().flat_map(|name| ["--skip", name]));
    with_environment(vec![
        formatting(),
        clippy(),
        // Its other test compares it with headers that are downloaded.
        tests("the interface", &["--package=ompt-sys", "--lib"]),
        tests("each package", &of_packages),
        tests("the reference runtime", &on_reference_runtime),
    ])
}

fn steps() -> Vec<Step> {
    let mut deny = command(tools().join("bin/cargo-deny"), ["--workspace", "check"]);
    deny.args(["bans", "licenses", "sources"]);
    with_environment(vec![
        formatting(),
        clippy(),
        growth(),
        check("language", cargo(["xtask", "--no-install", "language"])),
        check("cargo-deny", deny),
        Step {
            name: "tests",
            command: nextest(&["run", "--workspace", "--no-fail-fast"]),
            runs: Runs::Nextest,
        },
        check("instructions per event", cargo(["xtask", "--no-install", "bench", "--short"])),
        check("ThreadSanitizer and memcheck", cargo(["xtask", "--no-install", "sanitize"])),
        check("aarch64", cargo(["xtask", "--no-install", "aarch64"])),
        check(
            "a minute of each fuzzer",
            // The same seed each time. libFuzzer goes by the clock, too, so that other inputs come all the same.
            cargo(["xtask", "--no-install", "fuzz", "--seed=1"]),
        ),
        tests("documentation's tests", &["--workspace", "--doc"]),
    ])
}

/// The steps, with what their commands find in the environment.
fn with_environment(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        step.command
            .env("CARGO_TERM_COLOR", "never")
            // Nothing is built a second time: what incremental builds would keep is 3 GB of disk for nothing.
            .env("CARGO_INCREMENTAL", "0")
            .env("OMPTRACE_TEST_BIN_DIR", release());
    }
    steps
}

impl Step {
    fn run(mut self) -> Result<Count> {
        let mut count = self.attempt(None)?;
        if self.runs == Runs::CargoTest {
            for attempt in 2..=TRIES {
                if count.lines.is_empty() || !count.is_complete {
                    break;
                }
                let again = self.attempt(Some(&count.names()))?;
                if !count.replace(again, attempt) {
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Runs the command once; only the tests of these names, where they are given.
    fn attempt(&mut self, names: Option<&[String]>) -> Result<Count> {
        let mut some;
        let command = match names {
            None => &mut self.command,
            Some(names) => {
                some = only(&self.command, names);
                &mut some
            }
        };
        let mut count = Count::default();
        let mut last = VecDeque::new();
        let end = run_watched(command, PATIENCE, |line| {
            println!("{line}");
            if self.runs != Runs::Check {
                count.look(line);
            }
            if last.len() == MAX_LAST_LINES {
                last.pop_front();
            }
            last.push_back(format!("\n  | {line}"));
        })?;
        // Where all output is too long to be kept, its end may be.
        let last: String = last.into_iter().collect();
        if end == End::Silent {
            let minutes = PATIENCE.as_secs() / 60;
            let how = "ended, because it had printed nothing for";
            count.fail(format!("{}: {how} {minutes} minutes{last}", self.name));
        } else if end == End::Badly && count.failed == 0 {
            // Tests that failed are counted already; a command that failed without them did not get that far.
            count.fail(format!("{}{last}", self.name));
        } else if count.begun > count.ended {
            let how = "a test program did not run to completion";
            count.fail(format!("{}: {how}{last}", self.name));
        } else {
            count.is_complete = true;
            count.passed += u64::from(self.runs == Runs::Check);
        }
        Ok(count)
    }
}

/// The same `cargo test`, of the tests of these names.
fn only(all: &Command, names: &[String]) -> Command {
    let mut some = command(all.get_program(), all.get_args());
    some.envs(all.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if all.get_args().all(|word| word != "--") {
        some.arg("--");
    }
    some.arg("--exact").args(names);
    some
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
    /// Test programs that `cargo test` has begun, and those whose summary has come.
    begun: u64,
    ended: u64,
    /// Whether all that was to run has come to its end.
    is_complete: bool,
}

impl Count {
    fn fail(&mut self, line: String) {
        self.failed += 1;
        self.lines.push(line);
    }

    /// The names of the tests of `cargo test` that failed.
    fn names(&self) -> Vec<String> {
        let name = |line: &String| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(name.trim_end_matches(" - should panic").to_owned())
        };
        self.lines.iter().filter_map(name).collect()
    }

    /// Takes in what came of the tests that failed when they were tried `again`, at this attempt. False where that says nothing.
    fn replace(&mut self, again: Count, attempt: u32) -> bool {
        let has_run = again.passed + again.failed >= self.lines.len() as u64;
        if !again.is_complete || !has_run {
            return false;
        }
        for name in self.names() {
            if !again.names().contains(&name) {
                self.flaky.push(format!("FLAKY {attempt}/{TRIES} {name}"));
            }
        }
        self.passed = (self.passed + self.failed).saturating_sub(again.failed);
        self.failed = again.failed;
        self.lines = again.lines;
        true
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
            self.ended += 1;
        } else if line.starts_with("     Running ") || line.starts_with("   Doc-tests ") {
            self.begun += 1;
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
    use crate::process::output;

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
    fn the_packages_of_the_core_are_in_the_workspace() {
        let metadata = output(&mut cargo(["metadata", "--no-deps", "--offline", "--format-version=1"]));
        let metadata = String::from_utf8(metadata.expect("cargo knows the workspace")).expect("UTF-8");
        for package in PACKAGES {
            let name = package.trim_start_matches("--package=");
            assert!(metadata.contains(&format!("\"name\":\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn understands_nextest() {
        let well = "     Summary [   2.059s] 12 tests run: 12 passed (2 slow), 3 skipped";
        assert_eq!(counted(well), (12, 0));
        let badly = "     Summary [   0.059s] 5 tests run: 3 passed, 1 failed, 1 timed out, 0 skipped";
        assert_eq!(counted(badly), (3, 2));
    }

    fn step(script: &str) -> Step {
        Step { name: "tests", command: command("sh", ["-c", script, "sh"]), runs: Runs::CargoTest }
    }

    #[test]
    fn what_fails_once_under_cargo_test_passes_and_is_listed() {
        // As cargo does: the second time, with the names of what failed.
        let script = r#"case "$*" in
"-- --exact seldom never") echo 'test seldom ... ok'; echo 'test never ... FAILED'
  echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101;;
"-- --exact never") echo 'test never ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101;;
"") echo '     Running unittests src/lib.rs (x)'; echo 'test seldom ... FAILED'; echo 'test never ... FAILED'
  echo 'test result: FAILED. 7 passed; 2 failed; 0 ignored'; exit 101;;
*) exit 1;;
esac"#;
        let count = step(script).run().unwrap();
        assert_eq!((count.passed, count.failed), (8, 1));
        assert_eq!(count.flaky, ["FLAKY 2/3 seldom"]);
        assert_eq!(count.lines, ["test never ... FAILED"]);
    }

    #[test]
    fn what_is_not_run_again_stays_failed() {
        let script = "case $* in '') echo 'test a ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed'; exit 101;;
*) echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out';; esac";
        let count = step(script).run().unwrap();
        assert_eq!((count.passed, count.failed), (1, 1));
        assert_eq!(count.lines, ["test a ... FAILED"]);
    }

    /// A second try of what failed by itself would not show it.
    #[test]
    fn a_test_program_that_crashes_is_a_failure_beside_tests_that_fail() {
        let script = "echo '     Running a (b)'; echo 'test a ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed'
echo '     Running c (d)'; exit 101";
        let count = step(script).run().unwrap();
        assert_eq!((count.passed, count.failed), (1, 2));
        assert!(count.lines[1].starts_with("tests: a test program did not"));
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
        let failed =
            ["TRY 3 FAIL [   0.146s] (3/4) package never", "TRY 3 TMT [   4.004s] (4/4) package hangs"];
        assert_eq!(count.lines, failed);
    }
}
