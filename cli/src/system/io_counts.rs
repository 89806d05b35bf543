//! For tests: how often the calling thread reads files.

use std::fs;

/// The calls of the system by which `f` reads.
pub(crate) fn reads_of(f: impl FnOnce()) -> u64 {
    let before = reads();
    f();
    // The first look is one itself.
    reads() - before - 1
}

fn reads() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let reads = counts.lines().find_map(|line| line.strip_prefix("syscr: "));
    reads.and_then(|reads| reads.parse().ok()).expect("a number")
}
