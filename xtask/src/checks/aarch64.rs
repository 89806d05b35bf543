//! Builds for aarch64, and records, checks and analyses programs there, by qemu's user mode.
//!
//! What a runtime reports of a program does not depend on the processor: the events of each name are counted, and must be as many as
//! here. Both builds of `omptrace` print the same bytes of the same trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::checks::sampled;
use crate::emulated::{self, TARGET, on_aarch64};
use crate::omptrace::{omptrace, release};
use crate::process::{cargo, command, output, root, run, target};
use crate::result::Result;
use crate::setup;
use crate::setup::requirements::Purpose;
use crate::setup::tools::tools;

/// Counts its constructs, one group per argument.
const PROGRAM: &str = "tests/programs/closed_forms.c";

/// The groups of [`PROGRAM`] whose events are as many in each run. Another has threads of nested regions, whose last events come
/// when the process may be over; in that of tasks, the runtime decides which thread starts which.
const GROUPS: [&str; 6] = ["0", "1", "3", "4", "5", "7"];

/// Events whose number depends on which thread comes first. A module is named when its first address comes, and which library a
/// worker begins in is seen only where it comes early enough.
const BY_CHANCE: [&str; 3] = ["dispatch", "omptrace_module", "task_schedule"];

/// A runtime, with a compiler whose programs run on it.
struct Runtime {
    name: &'static str,
    /// The commands that make programs of [`PROGRAM`]: here, and for aarch64.
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
    let built = target().join("cross");
    run(cargo(["build", "--target", TARGET, "--target-dir"])
        .arg(&built)
        .args(["omptrace-tracer", "omptrace-cli", "omptrace-libgomp-adapter", "omptrace-waits"].map(package))
        .args(["omptrace-mpi", "omptrace-mpi4", "omptrace-mpi-large-count"].map(package))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"))?;
    let built = built.join(TARGET).join("debug");
    let folder = target().join("aarch64");
    fs::create_dir_all(&folder)?;
    let mut compared = 0;
    for mut runtime in runtimes(&folder) {
        run(&mut runtime.here)?;
        runtime.there.iter_mut().try_for_each(run)?;
        for group in GROUPS {
            compare(&runtime, group, &built, &folder)
                .map_err(|error| format!("{}, group {group}: {error}", runtime.name))?;
            compared += 1;
        }
    }
    println!("{compared} runs on aarch64 have the same events and results as on this machine");
    sampled::check(&built, &folder)
}

fn package(name: &str) -> String {
    format!("--package={name}")
}

fn runtimes(folder: &Path) -> [Runtime; 2] {
    let program = root().join(PROGRAM);
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
            there: emulated::gcc(PROGRAM, &["-O1"], &folder.join("gcc-there")),
            preloaded: &["libomptgomp.so"],
            library: None,
        },
        Runtime {
            name: "llvm",
            here: clang_here,
            there: emulated::clang(PROGRAM, &["-O1"], &folder.join("llvm-there")),
            preloaded: &[],
            library: Some(emulated::llvm()),
        },
    ]
}

/// Records a group here and there, and compares the two traces.
fn compare(runtime: &Runtime, group: &str, built: &Path, folder: &Path) -> Result<()> {
    let trace = |place: &str| folder.join(format!("{}-{place}-{group}.omptrace", runtime.name));
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
    let mut program = command(folder.join(format!("{}-here", runtime.name)), [group]);
    let counted_here = output(program.envs(variables(&release(), &here)))?;
    let mut of_there = variables(built, &there);
    if let Some(library) = &runtime.library {
        of_there.push(("LD_LIBRARY_PATH", library.display().to_string()));
    }
    let program = folder.join(format!("{}-there", runtime.name));
    let counted_there = output(on_aarch64(&program, &of_there).arg(group))?;
    if counted_here != counted_there {
        return Err("the program does something else".into());
    }

    let omptrace_there = || on_aarch64(&built.join("omptrace"), &[]);
    run(omptrace_there().args(["recover", "--no-summary"]).arg(&there))?;
    run(omptrace(&["recover", "--no-summary"]).arg(&here))?;
    run(omptrace_there().arg("check").arg(&there))?;
    let (events_here, events_there) = (events(&here)?, events(&there)?);
    if events_here != events_there || !events_here.contains("parallel_begin") {
        return Err(format!("events here\n{events_here}\nevents on aarch64\n{events_there}").into());
    }
    let words = ["stats", "--json", "--all", "--from", "events"];
    for trace in [&here, &there] {
        let (by_us, by_it) =
            (output(omptrace(&words).arg(trace))?, output(omptrace_there().args(words).arg(trace))?);
        if by_us != by_it || by_us.is_empty() {
            return Err(format!("the output of stats for {} differs on aarch64", trace.display()).into());
        }
    }
    Ok(())
}

/// How many events of each name a trace has, but for those that are by chance.
fn events(trace: &Path) -> Result<String> {
    let info = output(omptrace(&["info", "--json"]).arg(trace))?;
    let mut info: Value = serde_json::from_slice(&info)?;
    let counts = info["events_by_name"].as_object_mut().ok_or("info names no events")?;
    counts.retain(|name, _| !BY_CHANCE.contains(&name.as_str()));
    Ok(Value::Object(std::mem::take(counts)).to_string())
}
