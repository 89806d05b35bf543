//! Builds for aarch64, and records, checks and analyses programs there, by qemu's user mode.
//!
//! What a runtime reports of a program does not depend on the processor: the events of each name are counted, and must be as many as
//! here. Time that is lost in sleeps is as long. Random programs count their constructs themselves. Both builds of `omptrace` print the
//! same bytes of the same trace.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::checks::sampled;
use crate::emulated::{self, TARGET, on_aarch64};
use crate::omptrace::{omptrace, release};
use crate::process::{cargo, command, output, root, run, succeeds, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::tools;

/// Counts its constructs, one group per argument.
const PROGRAM: &str = "tests/programs/closed_forms.c";

/// The groups of [`PROGRAM`] whose events are as many in each run. Another has threads of nested regions, whose last events come
/// when the process may be over; in that of tasks, the runtime decides which thread starts which.
const GROUPS: [&str; 6] = ["0", "1", "3", "4", "5", "7"];

/// Loses time by each cause, in sleeps, which are as long on every processor.
const SLEEPS: &str = "tests/programs/measures_itself.c";
/// Its threads, and the unit of its sleeps in milliseconds.
const SLEEPS_ARGUMENTS: [&str; 2] = ["4", "60"];
/// By how many hundredths of all threads' time what a cause takes may differ.
const TOLERANCE: f64 = 4.0;
/// By how many hundredths of the duration work on the critical path may differ: through which thread it leads depends on who gets a lock
/// first.
const TOLERANCE_OF_PATH: f64 = 15.0;
/// A thread may lose its processor: one of a few runs must be right.
const TRIES: usize = 4;

/// Random programs of each compiler, and traces of the model that both builds of `omptrace` must answer alike; `cargo xtask soak` tries
/// more of both.
const RANDOM_PROGRAMS: u32 = 10;
const MODEL_TRACES: u32 = 50;

/// Other 64-bit processors that the tracer compiles for.
const OTHERS: [&str; 2] = ["riscv64gc-unknown-linux-gnu", "powerpc64le-unknown-linux-gnu"];

/// Events whose number depends on which thread comes first. A module is named when its first address comes, and which library a
/// worker begins in is seen only where it comes early enough.
const BY_CHANCE: [&str; 3] = ["dispatch", "omptrace_module", "task_schedule"];

/// A runtime, with a compiler whose programs run on it.
struct Runtime {
    name: &'static str,
    /// The commands that make a program: here, and for aarch64.
    here: Command,
    there: Vec<Command>,
    /// The libraries that are preloaded beside the tracer.
    preloaded: &'static [&'static str],
    /// The folder of its library for aarch64, if that is not the cross compiler's.
    library: Option<PathBuf>,
}

/// Runs all of it.
///
/// # Errors
/// It does not compile, or something differs.
pub(crate) fn check(install: bool) -> Result<()> {
    setup::ensure(Purpose::Tests, install)?;
    let built = build()?;
    let folder = target().join("aarch64");
    fs::create_dir_all(&folder)?;
    let mut compared = 0;
    for runtime in runtimes(PROGRAM, &folder) {
        let runtime = runtime.made()?;
        for group in GROUPS {
            compare(&runtime, group, &built, &folder)
                .map_err(|error| format!("{}, group {group}: {error}", runtime.name))?;
            compared += 1;
        }
    }
    println!("{compared} runs on aarch64 have the same events and results as on this machine");
    for runtime in runtimes(SLEEPS, &folder) {
        let runtime = runtime.made()?;
        let (of_causes, of_path) = compare_accounting(&runtime, &built, &folder)
            .map_err(|error| format!("{SLEEPS}, {}: {error}", runtime.name))?;
        println!(
            "on aarch64, {}: accounting {of_causes:.1} % apart at most, critical path {of_path:.1} %",
            runtime.name
        );
    }
    random_programs(&built, RANDOM_PROGRAMS, 0)?;
    compare_model(&built, MODEL_TRACES)?;
    sampled::check(&built, &folder)?;
    OTHERS.iter().try_for_each(|target| compile_for(target, &folder))
}

/// Builds for aarch64; the folder of what was built.
pub(crate) fn build() -> Result<PathBuf> {
    let built = target_folder();
    run(cargo(["build", "--target", TARGET, "--target-dir"])
        .arg(&built)
        .args(["omptrace-tracer", "omptrace-cli", "omptrace-libgomp-adapter", "omptrace-waits"].map(package))
        .args(["omptrace-mpi", "omptrace-mpi4", "omptrace-mpi-large-count"].map(package))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"))?;
    Ok(built.join(TARGET).join("debug"))
}

/// Where cargo puts what is for other processors.
fn target_folder() -> PathBuf {
    target().join("cross")
}

/// Random programs of each compiler, whose traces have what they counted.
pub(crate) fn random_programs(built: &Path, programs: u32, first: u64) -> Result<()> {
    run(cargo(["test", "--workspace", "--test", "random_programs", "--", "--exact", "of_clang", "of_gcc"])
        .env("OMPTRACE_TEST_BIN_DIR", release())
        .env("OMPTRACE_TEST_AARCH64", built)
        .env("OMPTRACE_TEST_PROGRAMS", programs.to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))
}

fn package(name: &str) -> String {
    format!("--package={name}")
}

fn runtimes(source: &str, folder: &Path) -> [Runtime; 2] {
    let program = root().join(source);
    let mut gcc_here = command("gcc", ["-O1", "-g", "-fopenmp", "-o"]);
    gcc_here.arg(folder.join("gcc-here")).arg(&program);
    let headers = tools().join("headers/llvm-19");
    let mut clang_here = command("clang-22", ["-O1", "-g", "-fopenmp", "-isystem"]);
    clang_here.arg(&headers).arg("-o").arg(folder.join("llvm-here")).arg(&program);
    let of_here = tools().join("runtimes/llvm-19");
    clang_here.arg("-L").arg(&of_here).arg(format!("-Wl,-rpath,{}", of_here.display()));
    [
        Runtime {
            name: "gcc",
            here: gcc_here,
            there: emulated::gcc(source, &["-O1"], &folder.join("gcc-there")),
            preloaded: &["libomptgomp.so"],
            library: None,
        },
        Runtime {
            name: "llvm",
            here: clang_here,
            there: emulated::clang(source, &["-O1"], &folder.join("llvm-there")),
            preloaded: &[],
            library: Some(emulated::llvm()),
        },
    ]
}

impl Runtime {
    /// With its programs made.
    fn made(mut self) -> Result<Runtime> {
        run(&mut self.here)?;
        self.there.iter_mut().try_for_each(run)?;
        Ok(self)
    }
}

/// A run here or there: its trace, and what the program printed.
struct Recorded {
    trace: PathBuf,
    printed: Vec<u8>,
}

/// Records the program here and there.
fn record(runtime: &Runtime, arguments: &[&str], built: &Path, folder: &Path) -> Result<[Recorded; 2]> {
    let trace =
        |place: &str| folder.join(format!("{}-{place}-{}.omptrace", runtime.name, arguments.join("-")));
    let (here, there) = (trace("here"), trace("there"));
    for old in [&here, &there] {
        if old.exists() {
            fs::remove_file(old)?;
        }
    }
    let variables = |libraries: &Path, trace: &Path| {
        let preloaded: Vec<String> =
            runtime.preloaded.iter().map(|name| libraries.join(name).display().to_string()).collect();
        let mut variables = vec![
            ("OMP_TOOL_LIBRARIES", libraries.join("libomptrace.so").display().to_string()),
            ("OMPTRACE_OUTPUT", trace.display().to_string()),
        ];
        if !preloaded.is_empty() {
            variables.push(("LD_PRELOAD", preloaded.join(":")));
        }
        variables
    };
    let mut program = command(folder.join(format!("{}-here", runtime.name)), arguments);
    let printed_here = output(program.envs(variables(&release(), &here)))?;
    let mut of_there = variables(built, &there);
    if let Some(library) = &runtime.library {
        of_there.push(("LD_LIBRARY_PATH", library.display().to_string()));
    }
    let program = folder.join(format!("{}-there", runtime.name));
    let printed_there = output(on_aarch64(&program, &of_there).args(arguments))?;
    run(omptrace_there(built).args(["recover", "--no-summary"]).arg(&there))?;
    run(omptrace(&["recover", "--no-summary"]).arg(&here))?;
    Ok([Recorded { trace: here, printed: printed_here }, Recorded { trace: there, printed: printed_there }])
}

/// `omptrace` for aarch64.
fn omptrace_there(built: &Path) -> Command {
    on_aarch64(&built.join("omptrace"), &[])
}

/// Records a group here and there, and compares the two traces.
fn compare(runtime: &Runtime, group: &str, built: &Path, folder: &Path) -> Result<()> {
    let [here, there] = record(runtime, &[group], built, folder)?;
    if here.printed != there.printed {
        return Err("the program does something else".into());
    }
    run(omptrace_there(built).arg("check").arg(&there.trace))?;
    let (events_here, events_there) = (events(&here.trace)?, events(&there.trace)?);
    if events_here != events_there || !events_here.contains("parallel_begin") {
        return Err(format!("events here\n{events_here}\nevents on aarch64\n{events_there}").into());
    }
    [here, there].iter().try_for_each(|recorded| same_answer(built, &recorded.trace))
}

/// Both builds of `omptrace` print the same of a trace.
fn same_answer(built: &Path, trace: &Path) -> Result<()> {
    let words = ["stats", "--json", "--all", "--from", "events"];
    let (by_us, by_it) =
        (output(omptrace(&words).arg(trace))?, output(omptrace_there(built).args(words).arg(trace))?);
    match by_us == by_it && !by_us.is_empty() {
        true => Ok(()),
        false => Err(format!("the output of stats for {} differs on aarch64", trace.display()).into()),
    }
}

/// By how many hundredths of all threads' time the accounting differs at most, and by how many of the duration the critical path.
fn compare_accounting(runtime: &Runtime, built: &Path, folder: &Path) -> Result<(f64, f64)> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let [here, there] = record(runtime, &SLEEPS_ARGUMENTS, built, folder)?;
        let ((causes_here, path_here), (causes_there, path_there)) =
            (parts(&here.trace)?, parts(&there.trace)?);
        let differences = causes_here.iter().map(|(name, part)| (part - causes_there[name]).abs());
        let differs = (differences.fold(0.0, f64::max), (path_here - path_there).abs());
        if differs.0 <= TOLERANCE && differs.1 <= TOLERANCE_OF_PATH {
            return Ok(differs);
        }
        last =
            format!("here {causes_here:?}, path {path_here}\non aarch64 {causes_there:?}, path {path_there}");
    }
    Err(last.into())
}

/// What each cause takes of all threads' time between the program's first region and its last, in hundredths, and what work takes of
/// the critical path there.
fn parts(trace: &Path) -> Result<(BTreeMap<String, f64>, f64)> {
    let stats = output(omptrace(&["stats", "--json", "--from", "events"]).arg(trace))?;
    let stats: Value = serde_json::from_slice(&stats)?;
    let number = |value: &Value| value.as_f64().ok_or("stats lacks a number");
    let process = &stats["processes"][0];
    let around = number(&process["serial_before_ns"])? + number(&process["serial_after_ns"])?;
    let (threads, duration) = (number(&stats["threads"])?, number(&stats["duration_ns"])? - around);
    let accounting = stats["accounting"].as_object().ok_or("stats has no accounting")?;
    let mut parts = BTreeMap::new();
    for (name, ns) in accounting.iter().filter(|(name, _)| *name != "total_ns") {
        let of_others = match &**name {
            "useful_ns" => around,
            "serial_ns" => around * (threads - 1.0),
            _ => 0.0,
        };
        parts.insert(name.clone(), 100.0 * (number(ns)? - of_others) / (threads * duration));
    }
    let useful = number(&stats["critical_path"]["useful_ns"])? - around;
    Ok((parts, 100.0 * useful / duration))
}

/// Both builds of `omptrace` print the same of traces of the model.
pub(crate) fn compare_model(built: &Path, traces: u32) -> Result<()> {
    run(&mut cargo(["build", "--workspace", "--example", "case"]))?;
    let trace = target().join("aarch64/model.omptrace");
    let mut compared = 0;
    for seed in 1..=traces {
        if trace.exists() {
            fs::remove_file(&trace)?;
        }
        output(command(target().join("debug/examples/case"), [seed.to_string()]).arg(&trace))?;
        // Some programs wait for themselves, and have no trace.
        if trace.exists() {
            same_answer(built, &trace).map_err(|error| format!("model, seed {seed}: {error}"))?;
            compared += 1;
        }
    }
    println!("{compared} traces of the model have the same answers on aarch64");
    Ok(())
}

/// Compiles the tracer for another processor, where the toolchain has a standard library for it or can get one; else says so.
fn compile_for(target: &str, folder: &Path) -> Result<()> {
    /// In the place of a C compiler and of `ar`, whose last file it makes: zstd's C code is not looked at.
    const NO_COMPILER: &str = "#!/bin/sh\nfor word; do [ \"$before\" = -o ] && : > \"$word\"; case $word in *.a) : > \"$word\" ;; esac; before=$word; done\n";

    let has_library = || {
        let printed = output(&mut command("rustc", ["--print=target-libdir", "--target", target]));
        printed.is_ok_and(|folder| Path::new(String::from_utf8_lossy(&folder).trim()).exists())
    };
    if !has_library() && !succeeds(&mut command("rustup", ["target", "add", target])) {
        println!(
            "skipped: the toolchain has no standard library for {target}, which the tracer should compile for"
        );
        return Ok(());
    }
    let no_compiler = folder.join("no-compiler");
    fs::write(&no_compiler, NO_COMPILER)?;
    fs::set_permissions(&no_compiler, Permissions::from_mode(0o755))?;
    let variable = |tool: &str| format!("{tool}_{}", target.replace('-', "_"));
    run(cargo(["check", "--package=omptrace-tracer", "--target", target, "--target-dir"])
        .arg(target_folder())
        .env(variable("CC"), &no_compiler)
        .env(variable("AR"), &no_compiler))
}

/// How many events of each name a trace has, but for those that are by chance.
fn events(trace: &Path) -> Result<String> {
    let info = output(omptrace(&["info", "--json"]).arg(trace))?;
    let mut info: Value = serde_json::from_slice(&info)?;
    let counts = info["events_by_name"].as_object_mut().ok_or("info names no events")?;
    counts.retain(|name, _| !BY_CHANCE.contains(&name.as_str()));
    Ok(Value::Object(std::mem::take(counts)).to_string())
}
