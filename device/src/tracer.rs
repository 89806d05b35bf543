//! The trait of device tracers, implemented with the standard's interface of a runtime, or with a vendor's library.
//!
//! ```text
//! provider::tracer_of -> DeviceTracer::start(source)
//!        source.lend     <- the device requests a buffer
//!        source.complete <- it returns a buffer, or a part of its content -> DeviceTracer::drain -> Record, Problem
//! ```

use std::fmt;
use std::ops::Range;

use ompt_sys::{ompt_id_t, ompt_target_data_op_t};

use crate::buffers::Lent;
use crate::problem::Problem;
use crate::record::Record;

/// The formats of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The standard format.
    Ompt,
    /// The device's native format.
    Native,
}

impl Format {
    /// The format's name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ompt => "ompt",
            Format::Native => "native",
        }
    }
}

/// The result of starting to trace a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The format of the expected records; `None` if there are none.
    pub format: Option<Format>,
    /// What is missing or was refused.
    pub problems: Vec<String>,
}

/// Lends buffers to devices, and takes them back. Called on any thread, at any time, concurrently, and from within
/// calls of a [`DeviceTracer`].
pub trait BufferSource: Sync {
    /// The device requests a buffer. Without one, its records are lost.
    fn lend(&self, device_num: i32) -> Option<Lent>;

    /// The device returns a buffer, or a part of its content.
    ///
    /// # Safety
    /// The completion's records can be drained until this call returns.
    unsafe fn complete(&self, completion: &Completion);
}

/// A buffer, or a part of its content, that a device returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The device, according to itself.
    pub device_num: i32,
    /// The buffer's address.
    pub buffer: usize,
    /// The number of valid bytes, according to the device.
    pub bytes: usize,
    /// The cursor of the first record, which only the device understands.
    pub begin: u64,
    /// Whether the device no longer uses the buffer.
    pub is_returned: bool,
}

/// An operation that a host thread requests from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOperation {
    /// The tool's id of the operation.
    pub host_op_id: ompt_id_t,
    /// The device.
    pub device_num: i32,
    /// The kind of a data operation; 0 for a kernel.
    pub optype: ompt_target_data_op_t,
}

/// Traces a device. Each method may be called on any thread.
pub trait DeviceTracer: fmt::Debug + Send + Sync {
    /// The provider's name.
    fn provider(&self) -> &'static str;

    /// The names of the available entry points or functions.
    fn offers(&self) -> Vec<&'static str>;

    /// The missing functions without which there are no records; empty if the device can be traced.
    fn missing(&self) -> Vec<String>;

    /// The number of processors of the device.
    fn num_procs(&self) -> Option<i32>;

    /// Starts tracing kernels, copies and memory operations, as far as the device supports it.
    fn start(&self, source: &'static dyn BufferSource) -> Setup;

    /// Pauses or resumes tracing, if the device supports it.
    fn pause(&self, pause: bool);

    /// Requests delivery of all pending records. It may return before the last ones are delivered; a second flush, of
    /// any device, then waits for them.
    fn flush(&self);

    /// Stops tracing. Records that were not delivered may be lost.
    fn stop(&self);

    /// The device is finalized. Most runtimes have delivered all records before, and now only the time may be read.
    fn finalize(&self) {}

    /// Whether tracing must be stopped before a fork, and started again in the parent.
    fn stops_for_fork(&self) -> bool {
        true
    }

    /// Reads the device's clock.
    fn time(&self) -> Option<u64>;

    /// Converts a time of the device's clock to seconds of `omp_get_wtime`.
    fn translate(&self, time: u64) -> Option<f64>;

    /// Whether the tracer needs to know when threads request operations.
    fn wants_operations(&self) -> bool {
        false
    }

    /// The calling thread is about to request an operation.
    fn operation_begins(&self, _: &HostOperation) {}

    /// The calling thread has requested the operation that it announced last.
    fn operation_ends(&self) {}

    /// Calls `each` with every record of a completion and the device that did the work, and `problem` with every
    /// problem and its count. `readable` is the buffer's address range, which contains the valid bytes; empty if
    /// unknown. Returns the number of records.
    ///
    /// # Safety
    /// This device passed the completion to a [`BufferSource`], in a call that has not returned.
    unsafe fn drain(
        &self,
        completion: &Completion,
        readable: &Range<usize>,
        each: &mut dyn FnMut(i32, Record),
        problem: &mut dyn FnMut(Problem, u64),
    ) -> u64;
}
