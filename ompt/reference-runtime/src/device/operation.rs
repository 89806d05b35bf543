//! What a device does, and the clock of it.

use serde::{Deserialize, Serialize};

/// The real work of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The operations that it wrote records of.
    pub operations: Vec<Operation>,
    /// The operations that it was traced at, and writes no records of.
    pub unrecorded: Vec<Operation>,
    /// Records for which there was no room.
    pub dropped: u64,
    /// Records that were written without an operation of the host.
    pub alone: u64,
    /// How often the tool asked for a flush.
    pub flushes: u64,
}

/// An operation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// `None` for a kernel.
    pub data_op: Option<u32>,
    /// The host's number for it.
    pub host_op_id: u64,
    /// The host's number for the target region.
    pub target_id: u64,
    /// When it began: nanoseconds since 1970.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Bytes of a data operation.
    pub bytes: u64,
}

/// The clock of operations.
pub(crate) fn host_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
