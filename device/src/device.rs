//! One device: its tracing set up with whatever entry points there are, its clock, its records.

use std::ffi::c_int;
use std::ops::Range;

use ompt_sys::{self as ompt, *};

use crate::entry_points::EntryPoints;
use crate::problem::Problem;
use crate::provider;
use crate::record::{Record, native_record, ompt_record};

/// The kinds of records that are asked for, each under both of its numbers: a runtime may know one of them only.
///
/// Not all at once: those of target regions have no times in AMD's runtime, which writes them on a thread without a task
/// through a null pointer; and the host's callbacks have their times.
const KINDS: &[[ompt_callbacks_t; 2]] = &[
    [
        ompt_callback_target_data_op_emi,
        ompt_callback_target_data_op,
    ],
    [ompt_callback_target_submit_emi, ompt_callback_target_submit],
];
/// What native records are asked for: everything.
const ALL_NATIVE: c_int = 0xff;
/// No record is shorter.
const MIN_RECORD_BYTES: usize = 8;

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
    /// What is missing or was refused.
    pub problems: Vec<String>,
}

/// A device that a runtime has initialized.
#[derive(Debug)]
pub struct Device {
    handle: *mut ompt_device_t,
    provider: &'static str,
    entry_points: EntryPoints,
    has_lookup: bool,
}

// SAFETY: the handle is only passed to entry points, which may be called on any thread (OpenMP 5.2, 19.6.2).
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// The device of a callback `device_initialize`.
    ///
    /// # Safety
    /// The arguments are those of the callback, which has not returned; the device is used until its `device_finalize`
    /// at most. As [`EntryPoints::bind`] too.
    pub unsafe fn new(
        handle: *mut ompt_device_t,
        lookup: Option<ompt_function_lookup_t>,
    ) -> Device {
        // SAFETY: by this function's contract.
        let (provider, entry_points) = unsafe { provider::bind(lookup) };
        Device {
            handle,
            provider,
            entry_points,
            has_lookup: lookup.is_some(),
        }
    }

    /// Who provides the entry points.
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// What it offers.
    pub fn entry_points(&self) -> &EntryPoints {
        &self.entry_points
    }

    /// Sets tracing of all kinds of records up, in the standard format if possible, and starts it.
    pub fn start(
        &self,
        request: ompt_callback_buffer_request_t,
        complete: ompt_callback_buffer_complete_t,
    ) -> Setup {
        let mut setup = Setup::default();
        if !self.has_lookup {
            setup.problems.push("the runtime passed no lookup".into());
            return setup;
        }
        let Some(start_trace) = self.can_trace(&mut setup) else {
            return setup;
        };
        let Some(format) = self.choose_format(&mut setup) else {
            return setup;
        };
        // SAFETY: an entry point of this device (`new`).
        if unsafe { start_trace(self.handle, request, complete) } == 0 {
            setup.problems.push("ompt_start_trace refused".into());
        } else {
            setup.format = Some(format);
        }
        setup
    }

    /// What starts tracing, where nothing is missing without which there are no records.
    fn can_trace(&self, setup: &mut Setup) -> Option<ompt_start_trace_t> {
        let needed = [
            ("ompt_start_trace", self.entry_points.start_trace.is_some()),
            (
                "ompt_advance_buffer_cursor",
                self.entry_points.advance_buffer_cursor.is_some(),
            ),
            (
                "ompt_get_record_ompt or _native",
                self.gives_ompt() || self.gives_native(),
            ),
        ];
        let missing = needed.iter().filter(|(_, is_there)| !is_there);
        setup
            .problems
            .extend(missing.map(|(name, _)| format!("{name} is missing")));
        self.entry_points
            .start_trace
            .filter(|_| setup.problems.is_empty())
    }

    fn gives_ompt(&self) -> bool {
        self.entry_points.get_record_ompt.is_some()
    }

    fn gives_native(&self) -> bool {
        self.entry_points.get_record_native.is_some()
            && self.entry_points.get_record_abstract.is_some()
    }

    /// The first format that the device grants.
    fn choose_format(&self, setup: &mut Setup) -> Option<Format> {
        if self.gives_ompt() && self.grants_ompt(setup) {
            return Some(Format::Ompt);
        }
        if self.gives_native() && self.grants_native(setup) {
            return Some(Format::Native);
        }
        None
    }

    /// Asks for standard records, kind by kind. A device without the entry point is taken to trace what it can.
    fn grants_ompt(&self, setup: &mut Setup) -> bool {
        const ENABLE: u32 = 1;
        let Some(set_trace_ompt) = self.entry_points.set_trace_ompt else {
            setup.problems.push("ompt_set_trace_ompt is missing".into());
            return true;
        };
        // SAFETY: an entry point of this device (`new`).
        let ask = |kind: ompt_callbacks_t| unsafe { set_trace_ompt(self.handle, ENABLE, kind.0) };
        let mut refused = Vec::new();
        for numbers in KINDS {
            let answers = numbers.map(ask);
            if answers.iter().all(|answer| *answer < ompt_set_sometimes) {
                let name = numbers[1].name().unwrap_or_default();
                let name = name.trim_start_matches("ompt_callback_");
                refused.push(format!("{} for {name}", answer(answers[1])));
            }
        }
        if !refused.is_empty() {
            setup.problems.push(format!(
                "ompt_set_trace_ompt answered {}",
                refused.join(", ")
            ));
        }
        refused.len() < KINDS.len()
    }

    fn grants_native(&self, setup: &mut Setup) -> bool {
        const ENABLE: c_int = 1;
        let Some(set_trace_native) = self.entry_points.set_trace_native else {
            setup
                .problems
                .push("ompt_set_trace_native is missing".into());
            return true;
        };
        // SAFETY: an entry point of this device (`new`).
        let result = unsafe { set_trace_native(self.handle, ENABLE, ALL_NATIVE) };
        if result < ompt_set_sometimes {
            setup
                .problems
                .push(format!("ompt_set_trace_native answered {}", answer(result)));
        }
        result >= ompt_set_sometimes
    }

    /// Pauses tracing, or resumes it, where the device can.
    pub fn pause(&self, pause: bool) {
        if let Some(pause_trace) = self.entry_points.pause_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { pause_trace(self.handle, pause.into()) };
        }
    }

    /// Has all pending records delivered, where the device can.
    pub fn flush(&self) {
        if let Some(flush_trace) = self.entry_points.flush_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { flush_trace(self.handle) };
        }
    }

    /// Flushes and stops tracing, where the device can.
    pub fn stop(&self) {
        if let Some(stop_trace) = self.entry_points.stop_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { stop_trace(self.handle) };
        }
    }

    /// The number of its processors.
    pub fn num_procs(&self) -> Option<c_int> {
        // SAFETY: an entry point of this device (`new`).
        self.entry_points
            .get_device_num_procs
            .map(|f| unsafe { f(self.handle) })
    }

    /// Its clock.
    pub fn time(&self) -> Option<ompt_device_time_t> {
        // SAFETY: an entry point of this device (`new`).
        self.entry_points
            .get_device_time
            .map(|f| unsafe { f(self.handle) })
    }

    /// A time of its clock in seconds as `omp_get_wtime` counts them; `None` where the runtime does not say, which some
    /// do by the answer 0.
    pub fn translate(&self, time: ompt_device_time_t) -> Option<f64> {
        // SAFETY: an entry point of this device (`new`).
        let seconds = self
            .entry_points
            .translate_time
            .map(|f| unsafe { f(self.handle, time) });
        seconds.filter(|seconds| seconds.is_finite() && *seconds != 0.0)
    }

    /// Calls `each` with every record of a completed buffer, and `problem` with every problem. `bytes` are those that the
    /// runtime says are valid, `readable` is where the buffer lies, empty where that is not known. The number of records.
    ///
    /// # Safety
    /// Buffer, bytes and cursor are those of a callback `buffer_complete` that has not returned.
    pub unsafe fn records(
        &self,
        buffer: *mut ompt_buffer_t,
        bytes: usize,
        begin: ompt_buffer_cursor_t,
        readable: &Range<usize>,
        mut each: impl FnMut(Record),
        mut problem: impl FnMut(Problem),
    ) -> u64 {
        let Some(advance) = self.entry_points.advance_buffer_cursor else {
            return 0;
        };
        let most = (bytes / MIN_RECORD_BYTES) as u64;
        let (mut cursor, mut seen, mut taken) = (begin, 0, 0);
        while seen < most {
            // SAFETY: by this function's contract, and the cursor is the first or one that `advance` gave.
            match unsafe { self.record(buffer, cursor, readable) } {
                Ok(record) => {
                    taken += 1;
                    each(record);
                }
                Err(found) => problem(found),
            }
            seen += 1;
            let mut next = cursor;
            // SAFETY: an entry point of this device (`new`), with what the runtime gave for it.
            if unsafe { advance(self.handle, buffer, bytes, cursor, &mut next) } == 0 {
                return taken;
            }
            if next == cursor {
                break;
            }
            cursor = next;
        }
        if seen > 0 {
            problem(Problem::EndlessBuffer);
        }
        taken
    }

    /// The record at a cursor.
    ///
    /// # Safety
    /// The runtime gave buffer and cursor for this device.
    unsafe fn record(
        &self,
        buffer: *mut ompt_buffer_t,
        cursor: ompt_buffer_cursor_t,
        readable: &Range<usize>,
    ) -> Result<Record, Problem> {
        let entry_points = &self.entry_points;
        let otherwise = if self.gives_ompt() {
            ompt::ompt_record_ompt
        } else {
            ompt::ompt_record_native
        };
        // SAFETY: by this function's contract, for all calls here.
        let kind = entry_points
            .get_record_type
            .map_or(otherwise, |f| unsafe { f(buffer, cursor) });
        match kind {
            ompt::ompt_record_ompt => {
                let get = entry_points.get_record_ompt.ok_or(Problem::InvalidRecord)?;
                // SAFETY: as above.
                let record = unsafe { get(buffer, cursor) };
                ompt_record(record as usize, readable).map(Record::Ompt)
            }
            ompt::ompt_record_native => {
                let get = entry_points
                    .get_record_native
                    .ok_or(Problem::InvalidRecord)?;
                let describe = entry_points
                    .get_record_abstract
                    .ok_or(Problem::InvalidRecord)?;
                let mut host_op_id = ompt_id_none;
                // SAFETY: as above.
                let record = unsafe { get(buffer, cursor, &mut host_op_id) };
                if record.is_null() {
                    return Err(Problem::NullRecord);
                }
                // SAFETY: a native record that the runtime gave.
                let record = unsafe { describe(record) };
                native_record(record as usize, host_op_id).map(Record::Native)
            }
            _ => Err(Problem::InvalidRecord),
        }
    }
}

/// The answer to a request, as the specification spells it.
fn answer(result: ompt_set_result_t) -> String {
    result
        .name()
        .map_or_else(|| result.0.to_string(), str::to_owned)
}
