//! Metadata about process, machine and runtime, collected once, not on the hot path.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;

use omptrace_trace_format::event;
use omptrace_trace_format::liveness;
use omptrace_trace_format::metadata::{Machine, Metadata, Process, Schema};

use crate::launched_rank;
use crate::os::log::warning;
use crate::os::system;
use crate::os::time::clock;
use crate::session::Session;

/// Prefixes of the environment variables that are stored in the trace; no others are.
const ENVIRONMENT: &[&str] = &["OMP_", "KMP_", "GOMP_", "LIBOMP", "OMPTRACE_"];

/// The program's name.
pub(crate) fn program_name() -> String {
    let path = fs::read_link("/proc/self/exe").unwrap_or_default();
    path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

/// The first metadata block: the traced process, its machine, and the settings.
pub(crate) fn process(session: &Session, forked: bool) -> Metadata {
    let started = started();
    Metadata {
        tracer: Some(concat!("omptrace ", env!("CARGO_PKG_VERSION")).into()),
        start: Some(clock::local_time().to_rfc3339()),
        process: Some(Process {
            pid: session.pid,
            parent_pid: std::os::unix::process::parent_id(),
            started: started.unwrap_or(0),
            started_raw_ns: started.and_then(started_raw_ns),
            pid_namespace: liveness::pid_namespace(),
            executable: fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned(),
            command_line: command_line(),
            directory: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            rank: launched_rank::rank(),
            forked,
            affinity: line_of("/proc/self/status", "Cpus_allowed_list:").unwrap_or_default(),
        }),
        machine: Some(Machine {
            host: system::host(),
            cpu: line_of("/proc/cpuinfo", "model name").unwrap_or_default(),
            cpus: system::processors(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| String::new(), |release| format!("Linux {}", release.trim())),
            boot: liveness::boot(),
        }),
        lock: session.lock(),
        environment: std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| ENVIRONMENT.iter().any(|start| name.starts_with(start)))
            .collect(),
        settings: session.config.describe(),
        schema: event::schema()
            .into_iter()
            .map(|row| Schema {
                number: row.number,
                kind: row.kind,
                name: row.name.into(),
                arguments: row.arguments.iter().map(|a| (a.name.into(), a.type_name.into())).collect(),
            })
            .collect(),
        ..Metadata::default()
    }
}

/// Registers `trace` in the directory in which `omptrace record` finds the traces of its children. The entry is a
/// symbolic link, which is created as a whole or not at all, even on a full disk.
pub(crate) fn register(folder: &Path, trace: &Path) {
    let pid = system::process_id();
    let note = |number: u32| symlink(trace, folder.join(format!("{pid}.{number}")));
    let is_taken = |noted: &io::Result<()>| {
        let error = noted.as_ref().err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
    };
    let noted = (0..).map(note).find(|noted| !is_taken(noted));
    if let Some(Err(error)) = noted {
        warning!(
            "cannot register the trace in {}: {error}; to finish the trace, run: omptrace recover {}",
            folder.display(),
            trace.display()
        );
    }
}

/// Maximum length of the reason in bytes: it is the target of a symbolic link, for which the limit is 4095.
const MAX_WHY: usize = 2000;

/// Tells `omptrace record` why a process is not traced, as the target of a dangling symbolic link.
pub(crate) fn register_failure(folder: &Path, why: &str) {
    let end = why.floor_char_boundary(why.len().min(MAX_WHY));
    // A second reason adds nothing, and if this fails, stderr has the reason.
    let _ = symlink(&why[..end], folder.join(format!("{}.failed", system::process_id())));
}

/// The program's arguments, starting with its name; each ends with a zero.
fn command_line() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let arguments = bytes.strip_suffix(b"\0").unwrap_or(&bytes).split(|byte| *byte == 0);
    arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// When the process started, in clock ticks since boot.
fn started() -> Option<u64> {
    liveness::start_in(&liveness::stat("/proc/self")?)
}

/// `CLOCK_MONOTONIC_RAW` when the process started, at `started` clock ticks after boot.
fn started_raw_ns(started: u64) -> Option<i64> {
    let since_boot = started.checked_mul(1_000_000_000)? / system::clock_ticks_per_second()?;
    // Both clocks run on between the two readings, so the computed start is not after the true one.
    let raw = system::clock_ns(libc::CLOCK_MONOTONIC_RAW);
    let age = system::clock_ns(libc::CLOCK_BOOTTIME).checked_sub(since_boot)?;
    // Some kernels and sandboxes that do not know the start report 0.
    (started > 0).then_some(i64::try_from(raw).ok()?.checked_sub_unsigned(age)?)
}

/// The value after the colon in the first line of `path` that starts with `name`. The rest is not read: on large
/// machines, `/proc/cpuinfo` takes milliseconds, and the kernel only generates what fits into the buffer.
fn line_of(path: &str, name: &str) -> Option<String> {
    let lines = BufReader::with_capacity(512, File::open(path).ok()?).split(b'\n');
    // Stop at the first read error, because it may repeat forever.
    let mut lines = lines.map_while(Result::ok);
    let line = lines.find(|line| line.starts_with(name.as_bytes()))?;
    Some(String::from_utf8_lossy(&line).split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_no_known_encoding_hides_nothing() {
        let (before, affinity) = (started(), line_of("/proc/self/status", "Cpus_allowed_list:"));
        assert!(before.is_some() && affinity.is_some());
        let name = fs::read("/proc/self/comm").unwrap();
        fs::write("/proc/self/comm", b"a) \xff b").unwrap();
        let after = (started(), line_of("/proc/self/status", "Cpus_allowed_list:"));
        fs::write("/proc/self/comm", name).unwrap();
        assert_eq!(after, (before, affinity));
    }

    #[test]
    fn lines_are_found_and_files_that_cannot_be_read_have_none() {
        let pid = line_of("/proc/self/status", "Pid:");
        assert_eq!(pid, Some(std::process::id().to_string()));
        assert_eq!(line_of("/proc/self/status", "no such line"), None);
        assert_eq!(line_of("/proc/self/nothing", "Pid:"), None);
        // A directory can be opened, but reading it fails.
        assert_eq!(line_of("/proc/self", "Pid:"), None);
    }
}
