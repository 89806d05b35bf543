//! Device tracing for omptrace's tracer: device tracers, trace buffers, records, clocks.
//!
//! A runtime passes a device's lookup function to `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19). Real
//! runtimes offer all, some or no entry points, and some offer an entry point and then refuse the request. In each
//! case, tracing continues with what is available, and the trace states what was missing and why.
//!
//! | module | what it is |
//! | --- | --- |
//! | `tracer` | [`DeviceTracer`], which starts, flushes and stops tracing, drains records and reads the clock |
//! | `record` | [`Record`]: a kernel, a copy, memory, a marker, or something in a device's native format |
//! | `ompt` | the first tracer: the entry points of OpenMP 5.2, 19.6.2, with records copied raw |
//! | `cupti` | the second: NVIDIA's library, for runtimes that trace nothing |
//! | `announced` | [`Announced`]: what a runtime reports about a device |
//! | `provider` | the table of tracers |
//! | `buffers` | [`Buffers`]: memory lent to devices |
//! | `lock` | a lock that callbacks may wait for |
//! | `problem` | [`Problem`]: counted problems of devices |
//!
//! Data from devices is never trusted. Pointers are read by the kernel unless they point into one of our buffers. Sizes
//! are those of the standard's types, and walks are bounded. The crate depends neither on the trace file nor on the
//! host's clock.

mod announced;
mod buffers;
pub mod cupti;
mod lock;
pub mod memory;
mod ompt;
mod problem;
mod provider;
mod record;
mod tracer;

pub use announced::Announced;
pub use buffers::{Buffers, Lent};
pub use problem::{Counts, Problem};
pub use provider::{Found, tracer_of};
pub use record::{DataOp, Record, Work};
pub use tracer::{BufferSource, Completion, DeviceTracer, Format, HostOperation, Setup};
