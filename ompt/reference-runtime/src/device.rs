//! Devices of the reference runtime: trace buffers, records, clocks, and whatever real runtimes do wrong with them.
//!
//! A script lists its [`Device`]s. `device_initialize` is a call of the script like any other. Its lookup is
//! [`Lookup::Device`](super::argument::Lookup), its handle the device's number plus 1. From then on the tool can use all
//! tracing entry points of OpenMP 5.2, 19.6.2. [`Offload`](super::script::Step::Offload) has the device work.
//!
//! ```text
//! {"devices": [{"type": "toy", "clock": {"offset": 1000000, "drift_ppm": 200.0, "jitter_us": 50},
//!               "misbehaviours": ["completes_in_parts"]}],
//!  "rounds": [{"threads": [[
//!     {"call": {"device_initialize": {"device_num": 0, "type": "toy", "device": 1, "lookup": {"device": 0}, ...}}},
//!     {"offload": {"device": 0, "slot": 0, "times": 10, "busy_us": 20}},
//!     {"call": {"device_finalize": {"device_num": 0}}}
//! ]]}]}
//! ```
//!
//! Buffers may have any size down to one record. The report says what each device really did, in the time of day. A test
//! compares it with what a tool made of the records.
//!
//! | module | what it does |
//! | --- | --- |
//! | `description` | a device as a script describes it |
//! | `driver` | reports what a device does to its driver, for tools that ask that |
//! | `misbehaviour` | what devices do wrong, by name |
//! | `buffers` | fills the tool's buffers, and gives them back |
//! | `records` | the records in them |
//! | `entry_points` | what the tool can ask |

mod buffers;
mod description;
mod driver;
mod entry_points;
mod misbehaviour;
mod records;

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use ompt_sys::*;
use serde::{Deserialize, Serialize};

use super::call::Call;

use driver::Driver;

pub use description::{Clock, Device, Format};
pub(super) use entry_points::lookup_of;
pub use misbehaviour::{AMDS, BIG_RECORD_BYTES, MISSING_AMDS, Misbehaviour};

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

/// A device at work.
#[derive(Debug)]
struct Running {
    number: usize,
    script: Device,
    trace: Mutex<Trace>,
    /// Held by whoever completes buffers.
    completions: Mutex<()>,
    first_translated_ns: OnceLock<f64>,
    random: AtomicU64,
    driver: Option<Driver>,
}

#[derive(Debug, Default)]
struct Trace {
    callbacks: Option<(ompt_callback_buffer_request_t, ompt_callback_buffer_complete_t)>,
    is_paused: bool,
    is_finalized: bool,
    /// Nothing is delivered any more.
    is_unloaded: bool,
    /// The tool wants records of target regions.
    wants_targets: bool,
    /// By thread, where each has its own.
    filling: BTreeMap<u64, Buffer>,
    full: Vec<Buffer>,
    written: u64,
    played: Played,
}

/// A buffer of the tool's.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    address: usize,
    bytes: usize,
    used: usize,
    delivered: usize,
    is_flushed: bool,
}

/// A lookup is a function without data, so each device needs a function of its own.
pub const MAX_DEVICES: usize = 4;

static DEVICES: OnceLock<Vec<Running>> = OnceLock::new();
/// Where the valid records of each buffer end.
static ENDS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
/// Flushes that go on: all devices have one thread for that.
static FLUSHES: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
/// Threads that still have something to deliver.
static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Makes the script's devices.
///
/// # Errors
/// There are too many, or a driver cannot be loaded.
pub(super) fn make(devices: &[Device]) -> Result<(), String> {
    if devices.len() > MAX_DEVICES {
        return Err(format!("there are no more than {MAX_DEVICES} devices"));
    }
    let mut drivers = Vec::new();
    for device in devices {
        drivers.push(device.driver.as_deref().map(Driver::load).transpose()?);
    }
    let mut drivers = drivers.into_iter();
    let running = |(number, script): (usize, &Device)| Running {
        driver: drivers.next().flatten(),
        number,
        script: script.clone(),
        trace: Mutex::default(),
        completions: Mutex::default(),
        first_translated_ns: OnceLock::new(),
        random: AtomicU64::new(0x9e37_79b9_7f4a_7c15),
    };
    DEVICES.get_or_init(|| devices.iter().enumerate().map(running).collect());
    Ok(())
}

/// The work of all devices.
pub(super) fn played() -> Vec<Played> {
    let devices = DEVICES.get().into_iter().flatten();
    devices.map(|device| device.trace().played.clone()).collect()
}

/// Waits until everything that is late has been delivered.
pub(super) fn settle() {
    let late = mem::take(&mut *LATE.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in late {
        thread.join().expect("no delivery panics");
    }
}

/// The device has worked: begin and end are times of [`host_ns`].
pub(super) fn worked(device: u32, operation: Operation) {
    if let Some(device) = DEVICES.get().and_then(|devices| devices.get(device as usize)) {
        match &device.driver {
            Some(driver) => {
                driver.worked(device.number as u32, &operation);
                device.trace().played.operations.push(operation);
            }
            None => device.write(Some(operation), &operation),
        }
    }
}

/// A target region on the device begins or ends.
pub(super) fn region(device: u32, endpoint: ompt_scope_endpoint_t, target_id: u64) {
    if let Some(device) = DEVICES.get().and_then(|devices| devices.get(device as usize)) {
        device.write_target(endpoint, target_id);
    }
}

/// The device writes `records` records of kernels that no host has submitted.
pub(super) fn storm(device: u32, records: u64) {
    let Some(device) = DEVICES.get().and_then(|devices| devices.get(device as usize)) else {
        return;
    };
    for number in 0..records {
        let begin_ns = host_ns();
        let kernel = Operation {
            data_op: None,
            host_op_id: number + 1,
            target_id: 1,
            begin_ns,
            end_ns: begin_ns + 10,
            bytes: 0,
        };
        device.write(None, &kernel);
    }
}

/// The runtime is about to report that the device goes: by then it has delivered everything, and tracing has stopped (OpenMP
/// 5.2, 19.5.2.20).
pub(super) fn finalizes(device: i32) {
    let devices = DEVICES.get().map_or(&[][..], Vec::as_slice);
    let Some(device) = devices.get(device as usize) else {
        return;
    };
    buffers::wait_for_flushes();
    if device.trace().callbacks.is_some() && !device.does(Misbehaviour::CompletesAfterStop) {
        device.flush_now(true);
    }
    device.stop();
    device.trace().is_finalized = true;
}

/// The runtime has reported that a library goes: it delivers what there is of all devices.
pub(super) fn unloaded() {
    for device in DEVICES.get().into_iter().flatten() {
        if device.does(Misbehaviour::EndsAtUnload) {
            device.flush_now(false);
            device.trace().is_unloaded = true;
        }
    }
}

/// Whether the runtime keeps the call about a device to itself.
pub(super) fn is_unannounced(call: &Call) -> bool {
    let (Call::DeviceInitialize { device_num, .. } | Call::DeviceFinalize { device_num }) = call else {
        return false;
    };
    let devices = DEVICES.get().map_or(&[][..], Vec::as_slice);
    let device = usize::try_from(*device_num).ok().filter(|number| *number > 0);
    let device = device.and_then(|number| devices.get(number));
    device.is_some_and(|device| device.does(Misbehaviour::OnlyFirstAnnounced))
}

/// Whether this process, a child, would wait for ever for a thread that it does not have.
pub(super) fn child_hangs() -> bool {
    let mut devices = DEVICES.get().into_iter().flatten();
    devices.any(|device| device.does(Misbehaviour::ChildHangs) && device.trace().callbacks.is_some())
}

/// Ends the process as a runtime does that writes through a null pointer.
fn die(why: &str) -> ! {
    eprintln!("reference runtime: {why}");
    std::process::abort()
}

/// The clock of operations.
pub(super) fn host_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
