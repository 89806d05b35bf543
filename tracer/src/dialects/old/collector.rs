//! The Collector API of 2007 ([`ompt_sys::collector`]): the tracer looks for the runtime, not the runtime for a tool.
//!
//! The library must be in the process from its start. `omptrace record` preloads it if the program, or one of its
//! libraries, has the API. The library's constructor looks for the runtime, and so does every `dlopen` of the program
//! ([`crate::entry::preload`]), for runtimes that are loaded later.
//!
//! Events have no arguments. So each callback queries, with one list of requests, what the thread does and waits for,
//! and its parallel region. A query may itself cause events if the runtime takes a lock to answer it; such events are
//! not the program's, and are dropped.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::{offset_of, size_of, transmute};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

use ompt_sys::collector::*;
use ompt_sys::{
    ompt_mutex_atomic, ompt_mutex_critical, ompt_mutex_lock, ompt_mutex_ordered, ompt_mutex_t,
    ompt_parallel_flag_t, ompt_scope_begin, ompt_scope_end, ompt_scope_endpoint_t, ompt_state_t,
    ompt_sync_region_barrier_explicit, ompt_sync_region_barrier_implicit, ompt_sync_region_t,
    ompt_work_single_executor,
};
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Id};
use omptrace_trace_format::metadata::{Registration, Runtime};

use crate::dialects::old::collector_counts::{UNREPORTED, WHILE_ASKING};
use crate::dialects::prepared::{Prepared, configured};
use crate::os::loader;
use crate::os::log::warning;
use crate::os::threads::containment::contained;
use crate::os::threads::stack;
use crate::recorder::guarded::guarded;
use crate::recorder::this_thread;
use crate::session;
use crate::session::cold_path;

/// The generation's name in the metadata.
const DIALECT: &str = "Collector API";

/// The runtime's function; null if there is none, or after the session ended.
static API: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The function found last, so that a runtime that refused is not asked again.
static ASKED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The meaning of an event.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Fork,
    Join,
    Idle(ompt_scope_endpoint_t),
    Barrier(ompt_sync_region_t, ompt_scope_endpoint_t),
    Wait(ompt_mutex_t, ompt_scope_endpoint_t),
    Master(ompt_scope_endpoint_t),
    Single(ompt_scope_endpoint_t),
    Ordered(ompt_scope_endpoint_t),
    /// An event specific to a runtime.
    Own,
}

use Meaning::{Barrier, Fork, Idle as IsIdle, Join, Master, Ordered as IsOrdered, Own, Single, Wait};

const BEGIN: ompt_scope_endpoint_t = ompt_scope_begin;
const END: ompt_scope_endpoint_t = ompt_scope_end;
const IMPLICIT: ompt_sync_region_t = ompt_sync_region_barrier_implicit;
const EXPLICIT: ompt_sync_region_t = ompt_sync_region_barrier_explicit;

/// The events of the specification, each with its name in `OMPTRACE_EVENTS`: that of the callback that reports the
/// same, or almost the same.
static EVENTS: &[(OMP_COLLECTORAPI_EVENT, &str, Meaning)] = &[
    (OMP_EVENT_FORK, "parallel_begin", Fork),
    (OMP_EVENT_JOIN, "parallel_end", Join),
    (OMP_EVENT_THR_BEGIN_IDLE, "idle", IsIdle(BEGIN)),
    (OMP_EVENT_THR_END_IDLE, "idle", IsIdle(END)),
    (OMP_EVENT_THR_BEGIN_IBAR, "sync_region_wait", Barrier(IMPLICIT, BEGIN)),
    (OMP_EVENT_THR_END_IBAR, "sync_region_wait", Barrier(IMPLICIT, END)),
    (OMP_EVENT_THR_BEGIN_EBAR, "sync_region_wait", Barrier(EXPLICIT, BEGIN)),
    (OMP_EVENT_THR_END_EBAR, "sync_region_wait", Barrier(EXPLICIT, END)),
    (OMP_EVENT_THR_BEGIN_LKWT, "mutex_acquire", Wait(ompt_mutex_lock, BEGIN)),
    (OMP_EVENT_THR_END_LKWT, "mutex_acquire", Wait(ompt_mutex_lock, END)),
    (OMP_EVENT_THR_BEGIN_CTWT, "mutex_acquire", Wait(ompt_mutex_critical, BEGIN)),
    (OMP_EVENT_THR_END_CTWT, "mutex_acquire", Wait(ompt_mutex_critical, END)),
    (OMP_EVENT_THR_BEGIN_ODWT, "mutex_acquire", Wait(ompt_mutex_ordered, BEGIN)),
    (OMP_EVENT_THR_END_ODWT, "mutex_acquire", Wait(ompt_mutex_ordered, END)),
    (OMP_EVENT_THR_BEGIN_MASTER, "masked", Master(BEGIN)),
    (OMP_EVENT_THR_END_MASTER, "masked", Master(END)),
    (OMP_EVENT_THR_BEGIN_SINGLE, "work", Single(BEGIN)),
    (OMP_EVENT_THR_END_SINGLE, "work", Single(END)),
    (OMP_EVENT_THR_BEGIN_ORDERED, "mutex_acquired", IsOrdered(BEGIN)),
    (OMP_EVENT_THR_END_ORDERED, "mutex_acquired", IsOrdered(END)),
    (OMP_EVENT_THR_BEGIN_ATWT, "mutex_acquire", Wait(ompt_mutex_atomic, BEGIN)),
    (OMP_EVENT_THR_END_ATWT, "mutex_acquire", Wait(ompt_mutex_atomic, END)),
];

/// Numbers of runtime-specific events to try. TAU has events in the first range, after those of the specification. The
/// second range starts where the specification reserves numbers for runtimes.
const OWN_EVENTS: [std::ops::Range<u32>; 2] =
    [OMP_EVENT_THR_END_ATWT.0 + 1..64, OMP_EVENT_THR_RESERVED_IMPL.0..OMP_EVENT_THR_RESERVED_IMPL.0 + 32];

/// Looks for a runtime among the libraries of `handle`, as `dlsym` does, and starts tracing it unless a session is in
/// progress.
pub(crate) fn look_in(handle: *mut c_void) {
    // SAFETY: a handle of the loader.
    let api = unsafe { loader::symbol(handle, c"__omp_collector_api") };
    // Relaxed: libraries are loaded one after the other.
    let is_new = ASKED.swap(api, Ordering::Relaxed) != api;
    if api.is_null() || !is_new || session::is_in_progress() {
        return;
    }
    match contained(|| stack::with_much(|| begin(api))) {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(message)) => warning!("{message}; the program runs without tracing"),
    }
}

fn begin(api: *mut c_void) -> Result<(), String> {
    let Some(config) = configured() else {
        return Ok(());
    };
    // SAFETY: the symbol has this type.
    let function = unsafe { transmute::<*mut c_void, omp_collector_api_t>(api) };
    let answer = Request::new(OMP_REQ_START).make(function);
    // A runtime that writes no error code may have started the API.
    if !matches!(answer, Answer::Code(OMP_ERRCODE_OK) | Answer::Unwritten) {
        return Err(format!("the OpenMP runtime did not start its Collector API ({})", answer.name()));
    }
    let events = config.events.clone();
    let prepared = Prepared::new(config)?;
    // Release; pairs with Acquire in `callback`.
    API.store(api, Ordering::Release);
    // Pause, so that all events start to be reported at once, and none ends that did not begin.
    Request::new(OMP_REQ_PAUSE).make(function);
    let results = register_all(function, &events);
    prepared.begin(describe(api), results, BTreeMap::new());
    Request::new(OMP_REQ_RESUME).make(function);
    Ok(())
}

/// Registers the chosen and the runtime-specific events; returns the results.
fn register_all(api: omp_collector_api_t, chosen: &[&'static str]) -> BTreeMap<String, Registration> {
    let known = EVENTS.iter().filter(|(_, name, _)| chosen.contains(name)).map(|(event, ..)| *event);
    let own = OWN_EVENTS.into_iter().flatten().map(OMP_COLLECTORAPI_EVENT);
    let registered = |event: OMP_COLLECTORAPI_EVENT| {
        let answer = register(event).make(api);
        let is_own = event > OMP_EVENT_THR_END_ATWT;
        let is_none = is_own && answer == Answer::Code(OMP_ERRCODE_UNKNOWN);
        let registration = Registration { number: event.0, result: answer.number(), meaning: answer.name() };
        (!is_none).then(|| (name_of(event), registration))
    };
    known.chain(own).filter_map(registered).collect()
}

/// Describes the runtime by its library's name, because it has no version text.
fn describe(api: *mut c_void) -> Runtime {
    let path = loader::library_of(api).unwrap_or_default();
    let version = Path::new(&path).file_name().unwrap_or_default();
    Runtime {
        version: version.to_string_lossy().into_owned(),
        omp_version: 0,
        dialect: DIALECT.into(),
        entry_points: vec!["__omp_collector_api".into()],
        states: OMP_COLLECTOR_API_THR_STATE::VALUES
            .iter()
            .filter(|(_, number)| *number <= THR_ATWT_STATE.0)
            .map(|(name, number)| (*number, (*name).into()))
            .collect(),
        mutex_impls: BTreeMap::new(),
        path,
    }
}

fn name_of(event: OMP_COLLECTORAPI_EVENT) -> String {
    event
        .name()
        .filter(|_| event < OMP_EVENT_THR_RESERVED_IMPL)
        .map_or_else(|| format!("{}", event.0), String::from)
}

fn register(event: OMP_COLLECTORAPI_EVENT) -> Request {
    let callback = callback as omp_collector_callback_t as usize as u64;
    let [low, high] = [callback as u32, (callback >> 32) as u32];
    Request::with(OMP_REQ_REGISTER, [event.0, low, high, 0])
}

/// Ends the session: stops the callbacks, if the runtime's library is still loaded.
pub(crate) fn end() {
    // AcqRel: if several threads end the session, only one gets the function.
    let api = API.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // In a child that has not used the runtime, the runtime's locks may be held by a thread that does not exist in the
    // child.
    let Some(session) = session::of_this_process() else {
        return;
    };
    if api.is_null() || loader::library_of(api).is_none() {
        return;
    }
    // SAFETY: stored by `begin`, and still in a loaded library.
    let function = unsafe { transmute::<*mut c_void, omp_collector_api_t>(api) };
    let events = EVENTS.iter().map(|(event, ..)| event.0);
    for event in events {
        Request::with(OMP_REQ_UNREGISTER, [event, 0, 0, 0]).make(function);
    }
    Request::new(OMP_REQ_STOP).make(function);
    // Relaxed: only the counts are shared.
    let counts = [&WHILE_ASKING, &UNREPORTED].map(|count| count.swap(0, Ordering::Relaxed));
    let texts = [
        "events occurred while the tracer queried the runtime; these events did not come from the program and were left out",
        "times, the runtime did not report the thread's state or region together with an event",
    ];
    let messages = std::iter::zip(counts, texts)
        .filter(|(count, _)| *count > 0)
        .map(|(count, text)| format!("{count} {text}"));
    session.report_messages(messages.collect());
}

/// A request with enough room for each kind. Its `sz` fits into a byte, because OpenUH's runtime reads only that.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct Request {
    header: omp_collector_header_t,
    mem: [u32; 4],
}

/// The value of `ec` until the runtime writes it; some runtimes never do (OpenUH, for requests of ids).
const UNWRITTEN: c_int = -1;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Code(OMP_COLLECTORAPI_EC),
    Unwritten,
}

impl Answer {
    fn name(self) -> String {
        match self {
            Answer::Code(code) => {
                code.name().map_or_else(|| format!("error code {:#x}", code.0), String::from)
            }
            Answer::Unwritten => "no error code".into(),
        }
    }

    fn number(self) -> u32 {
        match self {
            Answer::Code(code) => code.0,
            Answer::Unwritten => UNWRITTEN as u32,
        }
    }
}

impl Request {
    fn new(request: OMP_COLLECTORAPI_REQUEST) -> Request {
        Request::with(request, [0; 4])
    }

    fn with(request: OMP_COLLECTORAPI_REQUEST, mem: [u32; 4]) -> Request {
        const MEM_BYTES: usize = size_of::<Request>() - offset_of!(Request, mem);

        Request {
            header: omp_collector_header_t {
                sz: size_of::<Request>() as c_int,
                r: request.0 as c_int,
                ec: UNWRITTEN,
                // TAU's libgomp wrapper finds the next request by this field.
                rsz: MEM_BYTES as c_int,
            },
            mem,
        }
    }

    /// Makes this request alone.
    fn make(self, api: omp_collector_api_t) -> Answer {
        let [answered] = ask(api, [self]);
        answered.answer()
    }

    fn answer(&self) -> Answer {
        match self.header.ec {
            UNWRITTEN => Answer::Unwritten,
            code => Answer::Code(OMP_COLLECTORAPI_EC(code as u32)),
        }
    }

    /// Whether the runtime returned something, as far as it reports that.
    fn has_answer(&self) -> bool {
        matches!(self.answer(), Answer::Code(OMP_ERRCODE_OK) | Answer::Unwritten)
    }

    fn word(&self, place: usize) -> u64 {
        u64::from(self.mem[place]) | u64::from(self.mem[place + 1]) << 32
    }

    /// The region's id; [`Id::NULL`] if the thread has none.
    fn region(&self) -> Id {
        if self.has_answer() { Id(self.word(0)) } else { Id::NULL }
    }

    /// The state and the wait id, which follows directly or at pointer alignment.
    fn state(&self) -> Option<(ompt_state_t, u64)> {
        const PACKED: c_int = 12;
        const ALIGNED: c_int = 16;

        let wait_id = match self.header.rsz {
            PACKED => self.word(1),
            ALIGNED => self.word(2),
            _ => 0,
        };
        self.has_answer().then_some((ompt_state_t(self.mem[0]), wait_id))
    }
}

/// Makes all requests in one call.
fn ask<const N: usize>(api: omp_collector_api_t, requests: [Request; N]) -> [Request; N] {
    #[repr(C)]
    struct List<const N: usize> {
        requests: [Request; N],
        end: omp_collector_header_t,
    }
    let mut list = List { requests, end: omp_collector_header_t::default() };
    // Callbacks during the call are not events of the program.
    let recorder = this_thread::recorder();
    this_thread::begin_own_work();
    // SAFETY: the runtime's function, with a list that ends in a size of 0, aligned for what is in it.
    unsafe { api((&raw mut list).cast()) };
    this_thread::set_recorder(Some(recorder));
    list.requests
}

unsafe extern "C" fn callback(event: OMP_COLLECTORAPI_EVENT) {
    guarded(|| {
        // Acquire; pairs with Release in `begin`.
        let api = API.load(Ordering::Acquire);
        if api.is_null() {
            return;
        }
        if this_thread::recorder().is_ours() {
            // Relaxed: only the count is shared.
            WHILE_ASKING.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: stored by `begin`; a runtime that calls back is loaded.
        let api = unsafe { transmute::<*mut c_void, omp_collector_api_t>(api) };
        let requests = [OMP_REQ_STATE, OMP_REQ_CURRENT_PRID, OMP_REQ_PARENT_PRID];
        let [state, current, parent] = ask(api, requests.map(Request::new));
        // A thread that is not a team's master may have no region to report.
        if !state.has_answer() || !current.has_answer() {
            // Relaxed: only the number counts.
            UNREPORTED.fetch_add(1, Ordering::Relaxed);
        }
        record(event, &state, current.region(), parent.region());
    });
}

/// Records an event, followed by the thread's state.
fn record(event: OMP_COLLECTORAPI_EVENT, state: &Request, region: Id, parent: Id) {
    const NOWHERE: Address = Address(0);

    let state = state.state();
    let wait_id = Address(state.map_or(0, |(_, wait_id)| wait_id));
    let meaning = EVENTS.iter().find(|(known, ..)| *known == event).map_or(Own, |(.., meaning)| *meaning);
    match meaning {
        Fork => {
            cold_path::compact(|_| ParallelBegin {
                encountering_task_data: Id::NULL,
                exit_frame: NOWHERE,
                enter_frame: NOWHERE,
                exit_frame_flags: ompt_sys::ompt_frame_flag_t(0),
                enter_frame_flags: ompt_sys::ompt_frame_flag_t(0),
                parallel_data: region,
                requested_parallelism: 0,
                flags: ompt_parallel_flag_t(0),
                codeptr_ra: NOWHERE,
            });
            cold_path::wide(|_| ParentRegion { parallel_data: region, parent_parallel_data: parent });
        }
        Join => cold_path::compact(|_| ParallelEnd {
            parallel_data: region,
            encountering_task_data: Id::NULL,
            flags: ompt_parallel_flag_t(0),
            codeptr_ra: NOWHERE,
        }),
        IsIdle(endpoint) => cold_path::wide(|_| Idle { endpoint }),
        Barrier(kind, endpoint) => cold_path::compact(|_| SyncRegionWait {
            endpoint,
            kind,
            parallel_data: region,
            task_data: Id::NULL,
            codeptr_ra: NOWHERE,
        }),
        Wait(kind, endpoint) => cold_path::wide(|_| MutexWait { endpoint, kind, wait_id }),
        Master(endpoint) => cold_path::compact(|_| Masked {
            endpoint,
            parallel_data: region,
            task_data: Id::NULL,
            codeptr_ra: NOWHERE,
        }),
        Single(endpoint) => cold_path::compact(|_| Work {
            endpoint,
            work_type: ompt_work_single_executor,
            parallel_data: region,
            task_data: Id::NULL,
            count: 1,
            codeptr_ra: NOWHERE,
        }),
        IsOrdered(endpoint) => cold_path::wide(|_| Ordered { endpoint, parallel_data: region }),
        Own => cold_path::wide(|_| CollectorEvent { number: event.0, parallel_data: region }),
    }
    if let Some((state, _)) = state {
        cold_path::wide(|_| ThreadState { state, wait_id });
    }
}
