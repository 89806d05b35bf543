//! Traces NVIDIA devices with CUPTI's activity interface, if the runtime does not trace them.
//!
//! ```text
//! host callbacks --- operation_begins, _ends ---> our ids on the thread's stacks
//! CUPTI ------------ requested, completed ------> BufferSource: buffers of the process, not of a device
//! BufferSource ----- drain ---------------------> Correlations -> Record with its operation and device
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `library` | the library, loaded at run time |
//! | `layout` | the layout of records |
//! | `correlation` | assigns records to operations and devices |
//!
//! This crate never initializes CUDA: the library is loaded if the process has loaded the driver's library and OpenMP
//! has initialized a device. All state belongs to the process, as CUPTI's does. CUPTI may call back, so no lock that
//! its callbacks take is held during calls into it.

mod correlation;
pub mod layout;
mod library;

use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use ompt_sys::{self as ompt, ompt_target_data_op_t};

use crate::lock::Mutex;
use crate::memory;
use crate::problem::Problem;
use crate::record::{DataOp, Record, Work};
use crate::tracer::{BufferSource, Completion, DeviceTracer, Format, HostOperation, Setup};
use correlation::{Correlations, DEVICE, External, Numbered, OPERATION, packed};
use layout::{Bytes, external, kernel, memcpy, memcpy_peers, memory as memory_layout, memset, overhead};
use library::{Answer, Library};

pub use library::Choice;

/// The kinds of records to enable, in this order: calls made before external correlation is enabled do not have our
/// ids. `true` marks kinds without which there is nothing to show.
const KINDS: &[(&str, u32, bool)] = &[
    ("EXTERNAL_CORRELATION", external::EXTERNAL_CORRELATION, false),
    // CUPTI assigns correlation ids only to calls that it records.
    ("DRIVER", layout::DRIVER, false),
    ("RUNTIME", layout::RUNTIME, false),
    ("CONCURRENT_KERNEL", kernel::CONCURRENT_KERNEL, true),
    ("MEMCPY", memcpy::MEMCPY, false),
    ("MEMCPY2", memcpy_peers::MEMCPY2, false),
    ("MEMSET", memset::MEMSET, false),
    ("MEMORY2", memory_layout::MEMORY2, false),
    ("OVERHEAD", overhead::OVERHEAD, false),
];
/// Maximum length of a kernel's name to keep, in bytes.
const MAX_NAME: usize = 1024;
/// Minimum size of a record in bytes.
const MIN_RECORD_BYTES: usize = 8;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: flush also buffers with records of unfinished operations.
const FORCED: u32 = 1;

/// The library of this process, or why there is none.
static PROCESS: OnceLock<Result<Process, String>> = OnceLock::new();

/// The receiver of completed buffers. CUPTI passes no user data to its callbacks.
static SOURCE: OnceLock<&'static dyn BufferSource> = OnceLock::new();

/// The state that exists once per process, like CUPTI's.
#[derive(Debug)]
struct Process {
    library: Library,
    pid: u32,
    /// Held while tracing is switched on or off, never within CUPTI's callbacks.
    switch: Mutex<()>,
    state: Mutex<State>,
    /// A device that is or was traced, because a completion must name one.
    any_device: AtomicI32,
    /// No more records will arrive.
    is_closing: AtomicBool,
    /// Number of records that CUPTI dropped and that are not reported yet.
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The devices that are being traced.
    running: BTreeSet<i32>,
    correlations: Correlations,
}

/// An NVIDIA device that a runtime has announced.
#[derive(Debug)]
pub(crate) struct CuptiTracer {
    device_num: i32,
    process: Result<&'static Process, String>,
}

/// Whether a runtime uses this type for NVIDIA devices. LLVM's names the architecture, as in `sm_90`.
pub(crate) fn is_nvidias(device_type: &str) -> bool {
    let device_type = device_type.to_ascii_lowercase();
    device_type.starts_with("sm_")
        || ["nvidia", "nvptx", "cuda"].iter().any(|word| device_type.contains(word))
}

impl CuptiTracer {
    /// A tracer for this device; loads the library for the first device.
    pub(crate) fn new(device_num: i32, choice: &Choice) -> CuptiTracer {
        let process = PROCESS.get_or_init(|| Process::load(choice)).as_ref();
        let process = process.map_err(String::clone);
        CuptiTracer {
            device_num,
            process: process.and_then(|process| match process.pid == process::id() {
                true => Ok(process),
                false => Err("the process was forked from a process that CUPTI traces".into()),
            }),
        }
    }
}

impl Process {
    fn load(choice: &Choice) -> Result<Process, String> {
        Ok(Process {
            library: library::load(choice)?,
            pid: process::id(),
            switch: Mutex::default(),
            state: Mutex::default(),
            any_device: AtomicI32::new(0),
            is_closing: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        })
    }

    /// Starts tracing, unless it was started for another device.
    fn start(&self, device_num: i32, source: &'static dyn BufferSource) -> Setup {
        let mut setup = Setup::default();
        SOURCE.get_or_init(|| source);
        let _switch = self.switch.lock();
        // Relaxed, here and below: each value is independent of others.
        self.any_device.store(device_num, Ordering::Relaxed);
        self.is_closing.store(false, Ordering::Relaxed);
        let is_first = {
            let mut state = self.state.lock();
            state.running.insert(device_num);
            state.running.len() == 1
        };
        if is_first && !self.enable(&mut setup.problems) {
            self.state.lock().running.remove(&device_num);
            return setup;
        }
        setup.format = Some(Format::Ompt);
        setup
    }

    /// Enables all kinds of records; false if an essential one is refused.
    fn enable(&self, problems: &mut Vec<String>) -> bool {
        let functions = &self.library.functions;
        // SAFETY: NVIDIA's function with callbacks of the signatures that it calls.
        let answer = unsafe { (functions.register_callbacks)(requested, completed) };
        if answer != Answer::SUCCESS {
            problems.push(format!("cuptiActivityRegisterCallbacks returned {}", answer.text()));
            return false;
        }
        for (name, kind, must) in KINDS {
            // SAFETY: NVIDIA's function.
            let answer = unsafe { (functions.enable)(*kind) };
            if answer == Answer::SUCCESS {
                continue;
            }
            problems.push(format!("cuptiActivityEnable of {name} returned {}", answer.text()));
            // Without a driver, none is enabled.
            if *must || *kind == external::EXTERNAL_CORRELATION {
                self.disable();
                return false;
            }
        }
        true
    }

    fn disable(&self) {
        for (_, kind, _) in KINDS {
            // SAFETY: NVIDIA's function.
            unsafe { (self.library.functions.disable)(*kind) };
        }
    }

    /// Stops tracing a device; for the last device, disables CUPTI's records.
    fn stop(&self, device_num: i32) {
        let _switch = self.switch.lock();
        let is_last = {
            let mut state = self.state.lock();
            state.running.remove(&device_num) && state.running.is_empty()
        };
        // SAFETY: NVIDIA's function.
        unsafe { (self.library.functions.flush_all)(if is_last { FORCED } else { 0 }) };
        if is_last {
            self.disable();
            // Only now: the flush returns buffers in any order.
            self.is_closing.store(true, Ordering::Relaxed);
            self.complete(std::ptr::null_mut(), 0, false);
        }
    }

    /// Drains the records of a buffer or, without a buffer, the waiting records.
    fn complete(&self, buffer: *mut u8, bytes: usize, is_returned: bool) {
        let mut dropped = 0;
        // SAFETY: NVIDIA's function; no buffer belongs to a context.
        let answer =
            unsafe { (self.library.functions.get_num_dropped)(std::ptr::null_mut(), 0, &mut dropped) };
        if answer == Answer::SUCCESS {
            self.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
        }
        let completion = Completion {
            device_num: self.any_device.load(Ordering::Relaxed),
            buffer: buffer as usize,
            bytes,
            begin: 0,
            is_returned,
        };
        if let Some(source) = SOURCE.get() {
            // SAFETY: CUPTI lets the tool read the records until this call returns.
            unsafe { source.complete(&completion) };
        }
    }

    /// Calls `each` with the bytes of every record in a buffer that are read.
    ///
    /// # Safety
    /// Like [`DeviceTracer::drain`].
    unsafe fn walk(
        &self,
        completion: &Completion,
        readable: &Range<usize>,
        each: &mut dyn FnMut(u32, Bytes<'_>),
        problem: &mut dyn FnMut(Problem, u64),
    ) {
        let most = completion.bytes / MIN_RECORD_BYTES;
        let mut record: *mut u8 = std::ptr::null_mut();
        for _ in 0..most {
            let before = record;
            let buffer = completion.buffer as *mut u8;
            // SAFETY: NVIDIA's function; the buffer is the completion's, and the record the one that the function
            // returned last.
            let answer =
                unsafe { (self.library.functions.get_next_record)(buffer, completion.bytes, &mut record) };
            match answer {
                Answer::SUCCESS if record > before => {}
                Answer::SUCCESS => return problem(Problem::EndlessBuffer, 1),
                Answer::MAX_LIMIT_REACHED => return,
                _ => return problem(Problem::InvalidRecord, 1),
            }
            let (start, end) = (record as usize, readable.end);
            let head = start.checked_add(layout::KIND_BYTES);
            if start < readable.start || head.is_none_or(|head| head > end) {
                return problem(Problem::UnreadableRecord, 1);
            }
            // SAFETY: the bytes are in one of our buffers that CUPTI has returned.
            let bytes = unsafe { std::slice::from_raw_parts(record, end - start) };
            let kind = Bytes(bytes).get(layout::KIND) as u32;
            let Some(layout) = layout::of_kind(kind) else {
                continue;
            };
            match bytes.get(..layout.bytes) {
                Some(bytes) => each(kind, Bytes(bytes)),
                None => problem(Problem::UnreadableRecord, 1),
            }
        }
    }
}

impl DeviceTracer for CuptiTracer {
    fn provider(&self) -> &'static str {
        match self.process {
            Ok(process) => &process.library.description,
            Err(_) => "CUPTI",
        }
    }

    fn offers(&self) -> Vec<&'static str> {
        self.process.as_ref().map_or(Vec::new(), |_| library::NAMES.to_vec())
    }

    fn missing(&self) -> Vec<String> {
        let reason = self.process.as_ref().err();
        reason.map(|reason| format!("CUPTI: {reason}")).into_iter().collect()
    }

    fn num_procs(&self) -> Option<i32> {
        None
    }

    fn start(&self, source: &'static dyn BufferSource) -> Setup {
        match &self.process {
            Ok(process) => process.start(self.device_num, source),
            Err(_) => Setup { format: None, problems: self.missing() },
        }
    }

    /// CUPTI continues, because disabling it would lose the records of operations in progress.
    fn pause(&self, _: bool) {}

    fn flush(&self) {
        if let Ok(process) = self.process {
            // SAFETY: NVIDIA's function, called outside of CUPTI's callbacks.
            unsafe { (process.library.functions.flush_all)(0) };
        }
    }

    fn stop(&self) {
        if let Ok(process) = self.process {
            process.stop(self.device_num);
        }
    }

    /// The runtime does not deliver the records, so this is done here, while CUDA still exists.
    fn finalize(&self) {
        self.stop();
    }

    /// A forked child uses neither CUDA nor CUPTI, and the parent continues.
    fn stops_for_fork(&self) -> bool {
        false
    }

    fn time(&self) -> Option<u64> {
        let process = self.process.as_ref().ok()?;
        let mut time = 0;
        // SAFETY: NVIDIA's function, and the number can be written.
        let answer = unsafe { (process.library.functions.get_timestamp)(&mut time) };
        (answer == Answer::SUCCESS && time != 0).then_some(time)
    }

    fn translate(&self, _: u64) -> Option<f64> {
        None
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn operation_begins(&self, operation: &HostOperation) {
        if let Ok(process) = self.process {
            let push = process.library.functions.push_external;
            // SAFETY: NVIDIA's function.
            unsafe {
                push(OPERATION, operation.host_op_id);
                push(DEVICE, packed(operation));
            }
        }
    }

    fn operation_ends(&self) {
        if let Ok(process) = self.process {
            let pop = process.library.functions.pop_external;
            let mut last = 0;
            // SAFETY: NVIDIA's function, and the number can be written.
            unsafe {
                pop(DEVICE, &mut last);
                pop(OPERATION, &mut last);
            }
        }
    }

    unsafe fn drain(
        &self,
        completion: &Completion,
        readable: &Range<usize>,
        each: &mut dyn FnMut(i32, Record),
        problem: &mut dyn FnMut(Problem, u64),
    ) -> u64 {
        let Ok(process) = self.process else { return 0 };
        let (mut externals, mut numbered) = (Vec::new(), Vec::new());
        let mut overheads = (0, 0);
        let mut take = |kind, bytes: Bytes<'_>| match kind {
            external::EXTERNAL_CORRELATION => externals.push(External::of(bytes)),
            overhead::OVERHEAD => {
                let (begin, end) = (bytes.get(overhead::start), bytes.get(overhead::end));
                overheads.0 += 1;
                overheads.1 += end.saturating_sub(begin);
            }
            _ => numbered.extend(numbered_record(kind, bytes)),
        };
        // SAFETY: by this function's contract.
        unsafe { process.walk(completion, readable, &mut take, problem) };
        let comes = !process.is_closing.load(Ordering::Relaxed);
        let ready = {
            let correlations = &mut process.state.lock().correlations;
            externals.into_iter().for_each(|external| correlations.external(external));
            numbered.into_iter().for_each(|record| correlations.add(record));
            correlations.ready(comes)
        };
        problem(Problem::Overhead, overheads.0);
        problem(Problem::OverheadMicroseconds, overheads.1 / 1000);
        problem(Problem::Dropped, process.dropped.swap(0, Ordering::Relaxed));
        let mut records = 0;
        for (device_num, record) in ready {
            match device_num {
                Some(device_num) => {
                    records += 1;
                    each(device_num, record);
                }
                None => problem(Problem::OfNoDevice, 1),
            }
        }
        records
    }
}

/// Converts a record; `None` if it was not requested.
fn numbered_record(kind: u32, bytes: Bytes<'_>) -> Option<Numbered> {
    let common = |correlation_id, ordinal, stream, begin, end, work| Numbered {
        correlation_id: bytes.get(correlation_id) as u32,
        ordinal: bytes.get(ordinal) as u32,
        record: Record { correlation_id: 0, target_id: 0, stream, begin, end, work },
    };
    let data_op = |optype, bytes| Work::of_data_op(DataOp::of_bytes(optype, bytes));
    Some(match kind {
        kernel::KERNEL | kernel::CONCURRENT_KERNEL => {
            let blocks = [kernel::grid_x, kernel::grid_y, kernel::grid_z]
                .into_iter()
                .fold(1_u64, |all, side| all.saturating_mul(bytes.get(side).max(1)));
            let name = bytes.get(kernel::name) as usize as *const c_char;
            let work = Work::Kernel {
                requested_num_teams: 0,
                granted_num_teams: u32::try_from(blocks).unwrap_or(u32::MAX),
                name: memory::text(name, MAX_NAME),
            };
            common(
                kernel::correlation_id,
                kernel::device_id,
                bytes.get(kernel::stream_id),
                bytes.get(kernel::start),
                bytes.get(kernel::end),
                work,
            )
        }
        memcpy::MEMCPY => common(
            memcpy::correlation_id,
            memcpy::device_id,
            bytes.get(memcpy::stream_id),
            bytes.get(memcpy::start),
            bytes.get(memcpy::end),
            data_op(direction(bytes.get(memcpy::copy_kind)), bytes.get(memcpy::bytes)),
        ),
        memcpy_peers::MEMCPY2 => common(
            memcpy_peers::correlation_id,
            memcpy_peers::device_id,
            bytes.get(memcpy_peers::stream_id),
            bytes.get(memcpy_peers::start),
            bytes.get(memcpy_peers::end),
            data_op(ompt::ompt_target_data_transfer, bytes.get(memcpy_peers::bytes)),
        ),
        memset::MEMSET => common(
            memset::correlation_id,
            memset::device_id,
            bytes.get(memset::stream_id),
            bytes.get(memset::start),
            bytes.get(memset::end),
            data_op(ompt::ompt_target_data_memset, bytes.get(memset::bytes)),
        ),
        memory_layout::MEMORY2 => {
            let time = bytes.get(memory_layout::timestamp);
            common(memory_layout::correlation_id, memory_layout::device_id, 0, time, time, allocation(bytes)?)
        }
        _ => return None,
    })
}

/// The direction of a copy, given its `CUpti_ActivityMemcpyKind`.
fn direction(copy_kind: u64) -> ompt_target_data_op_t {
    const TO_DEVICE: u64 = 1;
    const FROM_DEVICE: u64 = 2;
    const TO_ARRAY: u64 = 3;
    const FROM_ARRAY: u64 = 4;
    match copy_kind {
        TO_DEVICE | TO_ARRAY => ompt::ompt_target_data_transfer_to_device,
        FROM_DEVICE | FROM_ARRAY => ompt::ompt_target_data_transfer_from_device,
        _ => ompt::ompt_target_data_transfer,
    }
}

/// An allocation of device or managed memory; `None` for pinned host memory.
fn allocation(bytes: Bytes<'_>) -> Option<Work> {
    /// `CUpti_ActivityMemoryOperationType`.
    const ALLOCATION: u64 = 1;
    const RELEASE: u64 = 2;
    /// `CUpti_ActivityMemoryKind`.
    const PAGEABLE: u64 = 1;
    const PINNED: u64 = 2;

    if [PAGEABLE, PINNED].contains(&bytes.get(memory_layout::memory_kind)) {
        return None;
    }
    let address = bytes.get(memory_layout::address);
    let (optype, src_addr, dest_addr) = match bytes.get(memory_layout::operation) {
        ALLOCATION => (ompt::ompt_target_data_alloc, 0, address),
        RELEASE => (ompt::ompt_target_data_delete, address, 0),
        _ => return None,
    };
    Some(Work::of_data_op(DataOp {
        src_addr,
        dest_addr,
        ..DataOp::of_bytes(optype, bytes.get(memory_layout::bytes))
    }))
}

/// CUPTI requests a buffer. Without one, it drops records.
unsafe extern "C" fn requested(buffer: *mut *mut u8, bytes: *mut usize, max_records: *mut usize) {
    let Some(Ok(process)) = PROCESS.get() else {
        return;
    };
    let any_device = process.any_device.load(Ordering::Relaxed);
    if buffer.is_null() || bytes.is_null() {
        return;
    }
    let lent = SOURCE.get().and_then(|source| source.lend(any_device));
    // SAFETY: valid for writing during the callback.
    unsafe {
        *buffer = lent.map_or(std::ptr::null_mut(), |lent| lent.address as *mut u8);
        *bytes = lent.map_or(0, |lent| lent.bytes);
        if !max_records.is_null() {
            *max_records = 0;
        }
    }
}

/// CUPTI returns a buffer.
unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream_id: u32,
    buffer: *mut u8,
    _bytes: usize,
    valid_bytes: usize,
) {
    if let Some(Ok(process)) = PROCESS.get() {
        process.complete(buffer, valid_bytes, true);
    }
}
