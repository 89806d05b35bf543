//! Devices as omptrace's tracer sees them: what traces them, trace buffers, records, clocks.
//!
//! A runtime passes a lookup of the device's own to `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19). Real
//! runtimes answer everything, something or nothing, and some answer and then refuse. Whatever it is, tracing goes on with
//! what is left, and the trace says what was missing and why.
//!
//! | module | what it is |
//! | --- | --- |
//! | `tracer` | [`DeviceTracer`], which starts, flushes and stops tracing, drains records and reads the clock |
//! | `record` | [`Record`]: a kernel, a copy, memory, a marker or something in a device's own format |
//! | `ompt` | the first tracer: the entry points of OpenMP 5.2, 19.6.2, records copied raw |
//! | `cupti` | the second: NVIDIA's library, where a runtime traces nothing |
//! | `announced` | [`Announced`]: what a runtime says of a device |
//! | `provider` | the table of tracers |
//! | `buffers` | [`Buffers`]: memory lent to devices |
//! | `lock` | a lock that callbacks may wait for |
//! | `problem` | [`Problem`]: what devices do wrong, counted |
//!
//! The device's side is never trusted. The kernel reads pointers for us unless they lead into a buffer of ours. Sizes are
//! those of the standard's types, and walks end. The crate knows no trace file and no clock of the host.

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
