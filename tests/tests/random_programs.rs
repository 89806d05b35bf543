//! Random programs (`tests/src/generator.rs`): each does the same traced as bare, and its trace has what it counted itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, omptrace_program, runtime, tool_library, tools};
use omptrace_tests::generator::{CLANG, CLANG_ELSEWHERE, COUNTS, GCC, GCC_ON_LLVM, Target, program};
use omptrace_tests::trace::{accounts_add_up, dump, omptrace};
use omptrace_tests::windows;
use omptrace_timeline::model::split_place;
use serde_json::Value;
use tempfile::TempDir;

/// How many programs of each compiler are tried, unless `OMPTRACE_TEST_PROGRAMS` says otherwise.
const PROGRAMS: u64 = 12;
/// The runtime, unless `OMPTRACE_TEST_RUNTIME` names another one, where programs that fail untraced are reported and left out.
const RUNTIME: &str = "llvm-19";
/// Others lack functions that clang 22 calls: programs are compiled by clang 14 for these.
const HAS_ALL_OF_CLANG_22: &[&str] = &["llvm-19", "llvm-21", "intel-2026"];
/// Windows of each trace.
const WINDOWS: usize = 3;
/// Seconds that a program may take, which ends in milliseconds.
const PATIENCE: &str = "60";

/// Programs are built for aarch64, and recorded there by qemu and the product in the folder that this variable names.
const AARCH64: &str = "OMPTRACE_TEST_AARCH64";
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// The commands that compile and link a program.
fn compile(compiler: Compiler, source: &Path, binary: &Path) -> Vec<Command> {
    if std::env::var_os(AARCH64).is_none() {
        let mut command = Command::new(compiler.path());
        command.args(compiler.flags()).arg("-o").args([binary, source]);
        return vec![command];
    }
    let mut linker = Command::new("aarch64-linux-gnu-gcc");
    linker.args(["-g", "-O1", "-fopenmp", "-o"]).arg(binary);
    if compiler == Compiler::Gcc {
        linker.arg(source);
        return vec![linker];
    }
    let object = source.with_extension("o");
    let mut clang = Command::new(compiler.path());
    clang.args(["-g", "-O1", "-fopenmp", "--target=aarch64-linux-gnu", "-c"]);
    clang.arg(format!("--sysroot={SYSROOT}")).arg(format!("-I{SYSROOT}/include"));
    clang.arg("-I").arg(tools().join("headers/llvm-19")).arg("-o").args([&object, source]);
    let mut linker = Command::new("aarch64-linux-gnu-gcc");
    linker.arg("-o").args([binary, &object]).arg("-L").arg(runtime("aarch64-llvm-19")).arg("-lomp");
    vec![clang, linker]
}

/// How a program, and `omptrace record`, are run: the words before the program, the file to be run in the place of `binary`, the product,
/// and the folder of the runtime.
struct Machine {
    emulator: Vec<OsString>,
    binary: PathBuf,
    omptrace: PathBuf,
    tracer: PathBuf,
    libraries: PathBuf,
}

impl Machine {
    fn of(binary: &Path, on: &str, target: &Target) -> Machine {
        let Some(product) = std::env::var_os(AARCH64).map(PathBuf::from) else {
            return Machine {
                emulator: Vec::new(),
                binary: binary.to_owned(),
                omptrace: omptrace_program(),
                tracer: tool_library(),
                // libgomp comes with the compiler.
                libraries: if target.name == GCC.name { PathBuf::new() } else { runtime(on) },
            };
        };
        // The kernel cannot run what `record` starts.
        let script = binary.with_extension("sh");
        let text = format!("#!/bin/sh\nexec qemu-aarch64-static -L {SYSROOT} {} \"$@\"\n", binary.display());
        fs::write(&script, text).expect("the folder is ours");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("the file is ours");
        Machine {
            emulator: ["qemu-aarch64-static", "-L", SYSROOT].map(OsString::from).into(),
            binary: script,
            omptrace: product.join("omptrace"),
            tracer: product.join("libomptrace.so"),
            libraries: runtime("aarch64-llvm-19"),
        }
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect(name))
}

type Counted = BTreeMap<String, i64>;

/// The counts of the program itself.
fn own(output: &Output) -> Counted {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let mut counts: Counted =
        lines.map(|(name, count)| (name.to_owned(), count.parse().expect("a number"))).collect();
    counts.remove("sum");
    counts
}

/// The output of the program that is the same in each run: not how many of its tasks it cancelled in time.
fn printed(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| !line.starts_with("tasks_run "));
    lines.map(str::to_owned).collect()
}

/// The construct that an event counts for.
fn construct(event: &Value) -> Option<&'static str> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let flags = || i64::from_str_radix(text("flags").trim_start_matches("0x"), 16).unwrap_or(0);
    let begins = text("endpoint") == "begin";
    Some(match (text("event"), text("kind"), text("work_type")) {
        ("parallel_begin", ..) if flags() & 0x4000_0000 != 0 => "leagues",
        // LLVM's runtime forks one for each member of a league, which is not one of the program's.
        ("parallel_begin", ..) if text("codeptr_ra") == "0x0" => return None,
        ("parallel_begin", ..) => "regions",
        // An explicit task, not the one of a taskwait.
        ("task_create", ..) if flags() & 0x14 == 4 => "tasks",
        ("mutex_acquired", "critical", _) => "criticals",
        ("mutex_acquired", "ordered", _) => "ordered",
        ("mutex_acquired", "lock", _) => "locks",
        ("work", _, "single_executor" | "single_other") if begins => "singles",
        ("work", _, "sections") if begins => "sections",
        ("work", _, "taskloop") if begins => "taskloops",
        ("work", _, kind) if begins && kind.starts_with("loop") => "loops",
        ("sync_region", "taskwait", _) if begins => "taskwaits",
        ("sync_region", "taskgroup", _) if begins => "taskgroups",
        ("sync_region", "barrier_explicit", _) if begins => "barriers",
        _ => return None,
    })
}

fn none_of(names: impl Iterator<Item = &'static str>) -> Counted {
    names.map(|name| (name.to_owned(), 0)).collect()
}

/// The counts of the trace. Whether a task runs, events show only together.
fn recorded(events: &[Value]) -> Counted {
    let mut counts = none_of(COUNTS.iter().copied().filter(|name| *name != "tasks_run"));
    for name in events.iter().filter_map(construct) {
        *counts.get_mut(name).expect("one of all") += 1;
    }
    counts
}

/// The count that a construct of `stats` belongs to, by its name without the place.
const CONSTRUCTS: &[(&str, &str)] = &[
    ("!$omp parallel", "regions"),
    ("!$omp teams", "leagues"),
    ("!$omp critical", "criticals"),
    ("!$omp ordered", "ordered"),
    ("!$omp single", "singles"),
    ("!$omp sections", "sections"),
    ("!$omp taskloop", "taskloops"),
    ("!$omp for", "loops"),
    ("!$omp taskwait", "taskwaits"),
    ("!$omp taskgroup", "taskgroups"),
    ("!$omp barrier", "barriers"),
];

/// The counts of `stats`.
fn added_up(stats: &Value) -> Counted {
    let list = |name: &str| stats[name].as_array().cloned().unwrap_or_default();
    let number = |of: &Value, name: &str| of[name].as_i64().unwrap_or(-1);
    let others = ["tasks_run", "locks"];
    let mut counts = none_of(CONSTRUCTS.iter().map(|(_, name)| *name).chain(others));
    let mut add = |name: &str, count: i64| *counts.get_mut(name).expect("one of all") += count;
    for construct in list("constructs") {
        let own = split_place(construct["name"].as_str().unwrap_or_default()).0;
        if let Some((_, name)) = CONSTRUCTS.iter().find(|(construct, _)| *construct == own) {
            add(name, number(&construct, "count"));
        }
    }
    for thread in list("per_thread") {
        add("tasks_run", number(&thread, "tasks"));
    }
    let mut criticals = 0;
    for lock in list("locks") {
        match lock["kind"].as_str() {
            Some("critical") => criticals += number(&lock, "acquisitions"),
            _ => add("locks", number(&lock, "acquisitions")),
        }
    }
    // They are in two tables.
    if counts["criticals"] != criticals {
        counts.insert("criticals of locks".into(), criticals);
    }
    counts
}

/// How much of a program's trace began at a checkpoint.
///
/// # Errors
/// The program has a fault.
fn tried(
    seed: u64,
    compiler: Compiler,
    on: &str,
    target: &Target,
    folder: &Path,
) -> Result<windows::Tried, String> {
    let (source, binary) = (folder.join("program.c"), folder.join("program"));
    let trace = folder.join("program.omptrace");
    fs::write(&source, program(seed, target)).expect("the folder is ours");
    for mut command in compile(compiler, &source, &binary) {
        let compiled = command.output().expect("the compiler can be run");
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
    }
    let machine = Machine::of(&binary, on, target);
    let run = |mut command: Command| {
        command
            .env("LD_LIBRARY_PATH", &machine.libraries)
            .env("OMP_CANCELLATION", "true")
            .env("OMP_MAX_ACTIVE_LEVELS", "4")
            .env("OMP_DYNAMIC", "false")
            .output()
            .expect("timeout can be run")
    };
    let timeout = || {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", PATIENCE]);
        command
    };
    let mut command = timeout();
    command.arg(&machine.binary);
    let bare = run(command);
    if bare.status.code().is_none_or(|status| status > 100) {
        let fault = format!("bare: {bare:?}");
        // Targets are known for the usual runtime only.
        if on != RUNTIME {
            eprintln!("unusable: seed {seed}: {fault}");
            return Ok(windows::Tried::default());
        }
        return Err(fault);
    }
    let mut command = timeout();
    command.args(&machine.emulator).arg(&machine.omptrace).arg("record");
    if target.name == GCC_ON_LLVM.name {
        let library = machine.libraries.join("libomp.so.5");
        command.arg("--libomp").arg(library);
    }
    command.arg("--tool").arg(&machine.tracer).arg("-o").arg(&trace).arg("--");
    let traced = run({
        command.arg(&machine.binary);
        command
    });
    if (bare.status, printed(&bare)) != (traced.status, printed(&traced)) {
        return Err(format!("bare {bare:?}\ntraced {traced:?}"));
    }
    let own = own(&traced);
    let compare = |what: &str, mut found: Counted| {
        let mut own = own.clone();
        own.retain(|name, _| found.contains_key(name));
        for name in target.unreported {
            own.remove(*name);
            found.remove(*name);
        }
        match own == found {
            true => Ok(()),
            false => Err(format!("the program counted {own:?}\n{what} {found:?}")),
        }
    };
    compare("the trace has ", recorded(&dump(&trace)))?;
    let stats = omptrace([Path::new("stats"), Path::new("--json"), Path::new("--all"), &trace]);
    let stats: Value =
        serde_json::from_slice(&stats.stdout).map_err(|error| format!("{error}: {stats:?}"))?;
    compare("stats has     ", added_up(&stats))?;
    accounts_add_up(&stats)?;
    // Unknown is what is unobserved of each thread: the end of the process, behind its last event.
    let blame = stats["blame"].as_array().into_iter().flatten();
    let at_end = blame.filter(|row| row["construct"] == "end of tracing");
    let by_tracer: u64 = at_end.filter_map(|row| row["ns"].as_u64()).sum();
    let unobserved = stats["accounting"]["unobserved_ns"].as_u64().map(|ns| ns + by_tracer);
    let is_unobserved = |thread: &&Value| {
        let ns = thread["unknown_ns"].as_u64().zip(stats["threads"].as_u64());
        ns.map(|(of_one, threads)| of_one * threads) == unobserved
    };
    let mut threads = stats["per_thread"].as_array().into_iter().flatten();
    if let Some(thread) = threads.find(|thread| !is_unobserved(thread)) {
        return Err(format!("time is unknown: {thread}, {}", stats["accounting"]));
    }
    let sound = |path: &Path| {
        let output = omptrace([Path::new("check"), path]);
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("check: {output:?}")),
        }
    };
    sound(&trace)?;
    let tried = windows::agree(&trace, seed, WINDOWS)?;
    for (format, name) in
        [("chrome", "x.json"), ("perfetto", "x.pftrace"), ("text", "x.txt"), ("otf2", "x.otf2")]
    {
        let out = folder.join(name);
        let output = omptrace([
            Path::new("convert"),
            &trace,
            Path::new("--to"),
            Path::new(format),
            Path::new("-o"),
            &out,
        ]);
        if !output.status.success() {
            return Err(format!("{format}: {output:?}"));
        }
    }
    sound(&folder.join("x.otf2"))?;
    Ok(tried)
}

fn check(compiler: Compiler, target: &Target) {
    let on = std::env::var("OMPTRACE_TEST_RUNTIME").unwrap_or_else(|_| RUNTIME.to_owned());
    let target = match compiler {
        Compiler::Clang22 if on != RUNTIME => &CLANG_ELSEWHERE,
        _ => target,
    };
    let compiler = match compiler {
        Compiler::Clang22 if !HAS_ALL_OF_CLANG_22.contains(&&*on) => Compiler::Clang14,
        other => other,
    };
    let first = from_environment("OMPTRACE_TEST_SEED").unwrap_or(0);
    let programs = from_environment("OMPTRACE_TEST_PROGRAMS").unwrap_or(PROGRAMS);
    let (mut faults, mut windows, mut segments, mut analysed) = (String::new(), 0, 0, 0);
    for seed in first..first + programs {
        let folder = TempDir::new().expect("a temporary folder can be made");
        match tried(seed, compiler, &on, target, folder.path()) {
            Ok(tried) => {
                windows += tried.windows;
                segments += tried.segments;
                analysed += tried.analysed;
            }
            Err(fault) => {
                faults.push_str(&format!("seed {seed}, {}, on {on}: {fault}\n", target.name));
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    let are_many = on == RUNTIME && programs >= PROGRAMS;
    assert!(windows > 0 || !are_many, "no window began at a checkpoint");
    assert!(segments > 0 || !are_many, "no export had segments");
    assert!(analysed > 0 || !are_many, "no answers had segments");
    eprintln!(
        "{windows} windows, {segments} segments of exports and {analysed} of answers began at a checkpoint"
    );
}

#[test]
fn of_clang() {
    check(Compiler::Clang22, &CLANG);
}

#[test]
fn of_gcc() {
    check(Compiler::Gcc, &GCC);
}

#[test]
fn of_gcc_on_the_runtime_of_llvm() {
    check(Compiler::Gcc, &GCC_ON_LLVM);
}
