//! A device of a session: its state, its stream and its clock.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use omptrace_device::{BufferSource, Counts, DeviceTracer, Found, Setup};
use omptrace_trace_format::event::{DeviceClock, DeviceTranslation, WideRow};
use omptrace_trace_format::field::{Seconds, Ticks};
use omptrace_trace_format::metadata;

use crate::os::threads::lock::Mutex;
use crate::os::time::clock;
use crate::os::{signals, system};
use crate::recorder::recorder;
use crate::recorder::recorder::{Mode, Recorder};
use crate::recorder::thread_stream::Kind;
use crate::session;
use crate::session::Session;
use crate::session::cold_path;

/// Number of readings of both clocks, of which the one with the smallest uncertainty is used.
const CLOCK_READINGS: u32 = 5;
/// Minimum time between clock readings at completions. The map of a device's clock uses one reading per 50 ms.
const CLOCK_DISTANCE: Duration = Duration::from_millis(10);

/// The state of a device's tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Not traced, or no longer.
    Off,
    /// The device delivers records.
    Tracing,
    /// Stopped until this process has forked.
    StoppedForFork,
    /// The runtime has finalized the device.
    Gone,
}

/// A device of the session.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) device_num: i32,
    r#type: String,
    pub(super) tracer: Box<dyn DeviceTracer>,
    /// Why this device has no other tracer.
    others: Vec<String>,
    num_procs: i32,
    setup: Mutex<Setup>,
    /// A [`State`].
    state: AtomicU8,
    pub(super) counts: Counts,
    /// The time of the last clock reading, `CLOCK_MONOTONIC` in nanoseconds.
    clock_read_ns: AtomicU64,
    /// The device's stream, once there is an event.
    stream: Mutex<Option<StreamOfDevice>>,
}

/// A recorder that belongs to no thread; used by the thread that holds its lock.
#[derive(Debug)]
struct StreamOfDevice(&'static Recorder);

// SAFETY: the recorder is used only under the lock of `Traced::stream`, and is no thread's own.
unsafe impl Send for StreamOfDevice {}

impl Traced {
    /// A device with this number, which the runtime calls `type`.
    pub(super) fn new(device_num: i32, r#type: String, found: Found) -> Traced {
        let Found { tracer, others } = found;
        Traced {
            others,
            device_num,
            r#type,
            num_procs: tracer.num_procs().unwrap_or(0),
            tracer,
            setup: Mutex::default(),
            state: AtomicU8::new(State::Off as u8),
            counts: Counts::default(),
            clock_read_ns: AtomicU64::new(0),
            stream: Mutex::default(),
        }
    }

    fn is(&self, state: State) -> bool {
        // Relaxed: entry points may be called a moment too late or too early.
        self.state.load(Ordering::Relaxed) == state as u8
    }

    pub(super) fn is_tracing(&self) -> bool {
        self.is(State::Tracing)
    }

    /// Changes the state; false if the state was not `from`.
    pub(super) fn change(&self, from: State, to: State) -> bool {
        // Relaxed: see `is`.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.state.compare_exchange(from as u8, to as u8, success, failure).is_ok()
    }

    pub(super) fn describe(&self) -> metadata::Device {
        let setup = self.setup.lock().clone();
        let offers = self.tracer.offers().into_iter();
        metadata::Device {
            r#type: self.r#type.clone(),
            provider: self.tracer.provider().into(),
            entry_points: offers.map(String::from).collect(),
            num_procs: self.num_procs,
            records: setup.format.map_or(String::new(), |format| format.name().into()),
            problems: setup.problems,
            counts: self.counts.describe(),
        }
    }

    /// Starts tracing, as far as the device supports it, with buffers from `source`.
    pub(super) fn start(&self, session: &'static Session, source: &'static dyn BufferSource) {
        // Threads that the tracer creates must not receive the program's signals.
        let start = || self.tracer.start(source);
        let mut setup = signals::without_signals(start);
        setup.problems.extend_from_slice(&self.others);
        let traces = setup.format.is_some();
        *self.setup.lock() = setup;
        if traces && self.change(State::Off, State::Tracing) {
            self.read_clock(session);
            if Mode::current() == Mode::Pause {
                self.tracer.pause(true);
            }
        }
    }

    /// Starts tracing again if it was stopped for a fork.
    pub(super) fn start_after_fork(&self, session: &'static Session, source: &'static dyn BufferSource) {
        if self.change(State::StoppedForFork, State::Off) {
            self.start(session, source);
        }
    }

    /// Pauses or resumes recording. A device that cannot pause remains traced, because stopping would lose the records
    /// of operations in progress; readers drop its records from the pause.
    pub(super) fn pause(&self, pause: bool) {
        if self.is_tracing() {
            self.tracer.pause(pause);
        }
    }

    /// Writes all records that the device has delivered so far to the file.
    pub(super) fn flush(&self, session: &'static Session) {
        if let Some(StreamOfDevice(recorder)) = *self.stream.lock() {
            cold_path::on_stream(recorder, || session.flush(recorder));
        }
    }

    /// The device is finalized: reads its clock for the last time; nothing else may be called.
    pub(super) fn finalize(&self, session: &'static Session) {
        if self.change(State::Tracing, State::Gone) {
            self.tracer.finalize();
            self.read_only_clock(session);
        }
        // Relaxed: see `is`.
        self.state.store(State::Gone as u8, Ordering::Relaxed);
    }

    /// Ends the stream of a finalized device.
    pub(super) fn leave(&self, session: &'static Session) {
        if !self.is(State::Gone) {
            return;
        }
        if let Some(StreamOfDevice(recorder)) = self.stream.lock().take() {
            cold_path::leave_stream(session, recorder);
        }
    }

    /// Reads the clocks unless they were read recently, because completions may be frequent. `newest` is the newest
    /// time in the completion, or 0.
    pub(super) fn read_clock_again(&self, session: &'static Session, newest: u64) {
        // Relaxed: one reading more or less does not matter.
        let last = Duration::from_nanos(self.clock_read_ns.load(Ordering::Relaxed));
        let now = Duration::from_nanos(system::clock_ns(libc::CLOCK_MONOTONIC));
        if !self.is_tracing() || now.saturating_sub(last) < CLOCK_DISTANCE {
            return;
        }
        if !self.read_clock(session) && newest != 0 {
            // The device's clock cannot be read, only translated.
            self.translate(session, newest);
            // Relaxed: as above.
            self.clock_read_ns.store(now.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Records a reading of both clocks, and the runtime's translation of the device's time; false if the clock cannot
    /// be read.
    pub(super) fn read_clock(&self, session: &'static Session) -> bool {
        let device_time = self.read_only_clock(session);
        if let Some(device_time) = device_time {
            self.translate(session, device_time);
        }
        device_time.is_some()
    }

    /// Records a reading of both clocks; returns the device's time.
    fn read_only_clock(&self, session: &'static Session) -> Option<u64> {
        let reading = || {
            let before = clock::ticks();
            let device_time = self.tracer.time()?;
            Some((before, device_time, clock::ticks()))
        };
        let readings = (0..CLOCK_READINGS).map_while(|_| reading());
        let (before, device_time, after) =
            readings.min_by_key(|(before, _, after)| after.wrapping_sub(*before))?;
        // Relaxed: see `read_clock_again`.
        self.clock_read_ns.store(system::clock_ns(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
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

    /// Records the runtime's translation of a time on the device's clock.
    fn translate(&self, session: &'static Session, device_time: u64) {
        if let Some(seconds) = self.tracer.translate(device_time) {
            let translation = DeviceTranslation {
                device_num: self.device_num,
                device_time,
                seconds: Seconds::new(seconds),
            };
            self.record(session, |put| put(&translation));
        }
    }

    /// Whether the stream is free within `patience`: an interrupted thread may hold its lock.
    pub(super) fn can_record_within(&self, patience: Duration) -> bool {
        self.stream.try_lock_for(patience).is_some()
    }

    /// Calls `f` to put events on the device's stream.
    pub(super) fn record(&self, session: &'static Session, f: impl FnOnce(&mut dyn FnMut(&dyn WideRow))) {
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
                recorder.stream.kind.set(Kind::Device(self.device_num));
                empty.insert(StreamOfDevice(recorder))
            }
        };
        cold_path::put_on(session, stream.0, f);
    }
}
