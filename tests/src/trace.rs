//! Programs run under the real tracer, and their traces as `omptrace dump --json` shows them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::env::{Compiler, compile, omptrace_program, tool_library};

/// How often each event came, named as the counting tool names them: `work/begin`, `task_create`.
pub type Counts = BTreeMap<String, u64>;

/// A folder in which traces appear.
#[derive(Debug)]
pub struct Traces {
    folder: TempDir,
}

impl Traces {
    /// A new folder, which goes with the value.
    pub fn folder() -> Traces {
        forget_dead_runtimes();
        Traces { folder: TempDir::new().expect("a temporary folder can be made") }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the OpenMP runtime of `command` load the tracer, and the traces appear in this folder.
    pub fn trace<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("OMP_TOOL_LIBRARIES", tool_library())
            .env("OMPTRACE_OUTPUT", self.path().join("%e.%p.omptrace"))
    }

    /// Runs `command` under the tracer; it must end well and the tracer must have nothing to say.
    pub fn record(&self, command: &mut Command) -> String {
        let output = self.trace(command).output().expect("the program can be run");
        assert!(output.status.success(), "{command:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The traces, in the order of their names.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.all_files();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "omptrace"));
        files
    }

    /// All files of the folder: spools too, where a process did not come to an orderly end.
    pub fn all_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).expect("the folder is there");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("can be read").path()).collect();
        files.sort();
        files
    }

    /// The one trace that there is, and no spool beside it.
    pub fn only(&self) -> PathBuf {
        let files = self.all_files();
        assert_eq!(files.len(), 1, "one trace and nothing else: {files:?}");
        files.into_iter().next().expect("there is one")
    }
}

/// Runs `omptrace` with `arguments`.
pub fn omptrace<I, A>(arguments: I) -> Output
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    Command::new(omptrace_program()).args(arguments).output().expect("omptrace can be run")
}

/// The events of `trace` as Chrome JSON.
pub fn chrome_events(trace: &Path) -> Vec<Value> {
    let output = omptrace(
        ["convert", "--to", "chrome", "-o", "-"].map(OsStr::new).into_iter().chain([trace.as_os_str()]),
    );
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["traceEvents"].as_array().expect("events").clone()
}

/// Converts `trace` to `out`; `options` are those of `omptrace convert`.
pub fn convert(trace: &Path, format: &str, out: &Path, options: &[&str]) {
    let words = [Path::new("convert"), trace, Path::new("-o"), out];
    let to = ["--to", format].map(Path::new);
    let options = options.iter().map(Path::new);
    let output = omptrace(words.into_iter().chain(to).chain(options));
    assert!(output.status.success(), "{output:?}");
}

/// A trace of a program, and what is made of it.
#[derive(Debug)]
pub struct Traced {
    traces: Traces,
    trace: PathBuf,
}

impl Traced {
    /// Runs an example under the tracer.
    pub fn example(name: &str, arguments: &[&str]) -> Traced {
        Traced::program(&format!("examples/{name}.c"), arguments)
    }

    /// Runs any program of the workspace under the tracer, on two threads.
    pub fn program(source: &str, arguments: &[&str]) -> Traced {
        Traced::built(source, &[], arguments)
    }

    /// Like [`Traced::program`], compiled with further flags.
    pub fn built(source: &str, flags: &[&str], arguments: &[&str]) -> Traced {
        let program = compile(source, Compiler::Clang22, flags);
        let traces = Traces::folder();
        traces.record(
            Command::new(program).args(arguments).env("OMP_NUM_THREADS", "2").env("OMP_CANCELLATION", "true"),
        );
        let trace = traces.only();
        Traced { traces, trace }
    }

    /// The trace.
    pub fn trace(&self) -> &Path {
        &self.trace
    }

    /// A path in the trace's folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.traces.path().join(file)
    }

    /// Converts the trace to `file`; `options` are those of `omptrace convert`.
    pub fn convert(&self, format: &str, file: &str, options: &[&str]) -> PathBuf {
        let path = self.path(file);
        convert(&self.trace, format, &path, options);
        path
    }
}

/// The output of `omptrace dump --json` for a trace, a line per event; it must not report damage.
#[track_caller]
pub fn dump(trace: &Path) -> Vec<Value> {
    let (events, warnings) = dump_with_warnings(trace);
    assert_eq!(warnings, "", "{}", trace.display());
    events
}

/// Like [`dump`], and what it said was wrong with the trace.
#[track_caller]
pub fn dump_with_warnings(trace: &Path) -> (Vec<Value>, String) {
    let output = omptrace([Path::new("dump"), trace, Path::new("--json"), Path::new("--all")]);
    assert!(output.status.success(), "{output:?}");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let events = lines
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).expect("a JSON object per line");
            let schema = event.as_object_mut().and_then(|event| event.remove("schema"));
            assert_eq!(schema, Some(2.into()), "{line}");
            event
        })
        .collect();
    (events, warnings)
}

/// The output of `omptrace info --json` for a trace.
pub fn info(trace: &Path) -> Value {
    let output = omptrace([Path::new("info"), trace, Path::new("--json"), Path::new("--all")]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Events by name and endpoint; the tracer's own left out.
pub fn counts(events: &[Value]) -> Counts {
    let mut counts = Counts::new();
    for event in events {
        let name = event["event"].as_str().expect("each event has a name");
        if name.starts_with("omptrace_") {
            continue;
        }
        let key = match event["endpoint"].as_str() {
            Some(endpoint) => format!("{name}/{endpoint}"),
            None => name.to_owned(),
        };
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// How many of `events` are called `name`.
pub fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["event"] == name).count()
}

/// How many regions LLVM's runtime forked for what members of leagues execute: they are none of the program's, and not shown.
pub fn regions_of_leagues(events: &[Value]) -> u64 {
    let is_one = |event: &&Value| {
        event["event"] == "parallel_begin"
            && event["codeptr_ra"] == "0x0"
            && event["requested_parallelism"] == 1
    };
    events.iter().filter(is_one).count() as u64
}

/// Removes what LLVM's runtime leaves of processes that were killed. A later process of the same id takes it for a
/// second runtime within itself and aborts. Where the process died early, it reads what is not there (SIGBUS).
fn forget_dead_runtimes() {
    let left = ["/dev/shm", "/tmp"].iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for entry in left {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix("__KMP_REGISTERED_LIB_"))
            .and_then(|rest| rest.split('_').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Somebody else's stays, and collides with nobody else's.
            let _removed = fs::remove_file(entry.path());
        }
    }
}

/// Whether what each thread does adds up to its time, to the nanosecond, and so do the answers; `stats` is what `stats --json` prints.
///
/// # Errors
/// The first thread whose times do not add up.
pub fn accounts_add_up(stats: &Value) -> Result<(), String> {
    const PARALLEL: [&str; 5] = ["working_ns", "barriers_ns", "taskwaits_ns", "locks_ns", "wake_up_ns"];
    const ALL: [&str; 4] = ["parallel_ns", "serial_ns", "idle_ns", "unknown_ns"];
    for thread in stats["per_thread"].as_array().into_iter().flatten() {
        let is_sum = |parts: &[&str], whole: &str| {
            let sum: Option<u64> = parts.iter().map(|part| thread[part].as_u64()).sum();
            sum.is_some() && sum == thread[whole].as_u64()
        };
        if !is_sum(&PARALLEL, "parallel_ns") || !is_sum(&ALL, "duration_ns") {
            return Err(format!("times do not add up: {thread}"));
        }
    }
    answers_add_up(stats)
}

/// Whether each nanosecond of the threads has one cause, and the replay of nothing changed ends when the program did.
fn answers_add_up(stats: &Value) -> Result<(), String> {
    let accounting = &stats["accounting"];
    let causes = accounting.as_object().into_iter().flatten();
    let causes = causes.filter(|(name, _)| *name != "total_ns");
    let sum: u64 = causes.filter_map(|(_, ns)| ns.as_u64()).sum();
    let threads = stats["threads"].as_u64().unwrap_or(0);
    let whole = threads * stats["duration_ns"].as_u64().unwrap_or(0);
    if accounting["total_ns"] != sum || sum != whole {
        return Err(format!("{whole} ns of threads are not {accounting}"));
    }
    match stats["replay_error_ns"].as_i64() {
        None | Some(0) => Ok(()),
        Some(late) => Err(format!("the replay of nothing changed ends {late} ns late")),
    }
}

/// The first lines that only one of both has.
pub fn difference(expected: &[String], found: &[String]) -> String {
    const LINES: usize = 12;
    let only = |of: &[String], other: &[String], sign: &str| {
        let missing = of.iter().filter(|line| !other.contains(line));
        let lines: Vec<String> = missing.take(LINES).map(|line| format!("{sign} {line}")).collect();
        lines.join("\n")
    };
    format!("{}\n{}", only(expected, found, "-"), only(found, expected, "+"))
}
