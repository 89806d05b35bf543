//! ThreadSanitizer and memcheck over the tracer, in storms of threads of the reference runtime.
//!
//! A check that finds nothing proves little, so each has to find a mistake first that is planted for it
//! (`tracer/src/os/sanitizer.rs`). ThreadSanitizer sees the tracer and the crates that it is made of, which are built
//! for that. Of the reference runtime and the standard library it sees only what they ask the C library for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::omptrace::{build, release};
use crate::process::{cargo, command, host, output, run, run_watched, target};
use crate::requirements::Purpose;
use crate::setup;

/// The tests that both run, of `tests/tests/reference`.
const TESTS: &[&str] = &[
    "loses_nothing_when_finalize_comes_in_a_storm",
    "records_threads_that_come_and_go",
    PLANTED_IS_FOUND_IN,
];
/// Here the end reads what 64 threads have recorded.
const PLANTED_IS_FOUND_IN: &str = "survives_a_storm_of_64_threads";

/// The last `Arc` frees what the others have used: how it comes to know of them lies in the standard library. And what
/// the reference runtime does is not looked at.
const SUPPRESSIONS: &str = "race:drop_slow\ncalled_from_lib:reference-runtime\n";

/// A tool that finds mistakes.
struct Sanitizer {
    name: &'static str,
    /// What runs the reference runtime, words apart by spaces.
    runtime: String,
    variables: Vec<(&'static str, String)>,
    /// Where each process leaves a file, empty or not there if nothing was found.
    reports: PathBuf,
    /// Builds the tracer with further flags.
    build: fn(&Path, &[&str]) -> Result<PathBuf>,
    /// The mistake that it must find.
    planted: &'static str,
}

/// Runs all of it.
///
/// # Errors
/// There were reports, or none where a mistake was planted.
pub(crate) fn check(install: bool) -> Result<()> {
    setup::ensure(Purpose::Tests, install)?;
    build()?;
    let folder = target().join("sanitize");
    fs::create_dir_all(&folder)?;
    for sanitizer in [thread_sanitizer(&folder)?, memcheck(&folder)?] {
        sanitizer.check(&folder)?;
    }
    Ok(())
}

fn thread_sanitizer(folder: &Path) -> Result<Sanitizer> {
    let suppressions = folder.join("suppressions");
    fs::write(&suppressions, SUPPRESSIONS)?;
    let reports = folder.join("races");
    Ok(Sanitizer {
        name: "ThreadSanitizer",
        runtime: runtime_with_thread_sanitizer(folder)?.display().to_string(),
        variables: vec![(
            "TSAN_OPTIONS",
            format!(
                "report_thread_leaks=0 suppressions={} log_path={}",
                suppressions.display(),
                reports.join("process").display()
            ),
        )],
        reports,
        build: tracer_for_thread_sanitizer,
        planted: "race",
    })
}

/// The reference runtime with ThreadSanitizer's own runtime, which must be the first thing in a process.
fn runtime_with_thread_sanitizer(folder: &Path) -> Result<PathBuf> {
    let libraries = output(&mut command("rustc", ["--print", "target-libdir"]))?;
    let libraries = PathBuf::from(String::from_utf8(libraries)?.trim());
    let sanitizer = fs::read_dir(&libraries)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with("_rt.tsan.a"))
        .ok_or_else(|| format!("no ThreadSanitizer in {}", libraries.display()))?;
    run(cargo([
        "rustc",
        "--package=ompt-reference-runtime",
        "--bin=reference-runtime",
        "--",
    ])
    .arg(format!(
        "-Clink-args=-rdynamic -Wl,--whole-archive {} -Wl,--no-whole-archive",
        sanitizer.display()
    )))?;
    let runtime = folder.join("reference-runtime");
    fs::copy(target().join("debug/reference-runtime"), &runtime)?;
    Ok(runtime)
}

fn tracer_for_thread_sanitizer(folder: &Path, flags: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    // With a target named, build scripts and macros are built without these flags.
    run(tracer(folder)
        .args(["--target", &host, "--", "--cfg=omptrace_thread_sanitizer"])
        .args(flags)
        .env(
            "RUSTFLAGS",
            "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
        )
        // Lets a stable compiler do it.
        .env("RUSTC_BOOTSTRAP", "1"))?;
    Ok(folder.join(host).join("debug"))
}

fn memcheck(folder: &Path) -> Result<Sanitizer> {
    run(&mut cargo([
        "build",
        "--package=ompt-reference-runtime",
        "--bin=reference-runtime",
    ]))?;
    let reports = folder.join("faults");
    Ok(Sanitizer {
        name: "memcheck",
        runtime: format!(
            "valgrind --quiet --fair-sched=yes --log-file={} {}",
            reports.join("%p").display(),
            target().join("debug/reference-runtime").display()
        ),
        variables: Vec::new(),
        reports,
        build: tracer_for_memcheck,
        planted: "fault",
    })
}

fn tracer_for_memcheck(folder: &Path, flags: &[&str]) -> Result<PathBuf> {
    run(tracer(folder).arg("--").args(flags))?;
    Ok(folder.join("debug"))
}

/// Builds the tracer below `folder`.
fn tracer(folder: &Path) -> std::process::Command {
    let mut command = cargo([
        "rustc",
        "--package=omptrace-tracer",
        "--lib",
        "--target-dir",
    ]);
    command
        .arg(folder)
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    command
}

impl Sanitizer {
    fn check(&self, folder: &Path) -> Result<()> {
        let planted = format!("--cfg=omptrace_planted=\"{}\"", self.planted);
        self.run(folder, &[&planted], &[PLANTED_IS_FOUND_IN])?;
        let found = self.reports()?;
        if found.is_empty() {
            return Err(format!("{} did not find the {} planted", self.name, self.planted).into());
        }
        println!("{} finds the {} planted", self.name, self.planted);

        let passed = self.run(folder, &[], TESTS)?;
        for report in self.reports()? {
            println!("{report}");
        }
        match (passed, self.reports()?.len()) {
            (true, 0) => Ok(()),
            (_, reports) => Err(format!(
                "{}: {reports} processes with reports, {}",
                self.name,
                if passed {
                    "tests passed"
                } else {
                    "tests failed"
                }
            )
            .into()),
        }
    }

    /// Whether the tests pass with the tracer that is built with these flags.
    fn run(&self, folder: &Path, flags: &[&str], tests: &[&str]) -> Result<bool> {
        let built = (self.build)(folder, flags)?;
        let product = folder.join("product");
        for made in [&product, &self.reports] {
            if made.exists() {
                fs::remove_dir_all(made)?;
            }
            fs::create_dir(made)?;
        }
        fs::copy(built.join("libomptrace.so"), product.join("libomptrace.so"))?;
        fs::copy(release().join("omptrace"), product.join("omptrace"))?;
        let mut command = cargo(["test", "--package=omptrace-tests", "--test=reference", "--"]);
        command
            .args(tests)
            .env("OMPTRACE_TEST_BIN_DIR", &product)
            .env("OMPTRACE_TEST_REFERENCE_RUNTIME", &self.runtime)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        run_watched(&mut command, |_| ())
    }

    /// What it has found, process by process.
    fn reports(&self) -> Result<Vec<String>> {
        let mut reports = Vec::new();
        for entry in fs::read_dir(&self.reports)? {
            reports.push(String::from_utf8_lossy(&fs::read(entry?.path())?).into_owned());
        }
        reports.retain(|report| !report.is_empty());
        Ok(reports)
    }
}
