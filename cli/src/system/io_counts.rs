//! For tests: counts how often the calling thread reads files.

use std::fs;

/// Number of system calls by which `f` reads.
pub(crate) fn reads_of(f: impl FnOnce()) -> u64 {
    let before = reads();
    f();
    // Reading the count is a read itself.
    reads() - before - 1
}

fn reads() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let reads = counts.lines().find_map(|line| line.strip_prefix("syscr: "));
    reads.and_then(|reads| reads.parse().ok()).expect("a number")
}
