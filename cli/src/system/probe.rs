//! Finds out which callbacks a runtime grants to the tracer, by starting both in a separate process.

use std::env;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use omptrace_trace_format::Reader;
use omptrace_trace_format::metadata::Counting;
use serde::Serialize;
use tempfile::TempDir;

use crate::output::failure::{Failure, Outcome, Result};
use crate::system::folders::files_in;
use crate::system::openmp_runtime::{self, ToolsInterface};
use crate::system::recording_clock::RecordingClock;

/// `omptrace doctor-probe`.
#[derive(Args, Debug)]
pub(crate) struct DoctorProbe {
    /// The runtime's library
    runtime: PathBuf,
}

/// The callbacks that a runtime grants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Grants {
    /// The generation of its tools interface.
    pub(crate) dialect: String,
    /// The version that it reports; many releases report the same.
    pub(crate) version: String,
    /// Callbacks that the runtime promises to deliver.
    pub(crate) granted: Vec<String>,
    /// Callbacks that the runtime never delivers, or does not know.
    pub(crate) refused: Vec<String>,
    /// The available counters of threads.
    #[serde(skip)]
    pub(crate) counting: Counting,
    /// The recording clock and the cost of an event, from the metadata of the probe's trace.
    #[serde(skip)]
    pub(crate) clock: Option<RecordingClock>,
}

/// The counters that are tried: those that the kernel may refuse, as many as processors can count at once.
const COUNTERS: &str = "task-clock,cycles,instructions,cache-misses,branch-misses";

/// Maximum time for the start of a runtime.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the runtime with the tracer in another process, and reads what the tracer recorded. The error is a
/// description of what went wrong.
pub(crate) fn ask(library: &Path, tool: &Path) -> std::result::Result<Grants, String> {
    let folder = TempDir::with_prefix("omptrace-").map_err(|error| error.to_string())?;
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    match openmp_runtime::tools_interface(library) {
        Some(ToolsInterface::Preloaded) => command.env("LD_PRELOAD", tool),
        _ => command.env_remove("LD_PRELOAD"),
    };
    let mut child = command
        .arg("doctor-probe")
        .arg(library)
        .env("OMP_TOOL", "enabled")
        .env("OMP_TOOL_LIBRARIES", tool)
        .env("OMP_NUM_THREADS", "1")
        .env("OMPTRACE_OUTPUT", folder.path().join("probe.omptrace"))
        .env("OMPTRACE_EVENTS", "all")
        .env("OMPTRACE_COUNTERS", COUNTERS)
        .env_remove("OMPTRACE_DISABLED")
        .env_remove("OMPTRACE_REGISTRY")
        .env_remove("OMPTRACE_SPOOL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;

    let began = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if began.elapsed() > PATIENCE {
            // We started the process and have not waited for it, so its id has not been reused.
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        return Err(format!("the test run of the OpenMP runtime ended with {}: {words}", ended.status));
    }
    read(folder.path()).ok_or_else(|| "the OpenMP runtime started, but did not load a tool".to_owned())
}

/// The runtime's grants, from the trace in the directory.
fn read(folder: &Path) -> Option<Grants> {
    let traces = files_in(folder, |name| name.ends_with(".omptrace"));
    let trace = Reader::open(traces.first()?).ok()?;
    let metadata = trace.metadata();
    let runtime = metadata.runtime.as_ref()?;
    let mut callbacks: Vec<_> = metadata.callbacks.iter().collect();
    callbacks.sort_by_key(|(_, registration)| registration.number);
    // OpenMP 5.2, section 19.4.4: `ompt_set_always`, `_sometimes`, `_sometimes_paired`, `_impossible`, `_never`,
    // `_error`; for the Collector API, `OMP_ERRCODE_OK`.
    let (granted, refused) = callbacks.into_iter().partition::<Vec<_>, _>(|(_, registration)| {
        let promises = |word: &&str| registration.meaning.contains(word);
        ["always", "sometimes", "OK"].iter().any(promises)
    });
    let names = |callbacks: Vec<(&String, _)>| callbacks.into_iter().map(|(name, _)| name.clone()).collect();
    Some(Grants {
        dialect: runtime.dialect.clone(),
        version: runtime.version.clone(),
        granted: names(granted),
        refused: names(refused),
        counting: metadata.counting.clone().unwrap_or_default(),
        clock: RecordingClock::of(metadata),
    })
}

/// Runs in the other process: loads the runtime and makes it start.
///
/// # Errors
/// The library cannot be loaded, or is not an OpenMP runtime.
pub(crate) fn start(arguments: &DoctorProbe) -> Result<Outcome> {
    let runtime = &arguments.runtime;
    let failed = |error: libloading::Error| Failure::because(runtime.display(), &error);
    // SAFETY: loading runs the library's initializers. It is an OpenMP runtime by its name, meant to be loaded by any
    // program, and this process exists only to try it.
    let library = unsafe { Library::open(Some(runtime), RTLD_NOW | RTLD_GLOBAL) }.map_err(failed)?;
    // SAFETY: OpenMP 5.2, section 18.2.4: the function takes nothing and returns an `int`.
    let omp_get_max_threads: Symbol<unsafe extern "C" fn() -> c_int> =
        unsafe { library.get(b"omp_get_max_threads\0") }.map_err(failed)?;
    // SAFETY: it may be called at any time outside of parallel regions; as the first call it starts the runtime.
    unsafe { omp_get_max_threads() };
    // The runtime stays loaded, because it ends, and lets the tool end, when the process exits.
    std::mem::forget(library);
    Ok(Outcome::Success)
}
