//! Devices of the reference runtime: trace buffers, records, clocks, and the faults of real runtimes.
//!
//! A script lists its [`Device`]s. `device_initialize` is an ordinary call of the script. Its lookup function is
//! [`Lookup::Device`](super::argument::Lookup), and its handle is the device's number plus 1. After that, the tool can
//! use all tracing entry points of OpenMP 5.2, 19.6.2. [`Offload`](super::script::Step::Offload) steps let the device
//! work.
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
//! Buffers may have any size down to one record. The report contains what each device really did, in real time, for
//! comparison with what a tool derives from the records.
//!
//! | module | what it does |
//! | --- | --- |
//! | `description` | a device as described by a script |
//! | `operation` | an operation of a device, and the clock for its times |
//! | `running` | the state of a device |
//! | `driver` | reports a device's work to its driver, for tools that query the driver |
//! | `misbehaviour` | the faults of devices, by name |
//! | `buffers` | fills the tool's buffers, and returns them |
//! | `records` | the records in the buffers |
//! | `entry_points` | the tracing entry points |

mod buffers;
mod description;
mod driver;
mod entry_points;
mod misbehaviour;
pub mod offload;
mod operation;
mod records;
mod running;

use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};

use ompt_sys::ompt_scope_endpoint_t;

use driver::Driver;
use running::{DEVICES, LATE, Running};

pub use description::{Clock, Device, Format};
pub(super) use entry_points::lookup_of;
pub use misbehaviour::{AMDS, BIG_RECORD_BYTES, MISSING_AMDS, Misbehaviour};
pub(super) use operation::host_ns;
pub use operation::{Operation, Played};
pub use running::MAX_DEVICES;

/// Creates the script's devices.
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

/// What all devices did.
pub(super) fn played() -> Vec<Played> {
    let devices = DEVICES.get().into_iter().flatten();
    devices.map(|device| device.trace().played.clone()).collect()
}

/// Waits for all late deliveries.
pub(super) fn settle() {
    let late = mem::take(&mut *LATE.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in late {
        thread.join().expect("no delivery panics");
    }
}

/// The device has done an operation; its times are from [`host_ns`].
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

/// The device writes `records` kernel records that do not belong to operations of the host.
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

/// The runtime is about to report that the device is finalized: everything has been delivered, and tracing has stopped
/// (OpenMP 5.2, 19.5.2.20).
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

/// The runtime has reported that a library is unloaded: delivers everything of all devices.
pub(super) fn unloaded() {
    for device in DEVICES.get().into_iter().flatten() {
        if device.does(Misbehaviour::EndsAtUnload) {
            device.flush_now(false);
            device.trace().is_unloaded = true;
        }
    }
}

/// Whether the runtime does not report the initialization and finalization of this device.
pub(super) fn is_unannounced(device: i32) -> bool {
    let devices = DEVICES.get().map_or(&[][..], Vec::as_slice);
    let device = usize::try_from(device).ok().filter(|number| *number > 0);
    let device = device.and_then(|number| devices.get(number));
    device.is_some_and(|device| device.does(Misbehaviour::OnlyFirstAnnounced))
}

/// Whether this process, a forked child, would wait forever for a thread that does not exist in it.
pub(super) fn child_hangs() -> bool {
    let mut devices = DEVICES.get().into_iter().flatten();
    devices.any(|device| device.does(Misbehaviour::ChildHangs) && device.trace().callbacks.is_some())
}
