//! OMPT of 2014 ([`ompt_sys::tr2`]), with one row per event. Begin and end are separate events, and ids are the
//! runtime's, so rows have few arguments and nothing is written back.
//!
//! The runtime calls `ompt_initialize`, or gets it from `ompt_tool`. It looks for both only in the process, so
//! `omptrace record` preloads the library.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;

use ompt_sys::tr2::*;
use ompt_sys::tr6::omp_frame_t;
use ompt_sys::{
    ompt_callback_t, ompt_dependence_t, ompt_frame_flag_t, ompt_function_lookup_t, ompt_mutex_atomic,
    ompt_mutex_critical, ompt_mutex_lock, ompt_mutex_nest_lock, ompt_mutex_ordered, ompt_mutex_t,
    ompt_parallel_flag_t, ompt_scope_begin, ompt_scope_end, ompt_scope_endpoint_t, ompt_sync_region_barrier,
    ompt_sync_region_t, ompt_sync_region_taskgroup, ompt_sync_region_taskwait, ompt_task_complete,
    ompt_task_explicit, ompt_task_flag_t, ompt_task_implicit, ompt_task_initial, ompt_task_switch,
    ompt_thread_t, ompt_work_loop, ompt_work_sections, ompt_work_single_executor, ompt_work_single_other,
    ompt_work_t, ompt_work_workshare,
};
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Id};
use omptrace_trace_format::metadata::Registration;

use crate::callbacks;
use crate::callbacks::control_tool;
use crate::config::STATE;
use crate::dialects::ending;
use crate::dialects::prepared::{Prepared, configured};
use crate::dialects::thread_state;
use crate::os::log::warning;
use crate::os::threads::containment::contained;
use crate::os::threads::stack;
use crate::recorder::guarded::guarded;
use crate::recorder::this_thread;
use crate::runtime::entry_point::EntryPoint;
use crate::runtime::lookup::{Lookup, text};
use crate::session::cold_path;

/// The generation's name in the metadata.
const DIALECT: &str = "TR2";
/// The version number of the report that the runtime must support.
const REPORT: u32 = 1;

/// `ompt_get_parallel_team_size`; unset if the runtime does not have it.
static TEAM_SIZE: EntryPoint<ompt_get_parallel_team_size_t> = EntryPoint::new();

/// LLVM from 3.8 on calls this function to get the initializer.
#[unsafe(no_mangle)]
extern "C" fn ompt_tool() -> Option<ompt_initialize_t> {
    Some(ompt_initialize)
}

/// Called when the runtime is ready (6.1.1); returns 0 to refuse tracing. May be called again after `runtime_shutdown`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompt_initialize(
    lookup: ompt_function_lookup_t,
    runtime_version: *const c_char,
    ompt_version: c_uint,
) -> c_int {
    // SAFETY: the runtime passes a C string of its own.
    let version = unsafe { text(runtime_version) };
    // SAFETY: the first argument in this generation, too.
    let lookup = unsafe { Lookup::new(lookup) };
    match contained(|| stack::with_much(|| begin(lookup, &version, ompt_version))) {
        Ok(Ok(active)) => active.into(),
        Ok(Err(message)) => {
            warning!("{message}; the program runs without tracing");
            0
        }
        Err(_) => 0,
    }
}

/// Starts the session; returns whether the tool is active.
fn begin(lookup: Lookup, version: &str, ompt_version: u32) -> Result<bool, String> {
    const NO_EVENT: ompt_event_t = ompt_event_t(0);

    let Some(config) = configured() else {
        return Ok(false);
    };
    let set_callback = lookup.set_callback_of_tr2().ok_or("the OpenMP runtime has no ompt_set_callback")?;
    // SAFETY: an entry point of the runtime; no event has number 0, so this only queries.
    let granted = unsafe { set_callback(NO_EVENT, None) };
    if granted != 0 || ompt_version != REPORT || lookup.has_data_in_tr2() {
        return Err(format!(
            "this OpenMP runtime ({version}) has a variant of OMPT that no specification describes, such as OpenUH's variant of 2014 or the OMPT group's variant of 2015, and the arguments of its callbacks are different"
        ));
    }
    let chosen = config.events.clone();
    let prepared = Prepared::new(config)?;
    let get_state = lookup.get_state();
    thread_state::read_by(get_state.filter(|_| chosen.contains(&STATE)));
    TEAM_SIZE.set(lookup.team_size_of_tr2());
    let mut results = BTreeMap::new();
    for (event, today, callback) in EVENTS {
        let always = ["thread_begin", "thread_end", ""].contains(today);
        if !always && !chosen.contains(today) {
            continue;
        }
        // SAFETY: an entry point of the runtime; the row's function has the signature that the report gives to the event.
        let result = unsafe { set_callback(*event, Some(*callback)) } as u32;
        let name = event.name().unwrap_or_default();
        let registration =
            Registration { number: event.0, result, meaning: meaning(ompt_set_result_t(result)).into() };
        results.insert(name.into(), registration);
    }
    let ends = ompt_event_runtime_shutdown
        .name()
        .and_then(|name| results.get(name))
        .is_some_and(|end| ["sometimes", "always"].contains(&&*end.meaning));
    prepared.begin(lookup.describe(DIALECT, version, 0), results, BTreeMap::new());
    ending::finalize_is_due(ends);
    Ok(true)
}

/// Today's name of a result.
#[allow(non_upper_case_globals, reason = "constants are spelled as in C")]
fn meaning(result: ompt_set_result_t) -> &'static str {
    match result {
        ompt_set_result_registration_error => "error",
        ompt_set_result_event_may_occur_no_callback => "impossible",
        ompt_set_result_event_never_occurs => "never",
        ompt_set_result_event_may_occur_callback_some => "sometimes",
        ompt_set_result_event_may_occur_callback_always => "always",
        _ => "unknown",
    }
}

type Code = *const c_void;
type Frame = *const omp_frame_t;

/// Turns rows `event today (arguments) body` into functions and the list of events; `today` is the callback name with
/// which `OMPTRACE_EVENTS` selects the event. The begin and end events of a pair have the same name, and are registered
/// together.
macro_rules! events {
    ($($event:ident $today:literal ($($argument:ident: $type:ty),*) $body:expr;)*) => {
        mod functions {
            use super::*;
            $(pub(crate) unsafe extern "C" fn $event($($argument: $type),*) {
                guarded(|| $body);
            })*
        }

        static EVENTS: &[(ompt_event_t, &str, ompt_callback_t)] = &[$((
            $event,
            $today,
            // SAFETY: `ompt_set_callback` takes all callbacks as this type; the runtime calls each with the arguments of
            // its event (A.3).
            unsafe { transmute::<*const c_void, ompt_callback_t>(functions::$event as *const c_void) },
        )),*];
    };
}

const BEGIN: ompt_scope_endpoint_t = ompt_scope_begin;
const END: ompt_scope_endpoint_t = ompt_scope_end;

events! {
    ompt_event_parallel_begin "parallel_begin" (parent: u64, frame: Frame, region: u64, requested: u32, function: Code)
        parallel_begin(parent, frame, region, requested, function);
    ompt_event_parallel_end "parallel_end" (region: u64, task: u64) put(|| ParallelEnd {
        parallel_data: Id(region), encountering_task_data: Id(task), flags: ompt_parallel_flag_t(0), codeptr_ra: NOWHERE,
    });
    ompt_event_task_begin "task_create" (parent: u64, frame: Frame, task: u64, function: Code)
        task_begin(parent, frame, task, function);
    ompt_event_task_end "task_schedule" (task: u64) put(|| TaskComplete {
        prior_task_status: ompt_task_complete, prior_task_data: Id(task), next_task_data: Id::NULL,
    });
    ompt_event_thread_begin "thread_begin" (kind: ompt_thread_t, thread: u64)
        cold_path::compact(|_| ThreadBegin { thread_type: kind, thread_data: Id(thread) });
    ompt_event_thread_end "thread_end" (_kind: ompt_thread_t, thread: u64) {
        cold_path::compact(|_| ThreadEnd { thread_data: Id(thread) });
        cold_path::leave();
    };
    ompt_event_control "control_tool" (command: u64, modifier: u64)
        { control_tool::control(command, modifier, std::ptr::null_mut(), std::ptr::null()); };
    ompt_event_runtime_shutdown "" () ending::end("finalize");
    ompt_event_idle_begin "idle" (_thread: u64) cold_path::wide(|_| Idle { endpoint: BEGIN });
    ompt_event_idle_end "idle" (_thread: u64) cold_path::wide(|_| Idle { endpoint: END });
    ompt_event_wait_barrier_begin "sync_region_wait" (region: u64, task: u64) wait(BARRIER, BEGIN, region, task);
    ompt_event_wait_barrier_end "sync_region_wait" (region: u64, task: u64) wait(BARRIER, END, region, task);
    ompt_event_wait_taskwait_begin "sync_region_wait" (region: u64, task: u64) wait(TASKWAIT, BEGIN, region, task);
    ompt_event_wait_taskwait_end "sync_region_wait" (region: u64, task: u64) wait(TASKWAIT, END, region, task);
    ompt_event_wait_taskgroup_begin "sync_region_wait" (region: u64, task: u64) wait(TASKGROUP, BEGIN, region, task);
    ompt_event_wait_taskgroup_end "sync_region_wait" (region: u64, task: u64) wait(TASKGROUP, END, region, task);
    ompt_event_release_lock "mutex_released" (wait_id: u64) release(ompt_mutex_lock, wait_id);
    ompt_event_release_nest_lock_last "mutex_released" (wait_id: u64) release(ompt_mutex_nest_lock, wait_id);
    ompt_event_release_critical "mutex_released" (wait_id: u64) release(ompt_mutex_critical, wait_id);
    ompt_event_release_atomic "mutex_released" (wait_id: u64) release(ompt_mutex_atomic, wait_id);
    ompt_event_release_ordered "mutex_released" (wait_id: u64) release(ompt_mutex_ordered, wait_id);
    ompt_event_implicit_task_begin "implicit_task" (region: u64, task: u64)
        super::task(BEGIN, Id(region), task, ompt_task_implicit);
    ompt_event_implicit_task_end "implicit_task" (region: u64, task: u64)
        super::task(END, Id(region), task, ompt_task_implicit);
    ompt_event_initial_task_begin "implicit_task" (task: u64) super::task(BEGIN, Id::NULL, task, ompt_task_initial);
    ompt_event_initial_task_end "implicit_task" (task: u64) super::task(END, Id::NULL, task, ompt_task_initial);
    ompt_event_task_switch "task_schedule" (suspended: u64, resumed: u64) put(|| TaskSchedule {
        prior_task_status: ompt_task_switch, prior_task_data: Id(suspended), next_task_data: Id(resumed),
    });
    ompt_event_loop_begin "work" (region: u64, task: u64, function: Code)
        work(ompt_work_loop, BEGIN, region, task, function);
    ompt_event_loop_end "work" (region: u64, task: u64) work(ompt_work_loop, END, region, task, NO_CODE);
    ompt_event_sections_begin "work" (region: u64, task: u64, function: Code)
        work(ompt_work_sections, BEGIN, region, task, function);
    ompt_event_sections_end "work" (region: u64, task: u64) work(ompt_work_sections, END, region, task, NO_CODE);
    ompt_event_single_in_block_begin "work" (region: u64, task: u64, function: Code)
        work(ompt_work_single_executor, BEGIN, region, task, function);
    ompt_event_single_in_block_end "work" (region: u64, task: u64)
        work(ompt_work_single_executor, END, region, task, NO_CODE);
    ompt_event_single_others_begin "work" (region: u64, task: u64)
        work(ompt_work_single_other, BEGIN, region, task, NO_CODE);
    ompt_event_single_others_end "work" (region: u64, task: u64) work(ompt_work_single_other, END, region, task, NO_CODE);
    ompt_event_workshare_begin "work" (region: u64, task: u64, function: Code)
        work(ompt_work_workshare, BEGIN, region, task, function);
    ompt_event_workshare_end "work" (region: u64, task: u64) work(ompt_work_workshare, END, region, task, NO_CODE);
    ompt_event_master_begin "masked" (region: u64, task: u64) master(BEGIN, region, task);
    ompt_event_master_end "masked" (region: u64, task: u64) master(END, region, task);
    ompt_event_barrier_begin "sync_region" (region: u64, task: u64) sync(BARRIER, BEGIN, region, task);
    ompt_event_barrier_end "sync_region" (region: u64, task: u64) sync(BARRIER, END, region, task);
    ompt_event_taskwait_begin "sync_region" (region: u64, task: u64) sync(TASKWAIT, BEGIN, region, task);
    ompt_event_taskwait_end "sync_region" (region: u64, task: u64) sync(TASKWAIT, END, region, task);
    ompt_event_taskgroup_begin "sync_region" (region: u64, task: u64) sync(TASKGROUP, BEGIN, region, task);
    ompt_event_taskgroup_end "sync_region" (region: u64, task: u64) sync(TASKGROUP, END, region, task);
    ompt_event_release_nest_lock_prev "nest_lock" (wait_id: u64) again(END, wait_id);
    ompt_event_wait_lock "mutex_acquire" (wait_id: u64) acquire(ompt_mutex_lock, wait_id);
    ompt_event_wait_nest_lock "mutex_acquire" (wait_id: u64) acquire(ompt_mutex_nest_lock, wait_id);
    ompt_event_wait_critical "mutex_acquire" (wait_id: u64) acquire(ompt_mutex_critical, wait_id);
    ompt_event_wait_atomic "mutex_acquire" (wait_id: u64) acquire(ompt_mutex_atomic, wait_id);
    ompt_event_wait_ordered "mutex_acquire" (wait_id: u64) acquire(ompt_mutex_ordered, wait_id);
    ompt_event_acquired_lock "mutex_acquired" (wait_id: u64) acquired(ompt_mutex_lock, wait_id);
    ompt_event_acquired_nest_lock_first "mutex_acquired" (wait_id: u64) acquired(ompt_mutex_nest_lock, wait_id);
    ompt_event_acquired_nest_lock_next "nest_lock" (wait_id: u64) again(BEGIN, wait_id);
    ompt_event_acquired_critical "mutex_acquired" (wait_id: u64) acquired(ompt_mutex_critical, wait_id);
    ompt_event_acquired_atomic "mutex_acquired" (wait_id: u64) acquired(ompt_mutex_atomic, wait_id);
    ompt_event_acquired_ordered "mutex_acquired" (wait_id: u64) acquired(ompt_mutex_ordered, wait_id);
    ompt_event_init_lock "lock_init" (wait_id: u64) init(ompt_mutex_lock, wait_id);
    ompt_event_init_nest_lock "lock_init" (wait_id: u64) init(ompt_mutex_nest_lock, wait_id);
    ompt_event_destroy_lock "lock_destroy" (wait_id: u64) destroy(ompt_mutex_lock, wait_id);
    ompt_event_destroy_nest_lock "lock_destroy" (wait_id: u64) destroy(ompt_mutex_nest_lock, wait_id);
    ompt_event_flush "flush" (thread: u64) put(|| Flush { thread_data: Id(thread), codeptr_ra: NOWHERE });
    ompt_event_task_dependences "dependences" (task: u64, deps: *const ompt_dependence_t, ndeps: c_int)
        dependences(task, deps, ndeps);
    ompt_event_task_dependence_pair "task_dependence" (first: u64, second: u64)
        put(|| TaskDependence { src_task_data: Id(first), sink_task_data: Id(second) });
}

const NOWHERE: Address = Address(0);
const NO_CODE: Code = std::ptr::null();
const BARRIER: ompt_sync_region_t = ompt_sync_region_barrier;
const TASKWAIT: ompt_sync_region_t = ompt_sync_region_taskwait;
const TASKGROUP: ompt_sync_region_t = ompt_sync_region_taskgroup;

/// Records the event made by `row`, on the hot path if possible, else on the cold path.
fn put<R: CompactRow + Into<Event<'static>>>(row: impl Fn() -> R) {
    if !this_thread::recorder_if_near().try_put(|_| row()) {
        cold_path::compact(|_| row());
    }
}

/// An address inside of an outlined function, which serves as a return address: it gives the construct's name and first
/// line.
fn inside(function: Code) -> Address {
    let start = function as usize as u64;
    Address(if start == 0 { 0 } else { start + 1 })
}

/// Exit and enter frame; zeros for a null pointer.
fn frame(frame: Frame) -> (Address, Address) {
    // SAFETY: null, or the task's frame, valid during the callback (4.5).
    unsafe { frame.as_ref() }.map_or((NOWHERE, NOWHERE), |frame| {
        let address = |pointer: *mut c_void| Address(pointer as usize as u64);
        (address(frame.exit_frame), address(frame.enter_frame))
    })
}

fn parallel_begin(parent: u64, parents_frame: Frame, region: u64, requested: u32, function: Code) {
    put(|| {
        let (exit_frame, enter_frame) = frame(parents_frame);
        ParallelBegin {
            encountering_task_data: Id(parent),
            exit_frame,
            enter_frame,
            exit_frame_flags: ompt_frame_flag_t(0),
            enter_frame_flags: ompt_frame_flag_t(0),
            parallel_data: Id(region),
            requested_parallelism: requested,
            flags: ompt_parallel_flag_t(0),
            codeptr_ra: inside(function),
        }
    });
}

fn task_begin(parent: u64, parents_frame: Frame, task: u64, function: Code) {
    put(|| {
        let (exit_frame, enter_frame) = frame(parents_frame);
        TaskCreate {
            has_dependences: 0,
            encountering_task_data: Id(parent),
            exit_frame,
            enter_frame,
            exit_frame_flags: ompt_frame_flag_t(0),
            enter_frame_flags: ompt_frame_flag_t(0),
            new_task_data: Id(task),
            flags: ompt_task_explicit,
            codeptr_ra: inside(function),
        }
    });
}

fn task(endpoint: ompt_scope_endpoint_t, region: Id, task: u64, flags: ompt_task_flag_t) {
    let (parallel_data, task_data, index) = (region, Id(task), 0);
    if endpoint == BEGIN {
        let actual_parallelism = team_size();
        put(|| ImplicitTaskBegin { endpoint, parallel_data, task_data, actual_parallelism, index, flags });
    } else {
        put(|| ImplicitTaskEnd { endpoint, parallel_data, task_data, actual_parallelism: 0, index, flags });
    }
    thread_state::note();
}

/// The number of threads in this thread's region; 0 if the runtime does not report it.
fn team_size() -> u32 {
    const INNERMOST: c_int = 0;

    let get = TEAM_SIZE.get();
    // SAFETY: an entry point that may be called at any time (5.3).
    get.map_or(0, |get| unsafe { get(INNERMOST) }.max(0) as u32)
}

fn sync(kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, region: u64, task: u64) {
    put(|| SyncRegion {
        endpoint,
        kind,
        parallel_data: Id(region),
        task_data: Id(task),
        codeptr_ra: NOWHERE,
    });
}

fn wait(kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, region: u64, task: u64) {
    put(|| SyncRegionWait {
        endpoint,
        kind,
        parallel_data: Id(region),
        task_data: Id(task),
        codeptr_ra: NOWHERE,
    });
}

fn work(work_type: ompt_work_t, endpoint: ompt_scope_endpoint_t, region: u64, task: u64, function: Code) {
    put(|| Work {
        endpoint,
        work_type,
        parallel_data: Id(region),
        task_data: Id(task),
        count: 0,
        codeptr_ra: inside(function),
    });
}

fn master(endpoint: ompt_scope_endpoint_t, region: u64, task: u64) {
    put(|| Masked { endpoint, parallel_data: Id(region), task_data: Id(task), codeptr_ra: NOWHERE });
}

fn acquire(kind: ompt_mutex_t, wait_id: u64) {
    put(|| MutexAcquire { kind, hint: 0, r#impl: 0, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
    thread_state::note();
}

fn acquired(kind: ompt_mutex_t, wait_id: u64) {
    put(|| MutexAcquired { kind, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
    thread_state::note();
}

fn release(kind: ompt_mutex_t, wait_id: u64) {
    put(|| MutexReleased { kind, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
}

fn init(kind: ompt_mutex_t, wait_id: u64) {
    put(|| LockInit { kind, hint: 0, r#impl: 0, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
}

fn destroy(kind: ompt_mutex_t, wait_id: u64) {
    put(|| LockDestroy { kind, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
}

fn again(endpoint: ompt_scope_endpoint_t, wait_id: u64) {
    put(|| NestLock { endpoint, wait_id: Address(wait_id), codeptr_ra: NOWHERE });
}

fn dependences(task: u64, deps: *const ompt_dependence_t, ndeps: c_int) {
    cold_path::wide(|_| Dependences {
        task_data: Id(task),
        // SAFETY: null, or an array of that many, valid during the callback.
        deps: unsafe { callbacks::dependences_of(deps, ndeps) }.into(),
        ndeps,
    });
}
