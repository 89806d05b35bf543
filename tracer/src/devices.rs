//! Devices of a session: tracing from `device_initialize` to `device_finalize`, records into one stream per device.
//!
//! ```text
//! device_initialize: bind, clock, start          host callbacks, on threads of the program
//! request, complete: a buffer; its records       on any thread, at any time, several at once
//! device_finalize: clock                         the runtime has delivered all, and stopped (OpenMP 5.2, 19.5.2.20)
//! the program ends tracing, the tool's finalize: flush twice, stop, clock
//! fork: flush twice, stop before it; start again in the parent
//! ```
//!
//! A completion may come out of a call of ours (flush, stop), so no lock is held during calls into the runtime.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ompt_sys::{ompt_buffer_cursor_t, ompt_buffer_t, ompt_device_t, ompt_function_lookup_t};
use omptrace_device::{Buffers, Counts, Device, Lent, Problem, Record, Setup, memory};
use omptrace_trace_format::event::{
    DeviceClock, DeviceImage, DeviceNativeRecord, DeviceRecord, DeviceTranslation, WideRow,
};
use omptrace_trace_format::field::{Address, Bytes, Seconds, Text, Ticks};
use omptrace_trace_format::metadata::{self, Metadata};

use crate::hot::guard::guarded;
use crate::hot::recorder::{self, Mode, Recorder};
use crate::hot::slow_path;
use crate::os::clock;
use crate::os::lock::Mutex;
use crate::os::system;
use crate::quirks::Quirk;
use crate::session::{self, Session};

/// The number of readings of both clocks of which the tightest counts.
const CLOCK_READINGS: u32 = 5;
/// Completions that follow each other faster read the clocks once.
const CLOCK_DISTANCE: Duration = Duration::from_millis(10);
/// Bytes of an image that are kept; what is larger is not code of a program.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// Bytes of an image in one event.
const IMAGE_PART: usize = 64 << 10;

/// The devices of a session.
#[derive(Debug)]
pub(crate) struct Devices {
    buffers: Buffers,
    by_number: Mutex<BTreeMap<i32, Arc<Traced>>>,
    /// Images that were kept: where they lay, and their length.
    images: Mutex<Vec<(u64, u64)>>,
    accepts_no_buffer: AtomicBool,
    /// A device took more memory than it shall have.
    shall_stop: AtomicBool,
}

/// A device of the session.
#[derive(Debug)]
struct Traced {
    device_num: i32,
    r#type: String,
    device: Device,
    num_procs: i32,
    setup: Mutex<Setup>,
    is_tracing: AtomicBool,
    /// It was tracing when this process began to fork.
    stopped_for_fork: AtomicBool,
    counts: Counts,
    /// When the clocks were read last, `CLOCK_MONOTONIC`.
    clock_read_ns: AtomicU64,
    /// Its stream, from the first event on.
    stream: Mutex<Option<StreamOfDevice>>,
}

/// A recorder that no thread has: whoever holds its lock uses it.
#[derive(Debug)]
struct StreamOfDevice(&'static Recorder);

// SAFETY: the recorder is used under the lock of `Traced::stream` only, and no thread has it as its own.
unsafe impl Send for StreamOfDevice {}

impl Devices {
    /// No devices yet; their buffers will have this many bytes each.
    pub(crate) fn new(buffer_bytes: usize) -> Devices {
        Devices {
            buffers: Buffers::new(buffer_bytes),
            by_number: Mutex::default(),
            images: Mutex::default(),
            accepts_no_buffer: AtomicBool::new(false),
            shall_stop: AtomicBool::new(false),
        }
    }

    /// The runtime calls itself so.
    pub(crate) fn of_runtime(&self, version: &str) {
        let accepts = Quirk::AcceptsNoBuffer.is_of(version);
        // Relaxed: stored before any device is traced.
        self.accepts_no_buffer.store(accepts, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<Arc<Traced>> {
        self.by_number.lock().values().cloned().collect()
    }

    /// The same for a thread that may have been interrupted while it has the lock: none where it does not get it in time.
    fn all_within(&self, patience: Duration) -> Vec<Arc<Traced>> {
        let devices = self.by_number.try_lock_for(patience);
        devices.map_or(Vec::new(), |devices| devices.values().cloned().collect())
    }

    /// The device that a runtime means by `device_num`: old ones of AMD say 0 whichever it is.
    fn meant_by(&self, device_num: i32) -> Option<Arc<Traced>> {
        let devices = self.by_number.lock();
        let any = || {
            devices
                .values()
                .find(|traced| traced.is_tracing())
                .or(devices.values().next())
        };
        devices.get(&device_num).or_else(any).cloned()
    }

    /// Writes what is known of all devices.
    fn tell(&self, session: &Session) {
        let devices = self.all();
        if devices.is_empty() {
            return;
        }
        let metadata = Metadata {
            devices: devices
                .iter()
                .map(|traced| (traced.device_num, traced.describe()))
                .collect(),
            ..Metadata::default()
        };
        session.write_metadata(&metadata);
    }
}

impl Traced {
    fn is_tracing(&self) -> bool {
        // Relaxed: entry points may be called a moment too late or too early.
        self.is_tracing.load(Ordering::Relaxed)
    }

    fn describe(&self) -> metadata::Device {
        let setup = self.setup.lock().clone();
        metadata::Device {
            r#type: self.r#type.clone(),
            provider: self.device.provider().into(),
            entry_points: self
                .device
                .entry_points()
                .names()
                .into_iter()
                .map(String::from)
                .collect(),
            num_procs: self.num_procs,
            records: setup
                .format
                .map_or(String::new(), |format| format.name().into()),
            problems: setup.problems,
            counts: self.counts.describe(),
        }
    }

    /// Ends tracing; false where it had ended.
    fn stop(&self, session: &'static Session) -> bool {
        // Relaxed: see `is_tracing`.
        let was_tracing = self.is_tracing.swap(false, Ordering::Relaxed);
        if was_tracing {
            // AMD's runtime returns from a flush before the last records are delivered, and drops them when tracing stops. A
            // second flush returns when the first is through.
            self.device.flush();
            self.device.flush();
            self.device.stop();
            self.read_clock(session);
        }
        was_tracing
    }

    /// Starts tracing, as far as the device offers that.
    fn start(&self, session: &'static Session) {
        let setup = self.device.start(request, complete);
        // Relaxed: see `is_tracing`.
        self.is_tracing
            .store(setup.format.is_some(), Ordering::Relaxed);
        if setup.format.is_some() {
            self.read_clock(session);
            if Mode::current() == Mode::Pause {
                self.device.pause(true);
            }
        }
        *self.setup.lock() = setup;
    }

    /// As [`Traced::read_clock`], not too often: a buffer may hold a single record.
    fn read_clock_again(&self, session: &'static Session) {
        let last = Duration::from_nanos(self.clock_read_ns.load(Ordering::Relaxed));
        let now = Duration::from_nanos(system::clock_ns(libc::CLOCK_MONOTONIC));
        if now.saturating_sub(last) >= CLOCK_DISTANCE {
            self.read_clock(session);
        }
    }

    /// Records how far device and host have counted, and what the runtime makes of that.
    fn read_clock(&self, session: &'static Session) {
        if let Some(device_time) = self.read_only_clock(session)
            && let Some(translation) = self.translation(device_time)
        {
            self.record(session, |put| put(&translation));
        }
    }

    /// Records how far device and host have counted; gives the device's time.
    fn read_only_clock(&self, session: &'static Session) -> Option<u64> {
        let reading = || {
            let before = clock::ticks();
            let device_time = self.device.time()?;
            Some((before, device_time, clock::ticks()))
        };
        let readings = (0..CLOCK_READINGS).map_while(|_| reading());
        let (before, device_time, after) =
            readings.min_by_key(|(before, _, after)| after.wrapping_sub(*before))?;
        // Relaxed: one reading more or less does not matter.
        self.clock_read_ns
            .store(system::clock_ns(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
        self.record(session, |put| {
            put(&DeviceClock {
                device_num: self.device_num,
                before: Ticks(before),
                device_time,
                after: Ticks(after),
            });
        });
        Some(device_time)
    }

    /// What the runtime makes of a time on the device's clock.
    fn translation(&self, device_time: u64) -> Option<DeviceTranslation> {
        let seconds = self.device.translate(device_time)?;
        Some(DeviceTranslation {
            device_num: self.device_num,
            device_time,
            seconds: Seconds::new(seconds),
        })
    }

    /// Lets `f` put events on the device's stream.
    fn record(&self, session: &'static Session, f: impl FnOnce(&mut dyn FnMut(&dyn WideRow))) {
        let mut stream = self.stream.lock();
        let stream = match &mut *stream {
            Some(stream) => stream,
            empty => {
                let Some(recorder) = recorder::take() else {
                    return;
                };
                if !recorder.begin_stream(session::next_stream()) {
                    return recorder.give_back();
                }
                recorder.stream.is_device.set(true);
                recorder.stream.device_num.set(self.device_num);
                empty.insert(StreamOfDevice(recorder))
            }
        };
        slow_path::put_on(session, stream.0, f);
    }

    /// Ends the stream.
    fn leave(&self, session: &'static Session) {
        if let Some(StreamOfDevice(recorder)) = self.stream.lock().take() {
            slow_path::leave_stream(session, recorder);
        }
    }
}

/// Pauses tracing on all devices, or resumes it.
pub(crate) fn pause(pause: bool) {
    let devices = session::of_this_process().map_or(Vec::new(), |session| session.devices.all());
    for traced in devices.iter().filter(|traced| traced.is_tracing()) {
        traced.device.pause(pause);
    }
}

/// All that devices have recorded so far is delivered, and in the file.
pub(crate) fn flush() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session
        .devices
        .all()
        .iter()
        .filter(|traced| traced.is_tracing())
    {
        traced.device.flush();
        if let Some(StreamOfDevice(recorder)) = *traced.stream.lock() {
            slow_path::on_stream(recorder, || session.flush(recorder));
        }
    }
}

/// Ends tracing on all devices.
pub(crate) fn stop_all() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all() {
        traced.stop(session);
    }
    session.devices.tell(session);
}

/// Ends tracing where devices took more memory than they shall have. Called on threads of the program, in callbacks in
/// which the runtime holds no lock of a buffer.
pub(crate) fn stop_where_needed() {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let shall_stop = &session.devices.shall_stop;
    // Relaxed: who comes first does it. Read before it is written: the answer is mostly no.
    if shall_stop.load(Ordering::Relaxed) && shall_stop.swap(false, Ordering::Relaxed) {
        let devices = session.devices.all();
        for traced in devices.iter().filter(|traced| traced.is_tracing()) {
            traced.device.flush();
        }
        if session.devices.buffers.has_kept() {
            return;
        }
        for traced in devices {
            let problem = "tracing was stopped: no buffer was left";
            traced.setup.lock().problems.push(problem.into());
        }
        stop_all();
    }
}

/// A device is there: tracing starts as far as it offers that.
///
/// # Safety
/// The arguments are those of `ompt_callback_device_initialize`, which has not returned.
pub(crate) unsafe fn initialized(
    device_num: c_int,
    device_type: *const c_char,
    handle: *mut ompt_device_t,
    lookup: Option<ompt_function_lookup_t>,
) {
    const MAX_NAME: usize = 256;
    let Some(session) = session::of_this_process() else {
        return;
    };
    let device_type = memory::text(device_type, MAX_NAME).unwrap_or_default();
    // SAFETY: by this function's contract; `finalized` forgets the device.
    let device = unsafe { Device::new(handle, lookup) };
    let traced = Arc::new(Traced {
        device_num,
        r#type: String::from_utf8_lossy(&device_type).into_owned(),
        num_procs: device.num_procs().unwrap_or(0),
        device,
        setup: Mutex::default(),
        is_tracing: AtomicBool::new(false),
        stopped_for_fork: AtomicBool::new(false),
        counts: Counts::default(),
        clock_read_ns: AtomicU64::new(0),
        stream: Mutex::default(),
    });
    session
        .devices
        .by_number
        .lock()
        .insert(device_num, traced.clone());
    traced.start(session);
    session.devices.tell(session);
}

/// This process will fork: AMD's runtime delivers records on a thread that the child does not have, and which it waits for
/// when it ends, if devices are traced. The calling thread may have been interrupted in the middle of anything.
pub(crate) fn before_fork(patience: Duration) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all_within(patience) {
        let is_free = traced.stream.try_lock_for(patience).is_some();
        if is_free && traced.stop(session) {
            // Relaxed: read by the same thread.
            traced.stopped_for_fork.store(true, Ordering::Relaxed);
        }
    }
}

/// This process has forked, and is the parent.
pub(crate) fn after_fork(patience: Duration) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    for traced in session.devices.all_within(patience) {
        // Relaxed: written by the same thread.
        if traced.stopped_for_fork.swap(false, Ordering::Relaxed) {
            traced.start(session);
        }
    }
}

/// A device goes. The runtime has delivered its records and stopped its tracing before; AMD's would crash in any entry point but
/// that of the clock.
pub(crate) fn finalized(device_num: c_int) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let Some(traced) = session.devices.by_number.lock().get(&device_num).cloned() else {
        return;
    };
    // Relaxed: see `is_tracing`.
    if traced.is_tracing.swap(false, Ordering::Relaxed) {
        traced.read_only_clock(session);
    }
    traced.leave(session);
    session.devices.tell(session);
}

/// Code was loaded onto a device: its image is kept where its bytes can be read.
pub(crate) fn loaded(device_num: c_int, module_id: u64, host_addr: u64, bytes: u64) {
    let Some(session) = session::of_this_process() else {
        return;
    };
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if host_addr == 0 || len == 0 || len > MAX_IMAGE_BYTES {
        return;
    }
    let mut images = session.devices.images.lock();
    if images.contains(&(host_addr, bytes)) {
        return;
    }
    images.push((host_addr, bytes));
    drop(images);
    let mut part = vec![0; IMAGE_PART.min(len)];
    for offset in (0..len).step_by(IMAGE_PART) {
        part.truncate(len - offset);
        if !memory::copy((host_addr as usize).wrapping_add(offset), &mut part) {
            return;
        }
        slow_path::wide(|_| DeviceImage {
            device_num,
            module_id,
            offset: offset as u64,
            bytes: Bytes((&part[..]).into()),
        });
    }
}

/// A device wants a buffer (OpenMP 5.2, 19.5.2.23).
unsafe extern "C" fn request(
    device_num: c_int,
    buffer: *mut *mut ompt_buffer_t,
    bytes: *mut usize,
) {
    let lent = guarded(|| lend(device_num)).flatten();
    if buffer.is_null() || bytes.is_null() {
        return;
    }
    // SAFETY: valid for writing during the callback.
    unsafe {
        *buffer = lent.map_or(std::ptr::null_mut(), |lent| {
            lent.address as *mut ompt_buffer_t
        });
        *bytes = lent.map_or(0, |lent| lent.bytes);
    }
}

fn lend(device_num: c_int) -> Option<Lent> {
    let session = session::of_this_process()?;
    let devices = &session.devices;
    // Relaxed: see `of_runtime`.
    let must = !devices.accepts_no_buffer.load(Ordering::Relaxed);
    let lent = devices.buffers.lend(must);
    let is_last = lent.is_none_or(|lent| lent.is_last);
    if is_last && must {
        // Relaxed: seen by the next callback of the host, or the one after.
        devices.shall_stop.store(true, Ordering::Relaxed);
    }
    let problem = match lent {
        _ if is_last => Problem::NoBuffer,
        Some(Lent { is_extra: true, .. }) => Problem::ExtraBuffer,
        _ => return lent,
    };
    if let Some(traced) = devices.meant_by(device_num)
        && traced.counts.add(problem)
    {
        devices.tell(session);
    }
    lent
}

/// A device gives a buffer back, or a part of what is in it (OpenMP 5.2, 19.5.2.24).
unsafe extern "C" fn complete(
    device_num: c_int,
    buffer: *mut ompt_buffer_t,
    bytes: usize,
    begin: ompt_buffer_cursor_t,
    buffer_owned: c_int,
) {
    guarded(|| {
        let Some(session) = session::of_this_process() else {
            return;
        };
        let Some(traced) = session.devices.meant_by(device_num) else {
            return;
        };
        // SAFETY: the arguments of this call.
        unsafe { take_records(session, &traced, device_num, buffer, bytes, begin) };
        if buffer_owned != 0 && !session.devices.buffers.take_back(buffer as usize) {
            note(session, &traced, Problem::UnknownBuffer);
        }
    });
}

/// Counts a problem; the trace reports the first of a kind at once, for the program may die.
fn note(session: &Session, traced: &Traced, problem: Problem) {
    if traced.counts.add(problem) {
        session.devices.tell(session);
    }
}

/// Copies the records of a completed buffer to the device's stream.
///
/// # Safety
/// The arguments are those of `ompt_callback_buffer_complete`, which has not returned.
unsafe fn take_records(
    session: &'static Session,
    traced: &Traced,
    device_num: c_int,
    buffer: *mut ompt_buffer_t,
    bytes: usize,
    begin: ompt_buffer_cursor_t,
) {
    if bytes == 0 || buffer.is_null() {
        return;
    }
    let readable = session.devices.buffers.range(buffer as usize);
    let mut problems = Vec::new();
    if readable.as_ref().is_some_and(|range| range.len() < bytes) {
        problems.push(Problem::TooManyBytes);
    }
    let valid = readable
        .as_ref()
        .map_or(bytes, |range| range.len().min(bytes));
    let readable = readable.unwrap_or(0..0);
    let (mut records, mut newest) = (0, 0);
    traced.record(session, |put| {
        let each = |record| {
            newest = match record {
                Record::Ompt(record) => {
                    put(&DeviceRecord {
                        device_num,
                        r#type: record.r#type,
                        time: record.time,
                        thread_id: Address(record.thread_id),
                        target_id: Address(record.target_id),
                        record: record.member().into(),
                    });
                    record.time
                }
                Record::Native(record) => {
                    let time = record.end_time;
                    put(&DeviceNativeRecord {
                        device_num,
                        host_op_id: Address(record.host_op_id),
                        rclass: record.rclass,
                        r#type: Text(record.r#type.map(Into::into)),
                        start_time: record.start_time,
                        end_time: record.end_time,
                        hwid: Address(record.hwid),
                    });
                    time
                }
            };
        };
        // SAFETY: by this function's contract.
        records = unsafe {
            traced
                .device
                .records(buffer, valid, begin, &readable, each, |problem| {
                    problems.push(problem)
                })
        };
    });
    traced.counts.completed(records);
    if traced.is_tracing() {
        traced.read_clock_again(session);
    }
    if newest != 0
        && let Some(translation) = traced.translation(newest)
    {
        traced.record(session, |put| put(&translation));
    }
    problems
        .into_iter()
        .for_each(|problem| note(session, traced, problem));
}
