//! Devices as the tracer sees them: their tracing entry points, trace buffers, records, clocks.
//!
//! A runtime passes a lookup of the device's own to `ompt_callback_device_initialize` (OpenMP 5.2, 19.5.2.19). Real
//! runtimes answer everything, something or nothing, and some answer and then refuse. Whatever it is, tracing goes on with
//! what is left, and the trace says what was missing and why.
//!
//! ```text
//! device_initialize -> Device::new: entry points by name -> Device::start: which records, which format
//!        request  <- Buffers::lend
//!        complete -> Device::records: the cursor's walk -> Record, copied raw; Problem, counted
//! ```
//!
//! The device's side is never trusted: pointers are read by the kernel unless they lead into a buffer of ours, sizes are
//! those of the standard's types, walks end. The crate knows no trace file and no clock of the host.

mod buffers;
mod device;
mod entry_points;
pub mod memory;
mod problem;
mod provider;
mod record;

pub use buffers::{Buffers, Lent};
pub use device::{Device, Format, Setup};
pub use entry_points::EntryPoints;
pub use problem::{Counts, Problem};
pub use record::{NativeRecord, OmptRecord, Record};
