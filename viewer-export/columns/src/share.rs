//! Divides the rows of a job among several writers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;

use omptrace_timeline::Timeline;
use omptrace_trace_format::Reader;

/// Maximum number of parts of a job with fewer processes. If more parts are requested, the rest are empty.
const MAX_PARTS: usize = 1 << 16;
/// Smaller processes are not divided, because each writer of a part interprets the whole process.
const MIN_PART_BYTES: u64 = 1 << 20;

/// A part of a process's rows: every `of`-th row group of each table. Each writer interprets the whole process, so the
/// numbers of tasks and teams are the same in all parts, and each row is in exactly one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The number of the part, counted from 0.
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl Share {
    /// All rows.
    pub(crate) const WHOLE: Share = Share { number: 0, of: 1 };

    /// Whether the row group with this number belongs to the part.
    pub(crate) fn has(self, group: usize) -> bool {
        group % self.of == self.number
    }

    /// The name of a table's file.
    pub(crate) fn file_name(self) -> String {
        let Share { number, of } = self;
        match of {
            1 => "part-0.parquet".to_owned(),
            _ => format!("part-{number}-of-{of}.parquet"),
        }
    }
}

/// A part of a job, to be written by one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPart {
    /// The number of the part, counted from 1, and the number of parts: `--part 1/8`.
    pub part: (usize, usize),
    /// The trace of the process.
    pub trace: PathBuf,
    /// The part of the process's rows: its number, counted from 1, and the number of such parts.
    pub rows: (usize, usize),
    /// The size of the trace in bytes, divided by the number of the process's parts.
    pub bytes: u64,
}

/// Divides `inputs` into parts with at most `max_bytes` of a trace each. `--part I/N` writes these parts, if N is their
/// number.
pub fn splits(inputs: &[&Reader], max_bytes: NonZero<u64>) -> Vec<JobPart> {
    let timeline = Timeline::of(inputs);
    let readers = (0..inputs.len()).filter_map(|number| timeline.process(number));
    let readers: Vec<&Reader> = readers.map(|(reader, _)| reader).collect();
    let bytes: Vec<u64> = readers.iter().map(|reader| size(reader)).collect();
    let parts = parts_of_at_most(&bytes, max_bytes);
    let part = |(part, (process, share)): (usize, (usize, Share))| JobPart {
        part: (part + 1, parts),
        trace: readers[process].path().to_owned(),
        rows: (share.number + 1, share.of),
        bytes: bytes[process] / share.of as u64,
    };
    shares(&bytes, parts).enumerate().map(part).collect()
}

/// The size of a trace's file.
pub(crate) fn size(reader: &Reader) -> u64 {
    fs::metadata(reader.path()).map_or(0, |file| file.len())
}

/// Number of parts per process: 1, or more for large processes if there are more `parts` than processes. `bytes`: the
/// sizes of the traces. The parts are as equal as possible, and the result is the same on each machine.
fn parts_by_process(bytes: &[u64], parts: usize) -> Vec<usize> {
    let mut counts = vec![1; bytes.len()];
    // The process with the largest parts comes first; if several are equal, the first process.
    let next = |process: usize, parts: usize| (bytes[process] / parts as u64, Reverse(process));
    let mut processes: BinaryHeap<_> = (0..bytes.len()).map(|process| next(process, 1)).collect();
    for _ in bytes.len()..parts.min(MAX_PARTS) {
        match processes.pop() {
            Some((size, Reverse(process))) if size > MIN_PART_BYTES => {
                counts[process] += 1;
                processes.push(next(process, counts[process]));
            }
            _ => break,
        }
    }
    counts
}

/// Number of parts that are necessary to keep each part below `max_bytes`.
fn parts_of_at_most(bytes: &[u64], max_bytes: NonZero<u64>) -> usize {
    let max_bytes = max_bytes.get().max(MIN_PART_BYTES);
    let parts = bytes.iter().map(|bytes| bytes.div_ceil(max_bytes).max(1));
    let parts = usize::try_from(parts.fold(0, u64::saturating_add)).unwrap_or(MAX_PARTS);
    parts.min(MAX_PARTS.max(bytes.len()))
}

/// The processes that belong to part `part` (counted from 0) of `parts`, and the share of each.
pub(crate) fn of_part(bytes: &[u64], part: usize, parts: usize) -> Vec<(usize, Share)> {
    if parts <= bytes.len() {
        let processes = (part..bytes.len()).step_by(parts);
        return processes.map(|process| (process, Share::WHOLE)).collect();
    }
    shares(bytes, parts).nth(part).into_iter().collect()
}

/// The parts of a job with at least as many parts as processes, in order.
fn shares(bytes: &[u64], parts: usize) -> impl Iterator<Item = (usize, Share)> {
    let counts = parts_by_process(bytes, parts).into_iter().enumerate();
    counts.flat_map(|(process, of)| (0..of).map(move |number| (process, Share { number, of })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn large_processes_have_more_parts() {
        let bytes = [100, 10, 50].map(|size| size * MIB);
        assert_eq!(parts_by_process(&bytes, 3), [1, 1, 1]);
        assert_eq!(parts_by_process(&bytes, 6), [3, 1, 2]);
        let small = parts_by_process(&[MIB, 3 * MIB], 9);
        assert_eq!(small, [1, 3]);
        let at_most = |size| parts_of_at_most(&bytes, NonZero::new(size).unwrap());
        assert_eq!([100 * MIB, 40 * MIB, 1].map(at_most), [3, 6, 160]);
        assert_eq!(parts_of_at_most(&[0], NonZero::<u64>::MIN), 1);
    }

    #[test]
    fn each_row_group_is_in_one_part() {
        let bytes = [100, 1, 50].map(|size| size * MIB);
        for parts in 1..12 {
            for process in 0..bytes.len() {
                for group in 0..20 {
                    let all = (0..parts).flat_map(|part| of_part(&bytes, part, parts));
                    let has = all.filter(|(of, share)| *of == process && share.has(group));
                    assert_eq!(has.count(), 1, "{parts} parts, process {process}, group {group}");
                }
            }
        }
    }
}
