//! An operation of a device, and the clock for its times.

use serde::{Deserialize, Serialize};

/// What a device really did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The operations of which it wrote records.
    pub operations: Vec<Operation>,
    /// The operations during tracing of which it writes no records.
    pub unrecorded: Vec<Operation>,
    /// Number of records for which there was no room.
    pub dropped: u64,
    /// Number of records that do not belong to an operation of the host.
    pub alone: u64,
    /// Number of flushes that the tool requested.
    pub flushes: u64,
}

/// An operation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The data operation; `None` for a kernel.
    pub data_op: Option<u32>,
    /// The host's id of the operation.
    pub host_op_id: u64,
    /// The host's id of the target region.
    pub target_id: u64,
    /// The start time in nanoseconds since 1970.
    pub begin_ns: u64,
    /// The end time in nanoseconds since 1970.
    pub end_ns: u64,
    /// Bytes of a data operation.
    pub bytes: u64,
}

/// Reads the clock for times of operations.
pub(crate) fn host_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
