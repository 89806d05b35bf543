//! Traces a device with the standard's own interface, using whatever entry points are available.

mod entry_points;
mod record;
mod scrap;

use std::ffi::c_int;
use std::ops::Range;
use std::sync::OnceLock;

use ompt_sys::{self as ompt, *};

use crate::announced::Announced;
use crate::problem::Problem;
use crate::record::Record;
use crate::tracer::{BufferSource, Completion, DeviceTracer, Format, Setup};
use entry_points::EntryPoints;
use record::{native_record, ompt_record};
use scrap::SCRAP;

/// The kinds of records to request, each under both of its numbers, because a runtime may know only one of them.
///
/// Records of target regions are not requested. AMD's runtime does not give them times, and on a thread without a task,
/// it writes them through a null pointer. The host's callbacks provide their times.
const KINDS: &[[ompt_callbacks_t; 2]] = &[
    [ompt_callback_target_data_op_emi, ompt_callback_target_data_op],
    [ompt_callback_target_submit_emi, ompt_callback_target_submit],
];
/// The native records to request: all.
const ALL_NATIVE: c_int = 0xff;
/// Minimum size of a record in bytes.
const MIN_RECORD_BYTES: usize = 8;

/// The receiver of completed buffers. A runtime passes no user data to its callbacks, so there is one per process.
static SOURCE: OnceLock<&'static dyn BufferSource> = OnceLock::new();

/// A device that a runtime has announced, traced by the runtime's own entry points.
#[derive(Debug)]
pub(crate) struct OmptTracer {
    handle: *mut ompt_device_t,
    entry_points: EntryPoints,
    has_lookup: bool,
}

// SAFETY: the handle is only passed to entry points, which may be called on any thread (OpenMP 5.2, 19.6.2).
unsafe impl Send for OmptTracer {}
// SAFETY: as above.
unsafe impl Sync for OmptTracer {}

impl OmptTracer {
    /// A tracer for the device of a `device_initialize` callback.
    ///
    /// # Safety
    /// Like [`crate::tracer_of`].
    pub(crate) unsafe fn new(announced: &Announced<'_>) -> OmptTracer {
        OmptTracer {
            handle: announced.handle,
            // SAFETY: by this function's contract.
            entry_points: unsafe { EntryPoints::bind(announced.lookup) },
            has_lookup: announced.lookup.is_some(),
        }
    }

    fn gives_ompt(&self) -> bool {
        self.entry_points.get_record_ompt.is_some()
    }

    fn gives_native(&self) -> bool {
        self.entry_points.get_record_native.is_some() && self.entry_points.get_record_abstract.is_some()
    }

    /// Chooses the first format that the device supports.
    fn choose_format(&self, setup: &mut Setup) -> Option<Format> {
        if self.gives_ompt() && self.grants_ompt(setup) {
            return Some(Format::Ompt);
        }
        if self.gives_native() && self.grants_native(setup) {
            return Some(Format::Native);
        }
        None
    }

    /// Requests standard records, kind by kind. A device without the entry point is assumed to trace what it can.
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
            setup.problems.push(format!("ompt_set_trace_ompt returned {}", refused.join(", ")));
        }
        refused.len() < KINDS.len()
    }

    fn grants_native(&self, setup: &mut Setup) -> bool {
        const ENABLE: c_int = 1;
        let Some(set_trace_native) = self.entry_points.set_trace_native else {
            setup.problems.push("ompt_set_trace_native is missing".into());
            return true;
        };
        // SAFETY: an entry point of this device (`new`).
        let result = unsafe { set_trace_native(self.handle, ENABLE, ALL_NATIVE) };
        if result < ompt_set_sometimes {
            setup.problems.push(format!("ompt_set_trace_native returned {}", answer(result)));
        }
        result >= ompt_set_sometimes
    }

    /// The record at a cursor position.
    ///
    /// # Safety
    /// The runtime passed the buffer and the cursor for this device.
    unsafe fn record(
        &self,
        buffer: *mut ompt_buffer_t,
        cursor: ompt_buffer_cursor_t,
        readable: &Range<usize>,
    ) -> Result<Record, Problem> {
        let entry_points = &self.entry_points;
        let otherwise = if self.gives_ompt() { ompt::ompt_record_ompt } else { ompt::ompt_record_native };
        // SAFETY: by this function's contract, for all calls here.
        let kind = entry_points.get_record_type.map_or(otherwise, |f| unsafe { f(buffer, cursor) });
        match kind {
            ompt::ompt_record_ompt => {
                let get = entry_points.get_record_ompt.ok_or(Problem::InvalidRecord)?;
                // SAFETY: as above.
                let record = unsafe { get(buffer, cursor) };
                ompt_record(record as usize, readable)
            }
            ompt::ompt_record_native => {
                let get = entry_points.get_record_native.ok_or(Problem::InvalidRecord)?;
                let describe = entry_points.get_record_abstract.ok_or(Problem::InvalidRecord)?;
                let mut host_op_id = ompt_id_none;
                // SAFETY: as above.
                let record = unsafe { get(buffer, cursor, &mut host_op_id) };
                if record.is_null() {
                    return Err(Problem::NullRecord);
                }
                // SAFETY: a native record from the runtime.
                let record = unsafe { describe(record) };
                native_record(record as usize, host_op_id)
            }
            _ => Err(Problem::InvalidRecord),
        }
    }
}

impl DeviceTracer for OmptTracer {
    fn provider(&self) -> &'static str {
        "runtime"
    }

    fn offers(&self) -> Vec<&'static str> {
        self.entry_points.names()
    }

    fn missing(&self) -> Vec<String> {
        if !self.has_lookup {
            return vec!["the runtime passed no function for looking up entry points".into()];
        }
        let needed = [
            ("ompt_start_trace", self.entry_points.start_trace.is_some()),
            ("ompt_advance_buffer_cursor", self.entry_points.advance_buffer_cursor.is_some()),
            ("ompt_get_record_ompt or _native", self.gives_ompt() || self.gives_native()),
        ];
        let missing = needed.iter().filter(|(_, is_there)| !is_there);
        missing.map(|(name, _)| format!("{name} is missing")).collect()
    }

    fn num_procs(&self) -> Option<i32> {
        let get = self.entry_points.get_device_num_procs?;
        // SAFETY: an entry point of this device (`new`).
        Some(unsafe { get(self.handle) })
    }

    fn start(&self, source: &'static dyn BufferSource) -> Setup {
        let mut setup = Setup { format: None, problems: self.missing() };
        let (true, Some(start_trace)) = (setup.problems.is_empty(), self.entry_points.start_trace) else {
            return setup;
        };
        let Some(format) = self.choose_format(&mut setup) else {
            return setup;
        };
        SOURCE.get_or_init(|| source);
        // SAFETY: an entry point of this device (`new`).
        if unsafe { start_trace(self.handle, request, complete) } == 0 {
            setup.problems.push("ompt_start_trace refused".into());
        } else {
            setup.format = Some(format);
            setup.problems.extend(no_flush_at_end());
        }
        setup
    }

    fn pause(&self, pause: bool) {
        if let Some(pause_trace) = self.entry_points.pause_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { pause_trace(self.handle, pause.into()) };
        }
    }

    /// AMD's runtime returns from a flush before the last records are delivered. Its single delivery thread handles the
    /// flushes of all devices one after the other.
    fn flush(&self) {
        if let Some(flush_trace) = self.entry_points.flush_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { flush_trace(self.handle) };
        }
    }

    fn stop(&self) {
        if let Some(stop_trace) = self.entry_points.stop_trace {
            // SAFETY: an entry point of this device (`new`).
            unsafe { stop_trace(self.handle) };
        }
    }

    fn time(&self) -> Option<u64> {
        let get = self.entry_points.get_device_time?;
        // SAFETY: an entry point of this device (`new`).
        Some(unsafe { get(self.handle) })
    }

    /// Some runtimes return 0 if they cannot translate.
    fn translate(&self, time: u64) -> Option<f64> {
        let translate = self.entry_points.translate_time?;
        // SAFETY: an entry point of this device (`new`).
        let seconds = unsafe { translate(self.handle, time) };
        (seconds.is_finite() && seconds != 0.0).then_some(seconds)
    }

    unsafe fn drain(
        &self,
        completion: &Completion,
        readable: &Range<usize>,
        each: &mut dyn FnMut(i32, Record),
        problem: &mut dyn FnMut(Problem, u64),
    ) -> u64 {
        let Some(advance) = self.entry_points.advance_buffer_cursor else {
            return 0;
        };
        if completion.bytes == 0 || completion.buffer == 0 {
            return 0;
        }
        let (buffer, bytes) = (completion.buffer as *mut ompt_buffer_t, completion.bytes);
        let most = (bytes / MIN_RECORD_BYTES) as u64;
        let (mut cursor, mut seen, mut taken) = (completion.begin, 0, 0);
        while seen < most {
            // SAFETY: by this function's contract; the cursor is the first one or was set by `advance`.
            match unsafe { self.record(buffer, cursor, readable) } {
                Ok(record) => {
                    taken += 1;
                    each(completion.device_num, record);
                }
                Err(found) => problem(found, 1),
            }
            seen += 1;
            let mut next = cursor;
            // SAFETY: an entry point of this device (`new`), with arguments that the runtime passed for it.
            if unsafe { advance(self.handle, buffer, bytes, cursor, &mut next) } == 0 {
                return taken;
            }
            if next == cursor {
                break;
            }
            cursor = next;
        }
        if seen > 0 {
            problem(Problem::EndlessBuffer, 1);
        }
        taken
    }
}

/// A problem text if the user has configured AMD's runtime so that it drops the records in buffers that are not full.
fn no_flush_at_end() -> Option<String> {
    const VARIABLE: &str = "LIBOMPTARGET_OMPT_FLUSH_ON_SHUTDOWN";
    let value = std::env::var(VARIABLE).ok()?;
    let is_off = ["false", "0", "no", "off"].iter().any(|off| value.eq_ignore_ascii_case(off));
    is_off.then(|| {
        format!(
            "{VARIABLE} is set to {value}, so the runtime may drop the records in partly filled buffers when the program ends; unset this variable"
        )
    })
}

/// A device requests a buffer (OpenMP 5.2, 19.5.2.23). It always gets one, even in a forked child and after the end of
/// a session, because AMD's runtime would otherwise write through a null pointer.
unsafe extern "C" fn request(device_num: c_int, buffer: *mut *mut ompt_buffer_t, bytes: *mut usize) {
    if buffer.is_null() || bytes.is_null() {
        return;
    }
    let lent = SOURCE.get().and_then(|source| source.lend(device_num));
    let (address, size) = lent.map_or_else(|| SCRAP.lend(), |lent| (lent.address, lent.bytes));
    // SAFETY: valid for writing during the callback.
    unsafe {
        *buffer = address as *mut ompt_buffer_t;
        *bytes = size;
    }
}

/// A device returns a buffer, or a part of its content (OpenMP 5.2, 19.5.2.24).
unsafe extern "C" fn complete(
    device_num: c_int,
    buffer: *mut ompt_buffer_t,
    bytes: usize,
    begin: ompt_buffer_cursor_t,
    buffer_owned: c_int,
) {
    if SCRAP.completes(buffer as usize, buffer_owned != 0) {
        return;
    }
    let completion =
        Completion { device_num, buffer: buffer as usize, bytes, begin, is_returned: buffer_owned != 0 };
    if let Some(source) = SOURCE.get() {
        // SAFETY: the arguments of this call, during which the runtime permits reading the records.
        unsafe { source.complete(&completion) };
    }
}

/// The result of a request, as named in the specification.
fn answer(result: ompt_set_result_t) -> String {
    result.name().map_or_else(|| result.0.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    /// As if no session were in progress.
    #[test]
    fn a_request_gets_a_buffer_also_where_there_is_no_source() {
        let ask = || {
            let (mut buffer, mut bytes) = (ptr::null_mut::<ompt_buffer_t>(), 0);
            // SAFETY: both can be written.
            unsafe { request(0, &mut buffer, &mut bytes) };
            assert!(!buffer.is_null() && bytes >= 112, "{buffer:?}, {bytes}");
            // SAFETY: the runtime may write to all of it.
            unsafe { ptr::write_bytes(buffer.cast::<u8>(), 0xff, bytes) };
            buffer
        };
        let buffers: Vec<_> = (0..1000).map(|_| ask()).collect();
        for buffer in buffers {
            // SAFETY: the buffer is not read.
            unsafe { complete(0, buffer, 112, buffer as u64, 1) };
        }
        // SAFETY: null pointers are not written to.
        unsafe { request(0, ptr::null_mut(), ptr::null_mut()) };
    }
}
