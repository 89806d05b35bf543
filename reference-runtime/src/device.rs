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

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{mem, ptr};

use ompt_sys::*;
use serde::{Deserialize, Serialize};

/// A device as the script wants it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The format of its records.
    pub format: Format,
    /// Its clock.
    pub clock: Clock,
    /// Entry points that its lookup does not answer, by name without `ompt_`.
    pub missing: Vec<String>,
    /// Completions come on a thread that no callback has announced.
    pub foreign_threads: bool,
    /// Of a buffer it uses no more bytes than these, unless they are 0.
    pub uses_bytes: usize,
    /// What it does wrong, or in an unusual way.
    pub misbehaviours: Vec<Misbehaviour>,
}

/// The formats of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The standard's.
    #[default]
    Ompt,
    /// Its own, which only `ompt_get_record_abstract` understands.
    Native,
}

/// A clock beside the host's, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// What it shows more than the host's.
    pub offset: u64,
    /// By how many millionths it is faster.
    pub drift_ppm: f64,
    /// Before and after the clock is read, a call takes up to this time.
    pub jitter_us: u64,
}

/// What a device does wrong, or as the specification allows and few expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// `ompt_set_trace_ompt` answers `ompt_set_never`.
    RefusesOmpt,
    /// `ompt_set_trace_ompt` knows the kinds by their first numbers only.
    RefusesEmi,
    /// `ompt_set_trace_native` answers `ompt_set_never`.
    RefusesNative,
    /// `ompt_start_trace` fails.
    RefusesStart,
    /// `ompt_translate_time` answers 0.
    TranslatesToZero,
    /// Requests and completions say device 0.
    SaysDeviceZero,
    /// A completion per record, its begin in the middle of the buffer, and a last one without records gives it back.
    CompletesInParts,
    /// The last completion comes after `ompt_stop_trace` has returned.
    CompletesAfterStop,
    /// Each buffer is given back twice.
    CompletesTwice,
    /// Completions of a buffer that is not the tool's.
    CompletesForeignBuffers,
    /// Full buffers come back in the reverse order, when tracing is flushed.
    ReversesBuffers,
    /// No buffer comes back before tracing stops.
    KeepsBuffers,
    /// Each second record is a null pointer.
    NullRecords,
    /// Each second record is of an invalid type.
    InvalidRecords,
    /// Each second record is of a kind that no specification has.
    UnknownKinds,
    /// Each second record lies where no memory is.
    BadPointers,
    /// The cursor does not advance, and says that there is a next record.
    EndlessCursor,
    /// Completions report more bytes than the buffer has.
    TooManyBytes,
    /// The end of each operation is before its begin.
    SwapsTimes,
    /// Each second record has no times.
    ZeroTimes,
    /// All records name the same operation.
    ReusesIds,
    /// `host_op_id` and `target_id` are in each other's place.
    SwapsIds,
    /// From `device_finalize` on, `ompt_flush_trace`, `ompt_stop_trace` and `ompt_advance_buffer_cursor` abort. AMD's.
    EntryPointsDieAtFinalize,
    /// Each thread has a buffer, which is the tool's again when it is full, and never else. AMD's.
    BufferPerThread,
    /// `ompt_stop_trace` drops what was not delivered. AMD's.
    StopDropsUndelivered,
    /// `ompt_flush_trace` returns before the records are delivered, on a thread of the runtime; a further one returns when those
    /// are. AMD's.
    FlushReturnsEarly,
    /// A target region aborts where records of target regions are wanted. AMD's, on a thread without a task.
    DiesOfTargetRecords,
    /// A record takes [`BIG_RECORD_BYTES`], and the program aborts where a buffer has no room for one. AMD's.
    BigRecords,
    /// A child that is forked while the device is traced never ends. AMD's.
    ChildHangs,
}

/// What AMD's runtime does.
pub const AMDS: &[Misbehaviour] = &[
    Misbehaviour::EntryPointsDieAtFinalize,
    Misbehaviour::BufferPerThread,
    Misbehaviour::StopDropsUndelivered,
    Misbehaviour::FlushReturnsEarly,
    Misbehaviour::DiesOfTargetRecords,
    Misbehaviour::BigRecords,
    Misbehaviour::ChildHangs,
];
/// The entry points that AMD's runtime lacks.
pub const MISSING_AMDS: &[&str] = &[
    "get_device_num_procs",
    "get_buffer_limits",
    "pause_trace",
    "set_trace_native",
    "get_record_native",
    "get_record_abstract",
];
/// Bytes of a record of [`Misbehaviour::BigRecords`].
pub const BIG_RECORD_BYTES: usize = size_of::<ompt_record_ompt_t>() + 8;
/// How long a flush of [`Misbehaviour::FlushReturnsEarly`] takes.
const FLUSH_TAKES: Duration = Duration::from_millis(5);

/// What a device really did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The operations that it wrote records of.
    pub operations: Vec<Operation>,
    /// Records for which there was no room.
    pub dropped: u64,
    /// Records that were written without an operation of the host.
    pub alone: u64,
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
    random: AtomicU64,
}

#[derive(Debug, Default)]
struct Trace {
    callbacks: Option<(
        ompt_callback_buffer_request_t,
        ompt_callback_buffer_complete_t,
    )>,
    is_paused: bool,
    is_finalized: bool,
    /// The tool wants records of target regions.
    wants_targets: bool,
    /// By thread, where each has its own.
    filling: BTreeMap<u64, Buffer>,
    /// Flushes that go on.
    flushes: Vec<JoinHandle<()>>,
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
}

/// A record in the device's own format.
#[repr(C)]
struct NativeRecord {
    host_op_id: ompt_id_t,
    summary: ompt_record_abstract_t,
}

/// A lookup is a function without data, so each device needs a function of its own.
pub const MAX_DEVICES: usize = 4;

static DEVICES: OnceLock<Vec<Running>> = OnceLock::new();
/// Where the valid records of each buffer end.
static ENDS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
/// Threads that still have something to deliver.
static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Makes the script's devices.
///
/// # Errors
/// There are too many.
pub(super) fn make(devices: &[Device]) -> Result<(), String> {
    if devices.len() > MAX_DEVICES {
        return Err(format!("there are no more than {MAX_DEVICES} devices"));
    }
    let running = |(number, script): (usize, &Device)| Running {
        number,
        script: script.clone(),
        trace: Mutex::default(),
        random: AtomicU64::new(0x9e37_79b9_7f4a_7c15),
    };
    DEVICES.get_or_init(|| devices.iter().enumerate().map(running).collect());
    Ok(())
}

/// What all devices did.
pub(super) fn played() -> Vec<Played> {
    let devices = DEVICES.get().into_iter().flatten();
    devices
        .map(|device| device.trace().played.clone())
        .collect()
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
    if let Some(device) = DEVICES
        .get()
        .and_then(|devices| devices.get(device as usize))
    {
        device.write(Some(operation), &operation);
    }
}

/// The device writes `records` records of kernels that no host has submitted.
pub(super) fn storm(device: u32, records: u64) {
    let Some(device) = DEVICES
        .get()
        .and_then(|devices| devices.get(device as usize))
    else {
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
    device.wait_for_flushes();
    if device.trace().callbacks.is_some() && !device.does(Misbehaviour::CompletesAfterStop) {
        device.flush_now(true);
    }
    device.stop();
    device.trace().is_finalized = true;
}

/// Whether this process, a child, would wait for ever for a thread that it does not have.
pub(super) fn child_hangs() -> bool {
    let mut devices = DEVICES.get().into_iter().flatten();
    devices
        .any(|device| device.does(Misbehaviour::ChildHangs) && device.trace().callbacks.is_some())
}

/// Ends the process as a runtime does that writes through a null pointer.
fn die(why: &str) -> ! {
    eprintln!("reference runtime: {why}");
    std::process::abort()
}

/// The clock of operations.
pub(super) fn host_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock {
    /// What it shows at a time of the host.
    fn at(&self, host_ns: u64) -> u64 {
        host_ns
            .wrapping_add(self.offset)
            .wrapping_add((host_ns as f64 * self.drift_ppm / 1e6) as i64 as u64)
    }

    /// The time of the host at which it shows so much.
    fn host_ns(&self, device_time: u64) -> f64 {
        device_time.wrapping_sub(self.offset) as f64 / (1.0 + self.drift_ppm / 1e6)
    }
}

impl Running {
    fn does(&self, misbehaviour: Misbehaviour) -> bool {
        self.script.misbehaviours.contains(&misbehaviour)
    }

    fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it says its number is.
    fn said_number(&self) -> c_int {
        if self.does(Misbehaviour::SaysDeviceZero) {
            0
        } else {
            self.number as c_int
        }
    }

    fn record_bytes(&self) -> usize {
        match self.script.format {
            Format::Ompt if self.does(Misbehaviour::BigRecords) => BIG_RECORD_BYTES,
            Format::Ompt => size_of::<ompt_record_ompt_t>(),
            Format::Native => size_of::<NativeRecord>(),
        }
    }

    fn jitter(&self) {
        let most_ns = self.script.clock.jitter_us * 1000;
        if most_ns > 0 {
            // SplitMix64 (Steele, Lea, Flood 2014).
            let mut z = self
                .random
                .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let until = host_ns() + (z ^ z >> 31) % most_ns;
            while host_ns() < until {}
        }
    }

    /// Writes a record of `operation`, where tracing is on and there is room.
    fn write(&self, truth: Option<Operation>, operation: &Operation) {
        let bytes = self.record_bytes();
        let Some(mut trace) = self.make_room(bytes) else {
            return;
        };
        let writer = self.writer();
        let Some(buffer) = trace.filling.get_mut(&writer) else {
            trace.played.dropped += 1;
            return;
        };
        let at = buffer.address + buffer.used;
        buffer.used += bytes;
        trace.written += 1;
        let is_second = trace.written % 2 == 0;
        // SAFETY: the buffer has room for it, the tool promised that it can be written.
        unsafe {
            match self.script.format {
                Format::Ompt => (at as *mut ompt_record_ompt_t)
                    .write_unaligned(self.ompt_record(operation, is_second)),
                Format::Native => {
                    (at as *mut NativeRecord).write_unaligned(self.native_record(operation))
                }
            }
        }
        match truth {
            Some(truth) => trace.played.operations.push(truth),
            None => trace.played.alone += 1,
        }
        if self.does(Misbehaviour::CompletesInParts)
            && let Some(buffer) = trace.filling.get(&writer).copied()
        {
            drop(trace);
            self.complete(buffer, false);
            if let Some(buffer) = self.trace().filling.get_mut(&writer) {
                buffer.delivered = buffer.used;
            }
        }
    }

    /// Whose buffer the calling thread writes to.
    fn writer(&self) -> u64 {
        if self.does(Misbehaviour::BufferPerThread) {
            // SAFETY: it only asks the kernel.
            unsafe { libc::gettid() as u64 }
        } else {
            0
        }
    }

    /// The trace, with a buffer being filled that has room; `None` where tracing is off.
    fn make_room(&self, bytes: usize) -> Option<MutexGuard<'_, Trace>> {
        let mut trace = self.trace();
        let (request, _) = trace.callbacks.filter(|_| !trace.is_paused)?;
        if trace.wants_targets && self.does(Misbehaviour::DiesOfTargetRecords) {
            die("a record of a target region on a thread without a task");
        }
        let writer = self.writer();
        if trace
            .filling
            .get(&writer)
            .is_some_and(|buffer| buffer.used + bytes <= buffer.bytes)
        {
            return Some(trace);
        }
        let full = trace.filling.remove(&writer);
        trace.full.extend(full);
        let waits =
            self.does(Misbehaviour::ReversesBuffers) || self.does(Misbehaviour::KeepsBuffers);
        let full = if waits {
            Vec::new()
        } else {
            mem::take(&mut trace.full)
        };
        drop(trace);
        full.into_iter()
            .for_each(|buffer| self.complete(buffer, true));
        let (mut address, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the tool's callback, with places that it can write.
        unsafe { request(self.said_number(), &mut address, &mut size) };
        if self.script.uses_bytes > 0 {
            size = size.min(self.script.uses_bytes);
        }
        let has_room = !address.is_null() && size >= bytes;
        if !has_room && self.does(Misbehaviour::BigRecords) {
            die("no room for a record");
        }
        let mut trace = self.trace();
        if has_room {
            let buffer = Buffer {
                address: address as usize,
                bytes: size,
                used: 0,
                delivered: 0,
            };
            trace.filling.insert(writer, buffer);
        }
        Some(trace)
    }

    /// Delivers what is in the buffer and was not delivered yet; `owned`: the buffer is the tool's again.
    fn complete(&self, buffer: Buffer, owned: bool) {
        let Some((_, complete)) = self.trace().callbacks else {
            return;
        };
        let mut calls = Vec::new();
        ENDS.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(buffer.address, buffer.address + buffer.used);
        let in_parts =
            self.does(Misbehaviour::CompletesInParts) || self.does(Misbehaviour::BufferPerThread);
        let begin = (buffer.address + buffer.delivered) as u64;
        let mut bytes = buffer.used - buffer.delivered;
        if self.does(Misbehaviour::TooManyBytes) {
            bytes += buffer.bytes + (1 << 20);
        }
        if bytes > 0 && buffer.used > buffer.delivered {
            let is_last = owned && !in_parts;
            calls.push((buffer.address, bytes, begin, is_last));
        }
        if owned && in_parts {
            calls.push((buffer.address, 0, 0, true));
        }
        if owned && self.does(Misbehaviour::CompletesTwice) {
            calls.push((buffer.address, 0, 0, true));
        }
        if owned && self.does(Misbehaviour::CompletesForeignBuffers) {
            calls.push((calls.as_ptr() as usize, 0, 0, true));
        }
        let number = self.said_number();
        let deliver = move || {
            for (address, bytes, begin, owned) in calls {
                let address = address as *mut ompt_buffer_t;
                // SAFETY: the tool's callback, with a buffer of its own, or one that this device misbehaves with.
                unsafe { complete(number, address, bytes, begin, owned.into()) };
            }
        };
        if self.script.foreign_threads {
            thread::spawn(deliver).join().expect("no delivery panics");
        } else {
            deliver();
        }
    }

    /// Has all delivered that there is; `stop`: and gives all buffers back.
    fn flush(&'static self, stop: bool) {
        if stop || !self.does(Misbehaviour::FlushReturnsEarly) {
            return self.flush_now(stop);
        }
        self.wait_for_flushes();
        let flush = thread::spawn(|| {
            thread::sleep(FLUSH_TAKES);
            self.flush_now(false);
        });
        self.trace().flushes.push(flush);
    }

    fn wait_for_flushes(&self) {
        let flushes = mem::take(&mut self.trace().flushes);
        for flush in flushes {
            flush.join().expect("no delivery panics");
        }
    }

    fn flush_now(&self, stop: bool) {
        let mut trace = self.trace();
        let keeps = self.does(Misbehaviour::KeepsBuffers) && !stop;
        if keeps {
            return;
        }
        let mut buffers = mem::take(&mut trace.full);
        let mut partly = Vec::new();
        if self.does(Misbehaviour::BufferPerThread) {
            for buffer in trace.filling.values_mut() {
                partly.push(*buffer);
                buffer.delivered = buffer.used;
            }
        } else {
            buffers.extend(mem::take(&mut trace.filling).into_values());
        }
        drop(trace);
        partly
            .into_iter()
            .for_each(|buffer| self.complete(buffer, false));
        if self.does(Misbehaviour::ReversesBuffers) {
            buffers.reverse();
        }
        buffers
            .into_iter()
            .for_each(|buffer| self.complete(buffer, true));
    }

    /// Tracing stops.
    fn stop(&'static self) {
        if self.does(Misbehaviour::CompletesAfterStop) {
            let late = thread::spawn(|| {
                thread::sleep(Duration::from_millis(2));
                self.flush_now(true);
                self.trace().callbacks = None;
            });
            LATE.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(late);
            return;
        }
        if !self.does(Misbehaviour::StopDropsUndelivered) {
            self.flush_now(true);
        }
        self.trace().callbacks = None;
        self.wait_for_flushes();
    }

    /// Where the runtime has deleted what its entry points need.
    fn must_be_alive(&self, entry_point: &str) {
        if self.trace().is_finalized && self.does(Misbehaviour::EntryPointsDieAtFinalize) {
            die(&format!("{entry_point} after device_finalize"));
        }
    }

    fn ids(&self, operation: &Operation) -> (u64, u64) {
        let (host_op_id, target_id) = (operation.host_op_id, operation.target_id);
        match () {
            () if self.does(Misbehaviour::ReusesIds) => (1, target_id),
            () if self.does(Misbehaviour::SwapsIds) => (target_id, host_op_id),
            () => (host_op_id, target_id),
        }
    }

    fn times(&self, operation: &Operation, is_second: bool) -> (u64, u64) {
        let (begin, end) = (
            self.script.clock.at(operation.begin_ns),
            self.script.clock.at(operation.end_ns),
        );
        match () {
            () if self.does(Misbehaviour::SwapsTimes) => (end, begin),
            () if is_second && self.does(Misbehaviour::ZeroTimes) => (0, 0),
            () => (begin, end),
        }
    }

    fn ompt_record(&self, operation: &Operation, is_second: bool) -> ompt_record_ompt_t {
        let (host_op_id, target_id) = self.ids(operation);
        let (time, end_time) = self.times(operation, is_second);
        let host = DEVICES.get().map_or(0, Vec::len) as c_int;
        let (kind, record) = match operation.data_op {
            None => (
                ompt_callback_target_submit,
                ompt_any_record_ompt_t {
                    target_kernel: ompt_record_target_kernel_t {
                        host_op_id,
                        requested_num_teams: 4,
                        granted_num_teams: 2,
                        end_time,
                    },
                },
            ),
            Some(optype) => (
                ompt_callback_target_data_op,
                ompt_any_record_ompt_t {
                    target_data_op: ompt_record_target_data_op_t {
                        host_op_id,
                        optype: ompt_target_data_op_t(optype),
                        src_addr: 0x1000 as *mut c_void,
                        src_device_num: host,
                        dest_addr: 0x2000 as *mut c_void,
                        dest_device_num: self.number as c_int,
                        bytes: operation.bytes as usize,
                        end_time,
                        codeptr_ra: ptr::null(),
                    },
                },
            ),
        };
        let is_unknown = is_second && self.does(Misbehaviour::UnknownKinds);
        ompt_record_ompt_t {
            r#type: if is_unknown {
                ompt_callbacks_t(99)
            } else {
                kind
            },
            time,
            thread_id: 7,
            target_id,
            record,
        }
    }

    fn native_record(&self, operation: &Operation) -> NativeRecord {
        let (start_time, end_time) = self.times(operation, false);
        let name: &CStr = match operation.data_op {
            None => c"kernel",
            Some(_) => c"copy",
        };
        NativeRecord {
            host_op_id: self.ids(operation).0,
            summary: ompt_record_abstract_t {
                rclass: ompt_record_native_event,
                r#type: name.as_ptr(),
                start_time,
                end_time,
                hwid: 3,
            },
        }
    }
}

/// The device of a handle.
fn of_handle(device: *mut ompt_device_t) -> Option<&'static Running> {
    DEVICES.get()?.get((device as usize).checked_sub(1)?)
}

/// Whether any device does this. Entry points for records do not say which device the buffer belongs to.
fn with_misbehaviour(misbehaviour: Misbehaviour) -> bool {
    DEVICES
        .get()
        .into_iter()
        .flatten()
        .any(|device| device.does(misbehaviour))
}

/// Makes of these functions the lookups of devices.
macro_rules! entry_points {
    ($($name:literal $function:ident: $signature:ty,)*) => {
        unsafe extern "C" fn lookup<const DEVICE: usize>(name: *const c_char) -> Option<ompt_interface_fn_t> {
            // SAFETY: the specification demands a C string.
            let name = unsafe { CStr::from_ptr(name) };
            let script = &DEVICES.get()?.get(DEVICE)?.script;
            let is_missing = |missing: &String| name.to_bytes().strip_prefix(b"ompt_") == Some(missing.as_bytes());
            if script.missing.iter().any(is_missing) {
                return None;
            }
            $(if name == $name {
                let function: $signature = $function;
                // SAFETY: the tool casts it back to the type that belongs to the name.
                return Some(unsafe { mem::transmute::<*const c_void, ompt_interface_fn_t>(function as *const c_void) });
            })*
            None
        }
    };
}

entry_points! {
    c"ompt_get_device_num_procs" get_device_num_procs: ompt_get_device_num_procs_t,
    c"ompt_get_device_time" get_device_time: ompt_get_device_time_t,
    c"ompt_translate_time" translate_time: ompt_translate_time_t,
    c"ompt_set_trace_ompt" set_trace_ompt: ompt_set_trace_ompt_t,
    c"ompt_set_trace_native" set_trace_native: ompt_set_trace_native_t,
    c"ompt_get_buffer_limits" get_buffer_limits: ompt_get_buffer_limits_t,
    c"ompt_start_trace" start_trace: ompt_start_trace_t,
    c"ompt_pause_trace" pause_trace: ompt_pause_trace_t,
    c"ompt_flush_trace" flush_trace: ompt_flush_trace_t,
    c"ompt_stop_trace" stop_trace: ompt_stop_trace_t,
    c"ompt_advance_buffer_cursor" advance_buffer_cursor: ompt_advance_buffer_cursor_t,
    c"ompt_get_record_type" get_record_type: ompt_get_record_type_t,
    c"ompt_get_record_ompt" get_record_ompt: ompt_get_record_ompt_t,
    c"ompt_get_record_native" get_record_native: ompt_get_record_native_t,
    c"ompt_get_record_abstract" get_record_abstract: ompt_get_record_abstract_t,
}

/// The lookup of a device.
pub(super) fn lookup_of(device: u32) -> ompt_function_lookup_t {
    const LOOKUPS: [ompt_function_lookup_t; MAX_DEVICES] =
        [lookup::<0>, lookup::<1>, lookup::<2>, lookup::<3>];
    LOOKUPS[device as usize % MAX_DEVICES]
}

unsafe extern "C" fn get_device_num_procs(_: *mut ompt_device_t) -> c_int {
    64
}

unsafe extern "C" fn get_device_time(device: *mut ompt_device_t) -> ompt_device_time_t {
    of_handle(device).map_or(ompt_time_none, |device| {
        device.jitter();
        let time = device.script.clock.at(host_ns());
        device.jitter();
        time
    })
}

unsafe extern "C" fn translate_time(device: *mut ompt_device_t, time: ompt_device_time_t) -> f64 {
    let device = of_handle(device).filter(|device| !device.does(Misbehaviour::TranslatesToZero));
    device.map_or(0.0, |device| device.script.clock.host_ns(time) / 1e9)
}

unsafe extern "C" fn set_trace_ompt(
    device: *mut ompt_device_t,
    _: c_uint,
    kind: c_uint,
) -> ompt_set_result_t {
    match of_handle(device) {
        None => ompt_set_error,
        Some(device)
            if device.does(Misbehaviour::RefusesOmpt) || device.script.format == Format::Native =>
        {
            ompt_set_never
        }
        Some(device)
            if device.does(Misbehaviour::RefusesEmi) && kind >= ompt_callback_target_emi.0 =>
        {
            ompt_set_error
        }
        Some(device) => {
            let of_targets = [0, ompt_callback_target.0, ompt_callback_target_emi.0];
            device.trace().wants_targets |= of_targets.contains(&kind);
            ompt_set_always
        }
    }
}

unsafe extern "C" fn set_trace_native(
    device: *mut ompt_device_t,
    _: c_int,
    _: c_int,
) -> ompt_set_result_t {
    match of_handle(device) {
        None => ompt_set_error,
        Some(device)
            if device.does(Misbehaviour::RefusesNative) || device.script.format == Format::Ompt =>
        {
            ompt_set_never
        }
        Some(_) => ompt_set_always,
    }
}

unsafe extern "C" fn get_buffer_limits(_: *mut ompt_device_t, most: *mut c_int, bytes: *mut usize) {
    // SAFETY: the specification demands pointers that can be written.
    unsafe {
        *most = 8;
        *bytes = 0;
    }
}

unsafe extern "C" fn start_trace(
    device: *mut ompt_device_t,
    request: ompt_callback_buffer_request_t,
    complete: ompt_callback_buffer_complete_t,
) -> c_int {
    let device = of_handle(device).filter(|device| !device.does(Misbehaviour::RefusesStart));
    device.map_or(0, |device| {
        device.trace().callbacks = Some((request, complete));
        1
    })
}

unsafe extern "C" fn pause_trace(device: *mut ompt_device_t, begin_pause: c_int) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.trace().is_paused = begin_pause != 0;
        1
    })
}

unsafe extern "C" fn flush_trace(device: *mut ompt_device_t) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.must_be_alive("ompt_flush_trace");
        if !device.does(Misbehaviour::CompletesAfterStop) {
            device.flush(false);
        }
        1
    })
}

unsafe extern "C" fn stop_trace(device: *mut ompt_device_t) -> c_int {
    of_handle(device).map_or(0, |device| {
        device.must_be_alive("ompt_stop_trace");
        device.stop();
        1
    })
}

unsafe extern "C" fn advance_buffer_cursor(
    device: *mut ompt_device_t,
    buffer: *mut ompt_buffer_t,
    _: usize,
    current: ompt_buffer_cursor_t,
    next: *mut ompt_buffer_cursor_t,
) -> c_int {
    let Some(device) = of_handle(device) else {
        return 0;
    };
    device.must_be_alive("ompt_advance_buffer_cursor");
    if device.does(Misbehaviour::EndlessCursor) {
        return 1;
    }
    let after = current + device.record_bytes() as u64;
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_valid = ends
        .get(&(buffer as usize))
        .is_some_and(|end| after < *end as u64);
    if is_valid {
        // SAFETY: the specification demands a pointer that can be written.
        unsafe { *next = after };
    }
    is_valid.into()
}

/// Whether it is the second, fourth, ... record of its buffer.
fn is_second(buffer: *mut ompt_buffer_t, current: ompt_buffer_cursor_t, bytes: usize) -> bool {
    (current as usize).wrapping_sub(buffer as usize) / bytes % 2 == 1
}

unsafe extern "C" fn get_record_type(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
) -> ompt_record_t {
    let formats = DEVICES
        .get()
        .into_iter()
        .flatten()
        .map(|device| device.script.format);
    let is_native = formats.clone().any(|format| format == Format::Native);
    let bytes = size_of::<ompt_record_ompt_t>();
    if with_misbehaviour(Misbehaviour::InvalidRecords) && is_second(buffer, current, bytes) {
        return ompt_record_invalid;
    }
    if is_native {
        ompt_record_native
    } else {
        ompt_record_ompt
    }
}

unsafe extern "C" fn get_record_ompt(
    buffer: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
) -> *mut ompt_record_ompt_t {
    let is_second = is_second(buffer, current, size_of::<ompt_record_ompt_t>());
    match () {
        () if is_second && with_misbehaviour(Misbehaviour::NullRecords) => ptr::null_mut(),
        () if is_second && with_misbehaviour(Misbehaviour::BadPointers) => {
            0x10 as *mut ompt_record_ompt_t
        }
        () => current as *mut ompt_record_ompt_t,
    }
}

unsafe extern "C" fn get_record_native(
    _: *mut ompt_buffer_t,
    current: ompt_buffer_cursor_t,
    host_op_id: *mut ompt_id_t,
) -> *mut c_void {
    let record = current as *mut NativeRecord;
    // SAFETY: the cursor is a record's address, and the specification demands a pointer that can be written.
    unsafe { *host_op_id = (*record).host_op_id };
    record.cast()
}

unsafe extern "C" fn get_record_abstract(
    native_record: *mut c_void,
) -> *mut ompt_record_abstract_t {
    // SAFETY: a record that `get_record_native` gave.
    unsafe { &raw mut (*native_record.cast::<NativeRecord>()).summary }
}
