//! Code that a program generates at run time, named by its perf map `/tmp/perf-PID.map`, which just-in-time compilers
//! write for profilers (Linux, `tools/perf/Documentation/jit-interface.txt`). Each line describes a function: start and
//! size in hexadecimal, and name.
//!
//! Such code is created and freed, and the map does not say when. So an address gets a name only if all functions in
//! the map that contain it have the same name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;
use omptrace_trace_format::liveness::boot;

/// The names of the sorted addresses `calls` in the perf map of the trace's process. Empty if the map may belong to
/// another process: if its owner is not the trace's, or if it was written before the process started. Also empty for
/// traces from another boot or machine. A forged trace cannot contain the id of the reader's boot, so it cannot obtain
/// names of the reader's processes.
pub(crate) fn names(reader: &Reader, calls: &[u64]) -> BTreeMap<u64, String> {
    let path = PathBuf::from(format!("/tmp/perf-{}.map", reader.header().pid));
    if calls.is_empty() || !is_of_process(&path, reader).unwrap_or(false) {
        return BTreeMap::new();
    }
    let map = File::open(path).map(BufReader::new);
    map.and_then(|map| read(map, calls)).unwrap_or_default()
}

/// Whether the process may have written the file.
fn is_of_process(path: &Path, reader: &Reader) -> io::Result<bool> {
    let file = fs::symlink_metadata(path)?;
    let trace = fs::metadata(reader.path())?;
    let clock = reader.clock();
    let process = reader.metadata().process.as_ref();
    let started = process.and_then(|process| u64::try_from(process.started_raw_ns?).ok());
    let before_session = started.map_or(0, |started| clock.start_raw_ns().saturating_sub(started));
    let began_ns = clock.start_realtime_ns().saturating_sub(before_session);
    let written_ns = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
    let machine = reader.metadata().machine.as_ref();
    let is_of_this_boot = machine.is_some_and(|machine| machine.boot == boot());
    Ok(is_of_this_boot && file.is_file() && file.uid() == trace.uid() && written_ns >= i128::from(began_ns))
}

/// The names that `map` contains for the sorted addresses `calls`.
fn read(mut map: impl BufRead, calls: &[u64]) -> io::Result<BTreeMap<u64, String>> {
    let mut names: BTreeMap<u64, Option<String>> = BTreeMap::new();
    let mut line = Vec::new();
    while map.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if let Some((begin, end, name)) = function(text.trim_end()) {
            let first = calls.partition_point(|call| *call < begin);
            let held = calls[first..].iter().take_while(|call| **call < end);
            for call in held {
                let known = names.entry(*call).or_insert_with(|| Some(name.to_owned()));
                if known.as_deref() != Some(name) {
                    *known = None;
                }
            }
        }
        line.clear();
    }
    let names = names.into_iter();
    Ok(names.filter_map(|(call, name)| Some((call, name?))).collect())
}

/// Start, end and name of the function in a line.
fn function(line: &str) -> Option<(u64, u64, &str)> {
    let number = |digits: &str| {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        u64::from_str_radix(digits, 16).ok()
    };
    let (begin, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let begin = number(begin)?;
    let end = begin.checked_add(number(size)?)?;
    (!name.is_empty()).then_some((begin, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_that_all_of_its_functions_have() {
        let map = "1000 10 first\n0x1010 0x10 second one\n1018 8 third\n1000 8 first\nnonsense\n2000 10\nffffffffffffffff 2 end\n";
        let names = read(map.as_bytes(), &[0xfff, 0x1000, 0x1010, 0x1018, 0x2000, u64::MAX]);
        let names: Vec<_> = names.expect("a text").into_iter().collect();
        assert_eq!(names, [(0x1000, "first".to_owned()), (0x1010, "second one".to_owned())]);
    }
}
