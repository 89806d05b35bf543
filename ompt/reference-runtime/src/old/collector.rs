//! The Collector API of 2007, exactly as specified by its header: `__omp_collector_api` of this program, which a
//! preloaded collector finds before the script is read. [`Collect`] steps play its callbacks.
//!
//! `openuh` and `tau` are scripts with what OpenUH and TAU report, which differs from the header in several results.
//!
//! The variable `REFERENCE_COLLECTOR` lists the runtime's [`Deviation`]s, which real runtimes have.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock};

use ompt_sys::collector::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::argument::Line;
use crate::script::Step;
pub use crate::script::steps::Collect;

/// Behaviour of real runtimes that deviates from the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deviation {
    /// START is refused as too late.
    RefusesStart,
    /// Requests for ids return values without an error code (OpenUH).
    WritesNoErrorCodeOfIds,
    /// No request returns an error code.
    WritesNoErrorCode,
    /// Every request calls back before it returns (TAU's libgomp wrapper, which takes an OpenMP lock).
    CallsBackFromRequests,
    /// A wait id is stored at pointer alignment, not directly after the state.
    AlignsWaitIds,
    /// Waits are not supported.
    KnowsNoWaits,
    /// The runtime is older than waits for atomic regions: their events are unknown.
    KnowsNoAtomicWaits,
    /// Events are reported even while they are paused.
    IgnoresPause,
    /// A state does not fit into any memory of a request.
    NeedsMoreRoom,
    /// Events 23 to 35 for tasks (TAU's libgomp wrapper).
    ReportsTasks,
    /// In forked children, the lock is held by a thread that does not exist: a request would wait forever. Here it
    /// aborts.
    IsLockedInChildren,
}

fn deviates(deviation: Deviation) -> bool {
    static ALL: OnceLock<Vec<Deviation>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let words = std::env::var("REFERENCE_COLLECTOR").unwrap_or_default();
        let words = words.split(',').filter(|word| !word.is_empty());
        words.map(|word| serde_json::from_value(word.into()).expect("a deviation")).collect()
    });
    all.contains(&deviation)
}

/// What OpenUH's runtime reports for a parallel region of two threads with a loop that has an ordered region. It
/// creates one more thread than it had, so FORK is reported twice. The second thread was idle before a tool queried it.
/// The region is also reported as its own parent, as the region that JOIN ends, and as any region inside it, because
/// ids count only regions without an enclosing one.
pub fn openuh() -> Vec<Vec<Step>> {
    use OMP_COLLECTOR_API_THR_STATE as State;
    const REGION: u64 = 1;

    let reported = |event: OMP_COLLECTORAPI_EVENT, state: State, wait_id: u64| {
        let parent = Some(REGION);
        let (event, state, region) = (event.0, state.0, REGION);
        Step::from(Collect { event, state, wait_id, region, parent })
    };
    let busy = |event| reported(event, THR_WORK_STATE, 0);
    let (forks, waits) = (reported(OMP_EVENT_FORK, THR_OVHD_STATE, 0), |wait_id| {
        reported(OMP_EVENT_THR_BEGIN_ODWT, THR_ODWT_STATE, wait_id)
    });
    let barrier = [
        reported(OMP_EVENT_THR_BEGIN_IBAR, THR_IBAR_STATE, 1),
        reported(OMP_EVENT_THR_END_IBAR, THR_IBAR_STATE, 1),
    ];
    let begins = [OMP_EVENT_THR_BEGIN_ORDERED; 2].map(busy);

    let mut first = vec![forks.clone(), forks.clone()];
    first.extend(begins.clone());
    // The thread need not wait, but is reported as having waited.
    first.extend([OMP_EVENT_THR_END_ODWT, OMP_EVENT_THR_END_ORDERED].map(busy));
    first.extend([Step::Sync(0), forks]);
    first.extend(barrier.clone());
    first.push(reported(OMP_EVENT_JOIN, THR_OVHD_STATE, 0));
    first.push(Step::Sync(1));
    first.extend(barrier.clone());
    first.push(reported(OMP_EVENT_JOIN, THR_OVHD_STATE, 0));

    let mut second = vec![busy(OMP_EVENT_THR_END_IDLE)];
    second.extend(begins);
    // After waking up, the thread has to wait again.
    second.extend([waits(1), waits(2), Step::Sync(0)]);
    second.push(reported(OMP_EVENT_THR_END_ODWT, THR_ODWT_STATE, 2));
    second.push(busy(OMP_EVENT_THR_END_ORDERED));
    second.extend(barrier);
    second.push(reported(OMP_EVENT_THR_BEGIN_IDLE, THR_IDLE_STATE, 0));
    second.push(Step::Sync(1));
    vec![first, second]
}

/// What TAU's libgomp wrapper reports for a parallel region in which a task is created and executed, with its own
/// events and states.
pub fn tau() -> Vec<Vec<Step>> {
    let reported = |event, state, region, parent| {
        let wait_id = 0;
        Step::from(Collect { event, state, wait_id, region, parent })
    };
    let inside = |event, state| reported(event, state, 1, Some(0));
    let (overhead, work) = (THR_OVHD_STATE.0, THR_WORK_STATE.0);
    vec![vec![
        inside(OMP_EVENT_FORK.0, overhead),
        inside(OMP_EVENT_THR_END_IDLE.0, work),
        inside(23, THR_TASK_CREATE_STATE.0),
        inside(24, THR_TASK_SCHEDULE_STATE.0),
        inside(33, work),
        inside(34, THR_TASK_FINISH_STATE.0),
        inside(35, work),
        reported(OMP_EVENT_JOIN.0, THR_SERIAL_STATE.0, 0, None),
    ]]
}

#[derive(Debug, Default)]
pub(crate) struct Runtime {
    is_started: bool,
    /// The process that started the API.
    pid: u32,
    is_paused: bool,
    /// By event.
    callbacks: BTreeMap<u32, usize>,
}

static RUNTIME: Mutex<Runtime> =
    Mutex::new(Runtime { is_started: false, pid: 0, is_paused: false, callbacks: BTreeMap::new() });

thread_local! {
    /// A thread of the program outside of any region; `None` for a thread that the runtime does not know.
    static THREAD: Cell<Collect> = const {
        Cell::new(Collect { event: 0, state: THR_SERIAL_STATE.0, wait_id: 0, region: 0, parent: None })
    };
}

/// Number of events that only this runtime has.
const OWN_EVENTS: u32 = 2;

impl Collect {
    /// Calls back, if a function is registered; returns what a tool should have recorded.
    pub(crate) fn play(self) -> Option<Line> {
        THREAD.set(self);
        let callback = registered(self.event)?;
        call(callback, self.event);
        let mut line = self.line();
        if self.wait_id != 0 && line["event"] == "mutex_wait" && !self.waits() {
            line.insert("wait_id".into(), "0x0".into());
        }
        Some(line)
    }

    fn waits(&self) -> bool {
        let state = OMP_COLLECTOR_API_THR_STATE(self.state);
        let barriers = THR_IBAR_STATE..=THR_EBAR_STATE;
        barriers.contains(&state) || (THR_LKWT_STATE..=THR_ATWT_STATE).contains(&state)
    }

    /// The event's line in a trace.
    fn line(&self) -> Line {
        let region = format!("{:#x}", self.region);
        let endpoint = ["begin", "end"][usize::from(self.event.is_multiple_of(2))];
        let wait = |kind: &str| {
            let wait_id = format!("{:#x}", self.wait_id);
            json!({"event": "mutex_wait", "endpoint": endpoint, "kind": kind, "wait_id": wait_id})
        };
        let inside = |event: &str| {
            json!({
                "event": event, "endpoint": endpoint, "parallel_data": region, "task_data": null,
                "codeptr_ra": "0x0",
            })
        };
        let with = |mut line: Value, name: &str, value: Value| {
            line[name] = value;
            line
        };
        let line = match OMP_COLLECTORAPI_EVENT(self.event) {
            OMP_EVENT_FORK => json!({
                "event": "parallel_begin", "encountering_task_data": null, "exit_frame": "0x0", "enter_frame": "0x0",
                "exit_frame_flags": "0x0", "enter_frame_flags": "0x0", "parallel_data": region,
                "requested_parallelism": 0, "flags": "0x0", "codeptr_ra": "0x0",
            }),
            OMP_EVENT_JOIN => json!({
                "event": "parallel_end", "encountering_task_data": null, "parallel_data": region, "flags": "0x0",
                "codeptr_ra": "0x0",
            }),
            OMP_EVENT_THR_BEGIN_IDLE | OMP_EVENT_THR_END_IDLE => {
                json!({"event": "idle", "endpoint": endpoint})
            }
            OMP_EVENT_THR_BEGIN_IBAR | OMP_EVENT_THR_END_IBAR => {
                with(inside("sync_region_wait"), "kind", "barrier_implicit".into())
            }
            OMP_EVENT_THR_BEGIN_EBAR | OMP_EVENT_THR_END_EBAR => {
                with(inside("sync_region_wait"), "kind", "barrier_explicit".into())
            }
            OMP_EVENT_THR_BEGIN_LKWT | OMP_EVENT_THR_END_LKWT => wait("lock"),
            OMP_EVENT_THR_BEGIN_CTWT | OMP_EVENT_THR_END_CTWT => wait("critical"),
            OMP_EVENT_THR_BEGIN_ODWT | OMP_EVENT_THR_END_ODWT => wait("ordered"),
            OMP_EVENT_THR_BEGIN_ATWT | OMP_EVENT_THR_END_ATWT => wait("atomic"),
            OMP_EVENT_THR_BEGIN_MASTER | OMP_EVENT_THR_END_MASTER => inside("masked"),
            OMP_EVENT_THR_BEGIN_SINGLE | OMP_EVENT_THR_END_SINGLE => {
                let line = with(inside("work"), "work_type", "single_executor".into());
                with(line, "count", 1.into())
            }
            OMP_EVENT_THR_BEGIN_ORDERED | OMP_EVENT_THR_END_ORDERED => {
                json!({"event": "ordered", "endpoint": endpoint, "parallel_data": region})
            }
            own => json!({"event": "collector_event", "number": own.0, "parallel_data": region}),
        };
        match line {
            Value::Object(line) => line,
            _ => unreachable!("each is an object"),
        }
    }
}

/// Locks the runtime's state, so that no other thread uses it.
pub(crate) fn at_rest() -> MutexGuard<'static, Runtime> {
    RUNTIME.lock().expect("no thread panics with it")
}

fn registered(event: u32) -> Option<usize> {
    let runtime = at_rest();
    let is_paused = runtime.is_paused && !deviates(Deviation::IgnoresPause);
    let calls = runtime.is_started && !is_paused;
    runtime.callbacks.get(&event).copied().filter(|_| calls)
}

fn call(callback: usize, event: u32) {
    // SAFETY: a collector registered it as a function of this type.
    let callback: omp_collector_callback_t = unsafe { std::mem::transmute(callback) };
    // SAFETY: as specified by the header, and without holding a lock.
    unsafe { callback(OMP_COLLECTORAPI_EVENT(event)) };
}

/// The function of the API.
///
/// # Safety
/// `arg` is null, or a list of requests that ends in a size of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __omp_collector_api(arg: *mut c_void) -> c_int {
    const FAILED: c_int = -1;
    let header_bytes = size_of::<omp_collector_header_t>();

    if arg.is_null() || !(arg as usize).is_multiple_of(align_of::<c_int>()) {
        return FAILED;
    }
    if deviates(Deviation::IsLockedInChildren) && ![0, std::process::id()].contains(&at_rest().pid) {
        std::process::abort();
    }
    let mut entry = arg.cast::<omp_collector_header_t>();
    loop {
        // SAFETY: by this function's contract.
        let header = unsafe { &mut *entry };
        let size = match usize::try_from(header.sz) {
            Ok(0) => return 0,
            Ok(size) if size >= header_bytes && size.is_multiple_of(4) => size,
            _ => return FAILED,
        };
        // SAFETY: the entry has this number of bytes after its header.
        let mem = unsafe {
            let mem = entry.add(1).cast::<u8>();
            std::slice::from_raw_parts_mut(mem, size - header_bytes)
        };
        let request = OMP_COLLECTORAPI_REQUEST(header.r as u32);
        let (code, returned) = answer(request, mem);
        let is_id = matches!(request, OMP_REQ_CURRENT_PRID | OMP_REQ_PARENT_PRID);
        let is_silent =
            deviates(Deviation::WritesNoErrorCode) || is_id && deviates(Deviation::WritesNoErrorCodeOfIds);
        if !is_silent {
            header.ec = code.0 as c_int;
        }
        header.rsz = returned as c_int;
        if deviates(Deviation::CallsBackFromRequests)
            && let Some(callback) = registered(OMP_EVENT_THR_BEGIN_LKWT.0)
        {
            call(callback, OMP_EVENT_THR_BEGIN_LKWT.0);
            call(callback, OMP_EVENT_THR_END_LKWT.0);
        }
        // SAFETY: within the list: the next entry, or its end.
        entry = unsafe { entry.cast::<u8>().add(size).cast() };
    }
}

/// The error code, and the size of the result that is, or should fit, in `mem`.
fn answer(request: OMP_COLLECTORAPI_REQUEST, mem: &mut [u8]) -> (OMP_COLLECTORAPI_EC, usize) {
    const DONE: (OMP_COLLECTORAPI_EC, usize) = (OMP_ERRCODE_OK, 0);
    const AT_THE_WRONG_TIME: (OMP_COLLECTORAPI_EC, usize) = (OMP_ERRCODE_SEQUENCE_ERR, 0);
    const EVENT_BYTES: usize = 4;
    const CALLBACK_BYTES: usize = 8;

    let mut runtime = at_rest();
    if request == OMP_REQ_START {
        if runtime.is_started || deviates(Deviation::RefusesStart) {
            return AT_THE_WRONG_TIME;
        }
        *runtime = Runtime { is_started: true, pid: std::process::id(), ..Runtime::default() };
        return DONE;
    }
    if !runtime.is_started {
        return AT_THE_WRONG_TIME;
    }
    let thread = THREAD.get();
    match request {
        OMP_REQ_REGISTER | OMP_REQ_UNREGISTER => {
            let registers = request == OMP_REQ_REGISTER;
            let needed = EVENT_BYTES + if registers { CALLBACK_BYTES } else { 0 };
            if mem.len() < needed {
                return (OMP_ERRCODE_MEM_TOO_SMALL, needed);
            }
            let number = |bytes: &[u8]| {
                let bytes = bytes.iter().rev();
                bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
            };
            let event = number(&mem[..EVENT_BYTES]) as u32;
            match support(event) {
                OMP_ERRCODE_OK if registers => {
                    let callback = number(&mem[EVENT_BYTES..needed]) as usize;
                    runtime.callbacks.insert(event, callback);
                    DONE
                }
                OMP_ERRCODE_OK => {
                    runtime.callbacks.remove(&event);
                    DONE
                }
                refusal => (refusal, 0),
            }
        }
        OMP_REQ_STATE => {
            let mut answer = thread.state.to_le_bytes().to_vec();
            if thread.waits() {
                let gap = if deviates(Deviation::AlignsWaitIds) { 4 } else { 0 };
                answer.extend(vec![0; gap]);
                answer.extend(thread.wait_id.to_le_bytes());
            }
            if deviates(Deviation::NeedsMoreRoom) {
                answer.resize(mem.len() + 8, 0);
            }
            put(mem, &answer)
        }
        OMP_REQ_CURRENT_PRID => put(mem, &thread.region.to_le_bytes()),
        OMP_REQ_PARENT_PRID => match thread.parent {
            Some(parent) => put(mem, &parent.to_le_bytes()),
            None => (OMP_ERRCODE_THREAD_ERR, 0),
        },
        OMP_REQ_PAUSE | OMP_REQ_RESUME => {
            runtime.is_paused = request == OMP_REQ_PAUSE;
            DONE
        }
        OMP_REQ_STOP => {
            *runtime = Runtime::default();
            DONE
        }
        _ => (OMP_ERRCODE_UNKNOWN, 0),
    }
}

fn support(event: u32) -> OMP_COLLECTORAPI_EC {
    let own = OMP_EVENT_THR_RESERVED_IMPL.0..OMP_EVENT_THR_RESERVED_IMPL.0 + OWN_EVENTS;
    let waits = OMP_EVENT_THR_BEGIN_LKWT.0..=OMP_EVENT_THR_END_ODWT.0;
    match event {
        _ if deviates(Deviation::KnowsNoWaits) && waits.contains(&event) => OMP_ERRCODE_UNSUPPORTED,
        21.. if deviates(Deviation::KnowsNoAtomicWaits) => OMP_ERRCODE_UNKNOWN,
        1..=22 => OMP_ERRCODE_OK,
        23..=35 if deviates(Deviation::ReportsTasks) => OMP_ERRCODE_OK,
        _ if own.contains(&event) => OMP_ERRCODE_OK,
        _ => OMP_ERRCODE_UNKNOWN,
    }
}

/// Writes a result, aligned for an id or a number.
fn put(mem: &mut [u8], answer: &[u8]) -> (OMP_COLLECTORAPI_EC, usize) {
    let alignment = if answer.len() == 8 { 8 } else { 4 };
    if !(mem.as_ptr() as usize).is_multiple_of(alignment) {
        return (OMP_ERRCODE_ERROR, 0);
    }
    match mem.get_mut(..answer.len()) {
        Some(place) => {
            place.copy_from_slice(answer);
            (OMP_ERRCODE_OK, answer.len())
        }
        None => (OMP_ERRCODE_MEM_TOO_SMALL, answer.len()),
    }
}
