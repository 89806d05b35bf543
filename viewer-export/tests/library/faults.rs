//! The findings of the archive checker in archives of contradictory traces, here and in the fuzzer
//! (`tests/fuzz/src/archive.rs`).

/// Faults that come from the trace itself: contradictory tasks, teams and locks, or no selected threads.
pub(crate) const FAULTS_OF_TRACES: [&str; 12] = [
    "fork_join",
    "location_group",
    "lock",
    "lock_order",
    "nesting",
    "not_a_member",
    "not_left",
    "task_not_complete",
    "task_not_left",
    "task_twice",
    "task_unknown",
    "team",
];
