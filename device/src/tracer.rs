//! The trait of a device's tracer, whoever offers it: a runtime through the standard's interface, or a vendor's library.
//!
//! ```text
//! provider::tracer_of -> DeviceTracer::start(source)
//!        source.lend     <- the device wants a buffer
//!        source.complete <- it gives one back, or a part of what is in it -> DeviceTracer::drain -> Record, Problem
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
    /// The standard's.
    Ompt,
    /// The device's own.
    Native,
}

impl Format {
    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ompt => "ompt",
            Format::Native => "native",
        }
    }
}

/// How far tracing of a device got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The format of the records to come; `None` where there are none.
    pub format: Option<Format>,
    /// Things that are missing or were refused.
    pub problems: Vec<String>,
}

/// Gives devices their buffers, and takes them back. Called on any thread, at any time, by several at once, and from within
/// calls of a [`DeviceTracer`].
pub trait BufferSource: Sync {
    /// The device wants a buffer. Without one, its records are lost.
    fn lend(&self, device_num: i32) -> Option<Lent>;

    /// The device gives a buffer back, or a part of what is in it.
    ///
    /// # Safety
    /// Until this call returns, the completion's records can be drained.
    unsafe fn complete(&self, completion: &Completion);
}

/// A buffer that a device gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The device, as it says itself.
    pub device_num: i32,
    /// Where the buffer is.
    pub buffer: usize,
    /// The valid bytes, as the device says.
    pub bytes: usize,
    /// The first record: a number that only the device understands.
    pub begin: u64,
    /// The device is done with the buffer.
    pub is_returned: bool,
}

/// An operation that a thread of the host asks a device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOperation {
    /// The tool's number for it.
    pub host_op_id: ompt_id_t,
    /// The device.
    pub device_num: i32,
    /// The kind of a data operation; 0 for a kernel.
    pub optype: ompt_target_data_op_t,
}

/// Traces a device. Each method may be called on any thread.
pub trait DeviceTracer: fmt::Debug + Send + Sync {
    /// The name of what offers it.
    fn provider(&self) -> &'static str;

    /// The names of what it is offered by.
    fn offers(&self) -> Vec<&'static str>;

    /// The functions that are missing, without which there are no records; none where it can trace.
    fn missing(&self) -> Vec<String>;

    /// The number of the device's processors.
    fn num_procs(&self) -> Option<i32>;

    /// Starts tracing of kernels, copies and memory, as far as the device grants it.
    fn start(&self, source: &'static dyn BufferSource) -> Setup;

    /// Pauses tracing, or resumes it, where the device can.
    fn pause(&self, pause: bool);

    /// Has all pending records delivered. It may return before the last are, and a further flush, of any device, when they are.
    fn flush(&self);

    /// Stops tracing. Records that were not delivered may be lost.
    fn stop(&self);

    /// The device goes. Most runtimes have delivered all records before they say so, and can be asked for nothing but the time.
    fn finalize(&self) {}

    /// Tracing must be stopped before a fork, and started again in the parent.
    fn stops_for_fork(&self) -> bool {
        true
    }

    /// The device's clock.
    fn time(&self) -> Option<u64>;

    /// A time of its clock in seconds as `omp_get_wtime` counts them.
    fn translate(&self, time: u64) -> Option<f64>;

    /// Whether it wants to know when threads ask devices for operations.
    fn wants_operations(&self) -> bool {
        false
    }

    /// The calling thread begins to ask for an operation.
    fn operation_begins(&self, _: &HostOperation) {}

    /// The calling thread has asked for the operation that began last.
    fn operation_ends(&self) {}

    /// Calls `each` with every record of a completion and the device that did it, and `problem` with every problem and how often
    /// it came. `readable` is where the buffer lies, empty where that is not known; the valid bytes lie in it. The number of
    /// records.
    ///
    /// # Safety
    /// The completion came to a [`BufferSource`] from this device, in a call that has not returned.
    unsafe fn drain(
        &self,
        completion: &Completion,
        readable: &Range<usize>,
        each: &mut dyn FnMut(i32, Record),
        problem: &mut dyn FnMut(Problem, u64),
    ) -> u64;
}
