//! ThreadSanitizer and memcheck over the tracer, in storms of threads of the reference runtime, over the adapter for
//! libgomp, under programs of GCC's, and over the adapter for MPI, under programs that make all calls in several threads.
//!
//! A check that finds nothing proves little, so each has to find a mistake first that is planted for it
//! (`tracer/src/os/sanitizer.rs`, `adapters/interpose/src/planted.rs`). ThreadSanitizer sees the library that is checked and the
//! crates that it is made of, which are built for that. Of the runtimes and the standard library it sees only what they ask
//! the C library for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::omptrace::{build, release};
use crate::process::{End, PATIENCE, cargo, command, host, output, run, run_watched, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;

/// A library that is checked, by tests of `tests/tests`.
struct Subject {
    package: &'static str,
    /// Its file.
    library: &'static str,
    /// Files beside it, as built for release.
    beside: &'static [&'static str],
    test: &'static str,
    cases: &'static [&'static str],
    /// The case that finds the planted mistakes.
    case_with_mistakes: &'static str,
}

const TRACER: Subject = Subject {
    package: "omptrace-tracer",
    library: "libomptrace.so",
    beside: &["omptrace"],
    test: "reference",
    cases: &[
        "loses_nothing_when_finalize_comes_in_a_storm",
        "records_threads_that_come_and_go",
        "survives_a_storm_of_64_threads",
    ],
    // The end reads what 64 threads have recorded.
    case_with_mistakes: "survives_a_storm_of_64_threads",
};

const ADAPTER: Subject = Subject {
    package: "omptrace-libgomp-adapter",
    library: "libomptgomp.so",
    beside: &["omptrace", "libomptrace.so", "libomptconformance.so"],
    test: "libgomp",
    cases: &["the_adapter_keeps_the_rules_and_the_program", "libraries_are_unloaded_as_without_the_adapter"],
    case_with_mistakes: "the_adapter_keeps_the_rules_and_the_program",
};

const MPI_ADAPTER: Subject = Subject {
    package: "omptrace-mpi",
    library: "libomptmpi.so",
    beside: &["omptrace", "libomptrace.so", "libomptmpi4.so", "libomptmpi4c.so"],
    test: "mpi_player",
    cases: &["every_function_is_recorded_once_and_passed_on_unchanged"],
    case_with_mistakes: "every_function_is_recorded_once_and_passed_on_unchanged",
};

/// The last `Arc` frees what the others have used: how it comes to know of them lies in the standard library. And what
/// the reference runtime does is not looked at.
const SUPPRESSIONS: &str = "race:drop_slow\ncalled_from_lib:reference-runtime\n";

/// A tool that finds mistakes in a subject.
struct Sanitizer {
    name: &'static str,
    subject: &'static Subject,
    /// Variables that the tests need.
    variables: Vec<(&'static str, String)>,
    /// Where each process leaves a file, empty or not there if nothing was found.
    reports: PathBuf,
    /// Builds the subject with further flags, and returns the folder of its file.
    build: fn(&Subject, &Path, &[&str]) -> Result<PathBuf>,
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
    let runtime = sanitizers_runtime()?;
    for sanitizer in [
        thread_sanitizer(&TRACER, &folder, &runtime_with_thread_sanitizer(&folder, &runtime)?)?,
        memcheck(&TRACER, &folder)?,
        thread_sanitizer(&ADAPTER, &folder, &runtime)?,
        memcheck(&ADAPTER, &folder)?,
        thread_sanitizer(&MPI_ADAPTER, &folder, &runtime)?,
        memcheck(&MPI_ADAPTER, &folder)?,
    ] {
        sanitizer.check(&folder)?;
    }
    Ok(())
}

/// ThreadSanitizer's own runtime, a static library that comes with the compiler.
fn sanitizers_runtime() -> Result<PathBuf> {
    let libraries = output(&mut command("rustc", ["--print", "target-libdir"]))?;
    let libraries = PathBuf::from(String::from_utf8(libraries)?.trim());
    let runtime = fs::read_dir(&libraries)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with("_rt.tsan.a"));
    Ok(runtime.ok_or_else(|| format!("no ThreadSanitizer in {}", libraries.display()))?)
}

/// The flags of a linker that put all of a static library into a program, for libraries that are loaded later.
fn whole(library: &Path) -> [String; 4] {
    [
        "-rdynamic".to_owned(),
        "-Wl,--whole-archive".to_owned(),
        library.display().to_string(),
        "-Wl,--no-whole-archive".to_owned(),
    ]
}

/// `runs` is what runs the subject's events: the reference runtime, or for GCC's programs what they are linked with.
fn thread_sanitizer(subject: &'static Subject, folder: &Path, runs: &Path) -> Result<Sanitizer> {
    let suppressions = folder.join("suppressions");
    fs::write(&suppressions, SUPPRESSIONS)?;
    let reports = folder.join("races");
    let mut options = format!(
        "report_thread_leaks=0 suppressions={} log_path={}",
        suppressions.display(),
        reports.join("process").display()
    );
    let variable = match subject.test {
        "reference" => (REFERENCE_RUNTIME, runs.display().to_string()),
        _ => {
            // What libgomp and the tool ask the C library for is theirs. The program that would name functions would be
            // given the library, too, and cannot load it.
            options += " ignore_noninstrumented_modules=1 symbolize=0";
            (GCC_FLAGS, whole(runs).join(" "))
        }
    };
    Ok(Sanitizer {
        name: "ThreadSanitizer",
        subject,
        variables: vec![variable, ("TSAN_OPTIONS", options)],
        reports,
        build: build_for_thread_sanitizer,
        planted: "race",
    })
}

// Variables of the tests.
const REFERENCE_RUNTIME: &str = "OMPTRACE_TEST_REFERENCE_RUNTIME";
const GCC_FLAGS: &str = "OMPTRACE_TEST_GCC_FLAGS";
const RUNNER: &str = "OMPTRACE_TEST_RUNNER";

/// The reference runtime with ThreadSanitizer's own runtime, which must be the first thing in a process.
fn runtime_with_thread_sanitizer(folder: &Path, sanitizer: &Path) -> Result<PathBuf> {
    run(cargo(["rustc", "--package=ompt-reference-runtime", "--bin=reference-runtime", "--"])
        .arg(format!("-Clink-args={}", whole(sanitizer).join(" "))))?;
    let runtime = folder.join("reference-runtime");
    fs::copy(target().join("debug/reference-runtime"), &runtime)?;
    Ok(runtime)
}

fn build_for_thread_sanitizer(subject: &Subject, folder: &Path, flags: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    // With a target named, build scripts and macros are built without these flags.
    run(rustc(subject, folder)
        .args(["--target", &host, "--", "--cfg=omptrace_thread_sanitizer"])
        .args(flags)
        .env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer")
        // Lets a stable compiler do it.
        .env("RUSTC_BOOTSTRAP", "1"))?;
    Ok(folder.join(host).join("debug"))
}

fn memcheck(subject: &'static Subject, folder: &Path) -> Result<Sanitizer> {
    let reports = folder.join("faults");
    let valgrind = format!("valgrind --quiet --fair-sched=yes --log-file={}", reports.join("%p").display());
    let variables = match subject.test {
        "reference" => {
            run(&mut cargo(["build", "--package=ompt-reference-runtime", "--bin=reference-runtime"]))?;
            let runtime = target().join("debug/reference-runtime");
            vec![(REFERENCE_RUNTIME, format!("{valgrind} {}", runtime.display()))]
        }
        // Threads that wait without pause would wait for each other: only one runs at a time.
        _ => vec![(RUNNER, valgrind), ("OMP_WAIT_POLICY", "passive".to_owned())],
    };
    Ok(Sanitizer {
        name: "memcheck",
        subject,
        variables,
        reports,
        build: build_for_memcheck,
        planted: "fault",
    })
}

fn build_for_memcheck(subject: &Subject, folder: &Path, flags: &[&str]) -> Result<PathBuf> {
    run(rustc(subject, folder).args(["--", "--cfg=omptrace_memory_is_watched"]).args(flags))?;
    Ok(folder.join("debug"))
}

/// Builds the subject below `folder`.
fn rustc(subject: &Subject, folder: &Path) -> std::process::Command {
    let mut command = cargo(["rustc", "--lib", "--target-dir"]);
    command
        .arg(folder)
        .args(["--package", subject.package])
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    command
}

impl Sanitizer {
    fn check(&self, folder: &Path) -> Result<()> {
        let planted = format!("--cfg=omptrace_planted=\"{}\"", self.planted);
        let mut printed = String::new();
        self.run(folder, &[&planted], &[self.subject.case_with_mistakes], |line| {
            printed.push_str(line);
            printed.push('\n');
        })?;
        let name = format!("{}, {}", self.name, self.subject.library);
        // A test that fails by the mistake, as it should, is not shown: it would be taken for one that should not.
        if self.reports()?.is_empty() {
            return Err(format!("{printed}{name}: the planted {} was not found", self.planted).into());
        }
        println!("{name}: the planted {} was found", self.planted);

        let passed = self.run(folder, &[], self.subject.cases, |line| println!("{line}"))?;
        for report in self.reports()? {
            println!("{report}");
        }
        match (passed, self.reports()?.len()) {
            (true, 0) => Ok(()),
            (_, reports) => Err(format!(
                "{name}: {reports} processes with reports, {}",
                if passed { "tests passed" } else { "tests failed" }
            )
            .into()),
        }
    }

    /// Whether the tests pass with the subject that is built with these flags. `look` gets the lines that they print.
    fn run(&self, folder: &Path, flags: &[&str], cases: &[&str], look: impl FnMut(&str)) -> Result<bool> {
        let subject = self.subject;
        let built = (self.build)(subject, folder, flags)?;
        let product = folder.join("product");
        for made in [&product, &self.reports] {
            if made.exists() {
                fs::remove_dir_all(made)?;
            }
            fs::create_dir(made)?;
        }
        fs::copy(built.join(subject.library), product.join(subject.library))?;
        for file in subject.beside {
            fs::copy(release().join(file), product.join(file))?;
        }
        let mut command = cargo(["test", "--workspace", "--test", subject.test]);
        command
            .arg("--")
            .args(cases)
            .env("OMPTRACE_TEST_BIN_DIR", &product)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        Ok(run_watched(&mut command, PATIENCE, look)? == End::Well)
    }

    /// The reports of it, process by process.
    fn reports(&self) -> Result<Vec<String>> {
        let mut reports = Vec::new();
        for entry in fs::read_dir(&self.reports)? {
            reports.push(String::from_utf8_lossy(&fs::read(entry?.path())?).into_owned());
        }
        reports.retain(|report| !report.is_empty());
        Ok(reports)
    }
}
