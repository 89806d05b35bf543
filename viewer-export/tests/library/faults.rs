//! The findings of the check of archives in those of nonsense, here and where it is fuzzed (`tests/fuzz/src/archive.rs`).

/// Faults that say what the trace says: that its tasks, teams and locks make no sense, or that no thread is wanted.
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
