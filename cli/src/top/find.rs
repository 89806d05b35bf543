//! Finds the traces of running programs: a traced process has its trace and its spool mapped, which `/proc` shows.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::block::{FILE_MAGIC, FileHeader, SPOOL_MAGIC};
use omptrace_trace_format::{liveness, open_regular};

use crate::input::inputs;
use crate::output::failure::{Failure, Result};

/// How to record a program so that it has a trace.
const START: &str =
    "start the program with `omptrace record`, or with the environment variables that `omptrace env` prints";

/// The traces that `target` names, sorted. It is a process (including its children), a trace, or a directory of traces;
/// `None` means all visible traced programs.
///
/// # Errors
/// There are none, or the target does not exist.
pub(super) fn traces(target: Option<&Path>) -> Result<Vec<PathBuf>> {
    let Some(target) = target else {
        return all();
    };
    let pid = target.to_str().and_then(|text| text.parse::<u32>().ok());
    match pid {
        Some(pid) if !target.exists() => of_process(pid),
        _ => inputs::traces(&[target.to_owned()]),
    }
}

fn all() -> Result<Vec<PathBuf>> {
    let found: BTreeSet<PathBuf> = pids().flat_map(|pid| mapped_traces(pid).unwrap_or_default()).collect();
    if found.is_empty() {
        return Err(Failure::new("this user can see no running program that is being traced")
            .hint(format!("{START}; or give the path of a trace: omptrace top app.omptrace")));
    }
    Ok(found.into_iter().collect())
}

fn of_process(pid: u32) -> Result<Vec<PathBuf>> {
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Failure::new(format!("no process or file named {pid}"))
            .hint("`omptrace top` without an argument shows all traced programs"));
    }
    let mut found = BTreeSet::new();
    let mut hidden = None;
    for pid in with_children(pid) {
        match mapped_traces(pid) {
            Ok(traces) => found.extend(traces),
            Err(error) => hidden = hidden.or(Some((pid, error))),
        }
    }
    match hidden {
        _ if !found.is_empty() => Ok(found.into_iter().collect()),
        Some((pid, error)) => {
            Err(Failure::because(format!("cannot see the files that process {pid} uses"), &error)
                .hint("the process belongs to another user: run omptrace as that user, or give the path of the process's trace"))
        }
        None => {
            Err(Failure::new(format!("neither process {pid} nor any of its children is recording a trace"))
                .hint(format!("{START}; a process has no trace until it executes its first OpenMP construct")))
        }
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The process and its descendants.
fn with_children(pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in pids() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        // A table that changes while it is read may contain a cycle.
        let of_process = children.remove(pid).unwrap_or_default();
        all.extend(of_process);
        next += 1;
    }
    all
}

/// The second field after the name in `/proc/PID/stat`.
fn parent_of(pid: u32) -> Option<u32> {
    liveness::stat(&format!("/proc/{pid}"))?.get(1)?.parse().ok()
}

/// The traces that the process has mapped.
fn mapped_traces(pid: u32) -> std::io::Result<BTreeSet<PathBuf>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let shared = maps.split(|byte| *byte == b'\n').filter_map(shared_file);
    let files: BTreeSet<&[u8]> = shared.collect();
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let traces = files.into_iter().filter_map(|file| {
        let path = Path::new(OsStr::from_bytes(file));
        // The process may see other directories than we do.
        let seen_there = || Some(root.join(path.strip_prefix("/").ok()?));
        trace_of(path).or_else(|| trace_of(&seen_there()?))
    });
    Ok(traces.collect())
}

/// The file in a line of `/proc/PID/maps`, if it is shared memory. The fields are address, access, offset, device,
/// inode, path.
fn shared_file(line: &[u8]) -> Option<&[u8]> {
    let path = line.iter().position(|byte| *byte == b'/')?;
    let mut fields = line[..path].split(|byte| *byte == b' ');
    let access = fields.nth(1)?;
    access.ends_with(b"s").then_some(&line[path..])
}

/// The trace for `file`, which is the trace itself or its spool.
fn trace_of(file: &Path) -> Option<PathBuf> {
    let opened = open_regular(file).ok()?;
    let mut page = vec![0; omptrace_trace_format::block::FILE_HEADER_BYTES];
    opened.read_exact_at(&mut page, 0).ok()?;
    if FileHeader::decode(&page, FILE_MAGIC).is_ok() {
        return Some(file.to_owned());
    }
    let header = FileHeader::decode(&page, SPOOL_MAGIC).ok()?;
    let trace = PathBuf::from(OsStr::from_bytes(&header.path));
    trace.exists().then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_shared_memory_are_found_by_their_access() {
        let line = b"7f00-7f10 rw-s 00000000 08:01 12 /tmp/a b.omptrace.spool";
        assert_eq!(shared_file(line), Some(&b"/tmp/a b.omptrace.spool"[..]));
        assert_eq!(shared_file(b"7f00-7f10 r-xp 00000000 08:01 12 /usr/lib/libc.so.6"), None);
        assert_eq!(shared_file(b"7ffc-7ffd rw-p 00000000 00:00 0 [stack]"), None);
        assert_eq!(shared_file(b""), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error_that_says_what_to_do() {
        let failure = traces(Some(Path::new("4000000000"))).unwrap_err();
        assert!(format!("{failure:?}").contains("no process or file named 4000000000"));
    }

    #[test]
    fn this_process_is_its_parents_child() {
        let parent = parent_of(std::process::id()).expect("a parent");
        assert!(with_children(parent).contains(&std::process::id()));
    }
}
