//! The search for a tool, what it may ask, and its end (OpenMP 5.2, 19.2, 19.5.1 and 19.6.1).

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use ompt_sys::*;

use crate::libgomp::{self, Libgomp};
use crate::{callbacks, devices, parallel, release, sanitizer, start, target, thread};

/// OpenMP 5.2, as `_OPENMP` says it.
const OPENMP_VERSION: c_uint = 202_111;

/// The states of the search for the tool.
mod state {
    pub(super) const NOT_SEARCHED: u8 = 0;
    pub(super) const NONE: u8 = 1;
    pub(super) const ACTIVE: u8 = 2;
}

static STATE: AtomicU8 = AtomicU8::new(state::NOT_SEARCHED);
static SEARCH: Once = Once::new();
static TOOL: AtomicPtr<ompt_start_tool_result_t> = AtomicPtr::new(ptr::null_mut());
/// Regions may be cancelled, and their tasks discarded.
static IS_CANCELLABLE: AtomicBool = AtomicBool::new(false);
/// Regions end with a barrier of their own, after which their ends are reported.
static HAS_EXACT_ENDS: AtomicBool = AtomicBool::new(false);
/// The process that found the tool, or its child by fork.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Whether a tool observes the program; searches for one at the first call.
#[inline(always)]
pub(crate) fn is_active() -> bool {
    // Acquire: pairs with the release in `search`, behind which the callbacks are registered.
    match STATE.load(Ordering::Acquire) {
        state::ACTIVE => true,
        state::NOT_SEARCHED => search_once(),
        _ => false,
    }
}

/// Whether `OMP_CANCELLATION` allows cancellation.
#[inline(always)]
pub(crate) fn is_cancellable() -> bool {
    // Relaxed: set before the tool is active.
    IS_CANCELLABLE.load(Ordering::Relaxed)
}

/// Whether regions shall end with a barrier of their own. Not where they may be cancelled: no barrier may be added then.
#[inline(always)]
pub(crate) fn has_exact_ends() -> bool {
    // Relaxed: set before the tool is active.
    HAS_EXACT_ENDS.load(Ordering::Relaxed) && !is_cancellable()
}

/// The thread that searches, or has searched, by the address of a thread's own word; 0 before.
static SEARCHER: AtomicUsize = AtomicUsize::new(0);

#[cold]
#[inline(never)]
fn search_once() -> bool {
    let this = thread::address();
    // Relaxed: a thread finds its own address only where it has stored it itself.
    match SEARCHER.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => SEARCH.call_once(search),
        // What the search calls may be the program's, and use OpenMP. So may the tool, before it is active.
        Err(searcher) if searcher == this => return false,
        Err(_) => SEARCH.wait(),
    }
    STATE.load(Ordering::Acquire) == state::ACTIVE
}

/// Takes note of a fork while the tool was searched for, in the child. The thread that searches does not exist here, unless it has
/// forked itself. Nobody could wait for it, and what the tool has begun stays as it is. So the child has no tool.
extern "C" fn search_is_lost() {
    // Relaxed: the child has one thread.
    let searcher = SEARCHER.load(Ordering::Relaxed);
    if STATE.load(Ordering::Relaxed) == state::NOT_SEARCHED && searcher != 0 && searcher != thread::address()
    {
        STATE.store(state::NONE, Ordering::Relaxed);
    }
}

fn is_true(value: &OsStr) -> bool {
    value.eq_ignore_ascii_case("true") || value == "1"
}

fn search() {
    IS_CANCELLABLE
        .store(env::var_os("OMP_CANCELLATION").is_some_and(|value| is_true(&value)), Ordering::Relaxed);
    HAS_EXACT_ENDS
        .store(env::var_os("OMPTGOMP_EXACT_ENDS").is_some_and(|value| is_true(&value)), Ordering::Relaxed);
    let tool = if is_disabled() { None } else { find() };
    let is_active = tool.is_some_and(initialize);
    let found = if is_active { state::ACTIVE } else { state::NONE };
    // Release: pairs with the acquire in `is_active`.
    STATE.store(found, Ordering::Release);
}

fn is_disabled() -> bool {
    env::var_os("OMP_TOOL").is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
}

/// The function by which a tool begins (OpenMP 5.2, 19.3.1).
pub(crate) const START: &CStr = c"ompt_start_tool";

/// The tools' libraries that were loaded when the process began: the value that named them, and the functions found.
static LOADED: OnceLock<(OsString, Vec<usize>)> = OnceLock::new();

/// Loads the libraries of tools when the process begins, unless a tool is in the global scope. Later, the thread that first uses
/// OpenMP may not wait for the loader.
pub(crate) fn load() {
    // SAFETY: the function stays where it is: nothing unloads a preloaded library.
    unsafe { libc::pthread_atfork(None, None, Some(search_is_lost)) };
    if start::get().tool.is_some() {
        return;
    }
    if let Some(libraries) = env::var_os(LIBRARIES)
        && !is_disabled()
    {
        let found = load_all(&libraries);
        LOADED.get_or_init(|| (libraries, found));
    }
}

/// The variable that names libraries of tools (OpenMP 5.2, 21.19).
const LIBRARIES: &str = "OMP_TOOL_LIBRARIES";

/// Loads the libraries that `list` names. Gives what they define of [`START`].
fn load_all(list: &OsStr) -> Vec<usize> {
    let libraries = list.as_bytes().split(|byte| *byte == b':');
    let libraries = libraries.filter(|library| !library.is_empty());
    let functions = libraries.filter_map(|library| {
        let library = CString::new(library).ok()?;
        // SAFETY: loads the library that the user names; then a handle and a string.
        let function = unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY);
            if handle.is_null() {
                return None;
            }
            libc::dlsym(handle, START.as_ptr())
        };
        (!function.is_null()).then_some(function as usize)
    });
    functions.collect()
}

/// The first tool that wants to be used: the program's own, else the first of `OMP_TOOL_LIBRARIES` (OpenMP 5.2, 19.2.2).
fn find() -> Option<*mut ompt_start_tool_result_t> {
    let start = start::get();
    let loaded = LOADED.get();
    let known = loaded.map_or(&[][..], |(_, functions)| functions);
    let of_program = start.tool.or_else(|| {
        // The loader knows whether the library is of the global scope.
        // SAFETY: a string.
        let find = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, START.as_ptr()) as usize };
        let found = if start.is_defined_later(START, known) { find() } else { 0 };
        (found != 0).then_some(found)
    });
    if let Some(tool) = of_program.and_then(ask) {
        return Some(tool);
    }
    let libraries = env::var_os(LIBRARIES)?;
    match loaded {
        Some((loaded, found)) if *loaded == libraries => found.iter().copied().find_map(ask),
        _ => load_all(&libraries).into_iter().find_map(ask),
    }
}

/// Asks the `ompt_start_tool` at this address whether it wants to be used.
fn ask(function: usize) -> Option<*mut ompt_start_tool_result_t> {
    // SAFETY: a function of this name has this signature (OpenMP 5.2, 19.3.1).
    let result = unsafe {
        let function: ompt_start_tool_t = core::mem::transmute(function);
        let version = libgomp::any().map_or(release::UNKNOWN, |gomp| gomp.version);
        function(OPENMP_VERSION, version.as_ptr())
    };
    (!result.is_null()).then_some(result)
}

/// Initializes the tool; false where it wants no events.
fn initialize(tool: *mut ompt_start_tool_result_t) -> bool {
    // SAFETY: the tool's result stays valid until its finalize returns (OpenMP 5.2, 19.3.1).
    let Some(function) = (unsafe { (*tool).initialize }) else {
        return false;
    };
    thread::prepare();
    // SAFETY: no arguments.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    TOOL.store(tool, Ordering::Relaxed);
    // SAFETY: the tool's own function and data.
    let wants_events = unsafe { function(lookup, 0, &raw mut (*tool).tool_data) } != 0;
    if wants_events {
        // SAFETY: the function stays where it is: nothing unloads a preloaded library.
        unsafe { libc::atexit(at_exit) };
        // SAFETY: as above.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    wants_events
}

extern "C" fn at_exit() {
    if STATE.load(Ordering::Acquire) != state::ACTIVE {
        return;
    }
    sanitizer::plant_fault();
    // A child that came by a system call of its own: its pool's threads are its parent's.
    let is_unknown = !is_of_this_process();
    if let Some(thread) = thread::existing()
        && !is_unknown
        && thread.is_outside_regions()
    {
        parallel::end_threads_of_pool(thread);
        thread::end();
    }
    // SAFETY: no thread of the program is bound to be in the tool: it is exiting.
    unsafe { finalize_tool() };
}

/// Whether the tool's threads are those of this process, as far as the C library knows.
pub(crate) fn is_of_this_process() -> bool {
    // SAFETY: no arguments.
    let pid = unsafe { libc::getpid() };
    pid == PROCESS.load(Ordering::Relaxed)
}

/// What a forked child does besides, once events of tasks are noted.
pub(crate) static LEAVE_EVENTS: OnceLock<fn()> = OnceLock::new();

/// Takes note of a fork, in the child.
extern "C" fn in_child() {
    // SAFETY: no arguments.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    devices::forget();
    if let Some(leave) = LEAVE_EVENTS.get() {
        leave();
    }
    thread::begin_again();
}

/// The entry points that the tool may ask for (OpenMP 5.2, 19.6.1).
unsafe extern "C" fn lookup(name: *const c_char) -> Option<ompt_interface_fn_t> {
    // SAFETY: the tool passes a string.
    let name = unsafe { CStr::from_ptr(name) };
    /// The address of a function as its own type has it.
    macro_rules! entry_points {
        ($($text:literal => $function:ident as $type:ty,)*) => {
            match name.to_bytes() {
                $($text => {
                    let function: $type = $function;
                    #[allow(clippy::useless_transmute, reason = "one of them has this type itself")]
                    // SAFETY: the tool casts it back to the type of this name.
                    Some(unsafe { core::mem::transmute::<$type, ompt_interface_fn_t>(function) })
                })*
                _ => None,
            }
        };
    }
    entry_points! {
        b"ompt_set_callback" => set_callback as ompt_set_callback_t,
        b"ompt_get_callback" => get_callback as ompt_get_callback_t,
        b"ompt_get_thread_data" => get_thread_data as ompt_get_thread_data_t,
        b"ompt_get_parallel_info" => get_parallel_info as ompt_get_parallel_info_t,
        b"ompt_get_task_info" => get_task_info as ompt_get_task_info_t,
        b"ompt_get_task_memory" => get_task_memory as ompt_get_task_memory_t,
        b"ompt_get_state" => get_state as ompt_get_state_t,
        b"ompt_enumerate_states" => enumerate_states as ompt_enumerate_states_t,
        b"ompt_enumerate_mutex_impls" => enumerate_mutex_impls as ompt_enumerate_mutex_impls_t,
        b"ompt_get_unique_id" => get_unique_id as ompt_get_unique_id_t,
        b"ompt_finalize_tool" => finalize_tool as ompt_finalize_tool_t,
        b"ompt_get_num_procs" => get_num_procs as ompt_get_num_procs_t,
        b"ompt_get_num_places" => get_num_places as ompt_get_num_places_t,
        b"ompt_get_place_proc_ids" => get_place_proc_ids as ompt_get_place_proc_ids_t,
        b"ompt_get_place_num" => get_place_num as ompt_get_place_num_t,
        b"ompt_get_partition_place_nums" => get_partition_place_nums as ompt_get_partition_place_nums_t,
        b"ompt_get_proc_id" => get_proc_id as ompt_get_proc_id_t,
        b"ompt_get_num_devices" => get_num_devices as ompt_get_num_devices_t,
        b"ompt_get_target_info" => get_target_info as ompt_get_target_info_t,
    }
}

unsafe extern "C" fn set_callback(
    event: ompt_callbacks_t,
    callback: Option<ompt_callback_t>,
) -> ompt_set_result_t {
    callbacks::set(event, callback)
}

unsafe extern "C" fn get_callback(event: ompt_callbacks_t, callback: *mut Option<ompt_callback_t>) -> c_int {
    if event.0 == 0 || event.0 > ompt_callback_error.0 {
        return 0;
    }
    let registered = callbacks::get(event);
    if registered.is_null() {
        return 0;
    }
    // SAFETY: the tool passes a place for the callback, which it registered itself.
    unsafe { callback.write(Some(core::mem::transmute::<*mut (), ompt_callback_t>(registered))) };
    1
}

unsafe extern "C" fn get_thread_data() -> *mut ompt_data_t {
    thread::of_tool().map_or(ptr::null_mut(), thread::Thread::data)
}

unsafe extern "C" fn get_parallel_info(
    ancestor_level: c_int,
    parallel_data: *mut *mut ompt_data_t,
    team_size: *mut c_int,
) -> c_int {
    let mut team = thread::of_tool().and_then(thread::Thread::current).and_then(|task| task.team.get());
    for _ in 0..ancestor_level {
        team = team.and_then(|team| team.parent.get());
    }
    let Some(team) = team else { return 0 };
    // SAFETY: each is NULL or a place of the tool's (OpenMP 5.2, 19.6.1.13).
    unsafe {
        write(parallel_data, team.data());
        write(team_size, team.size.load(Ordering::Relaxed));
    }
    2
}

unsafe extern "C" fn get_task_info(
    ancestor_level: c_int,
    flags: *mut c_int,
    task_data: *mut *mut ompt_data_t,
    task_frame: *mut *mut ompt_frame_t,
    parallel_data: *mut *mut ompt_data_t,
    thread_num: *mut c_int,
) -> c_int {
    let mut task = thread::of_tool().and_then(thread::Thread::current);
    for _ in 0..ancestor_level {
        task = task.and_then(|task| task.parent.get());
    }
    let Some(task) = task else { return 0 };
    // SAFETY: each is NULL or a place of the tool's (OpenMP 5.2, 19.6.1.14).
    unsafe {
        write(flags, task.flags().0 as c_int);
        write(task_data, task.data());
        write(task_frame, task.frame());
        write(parallel_data, task.parallel_data());
        write(thread_num, task.thread_num.get());
    }
    2
}

/// Writes `value` unless `place` is NULL.
///
/// # Safety
/// `place` is NULL or valid for writing.
unsafe fn write<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { place.write(value) };
    }
}

unsafe extern "C" fn get_task_memory(addr: *mut *mut c_void, size: *mut usize, _block: c_int) -> c_int {
    // SAFETY: NULL or places of the tool's (OpenMP 5.2, 19.6.1.15).
    unsafe {
        write(addr, ptr::null_mut());
        write(size, 0);
    }
    0
}

unsafe extern "C" fn get_state(wait_id: *mut ompt_wait_id_t) -> c_int {
    let Some(thread) = thread::of_tool() else {
        return ompt_state_undefined.0 as c_int;
    };
    // SAFETY: NULL or a place of the tool's (OpenMP 5.2, 19.6.1.12).
    unsafe { write(wait_id, thread.wait_id.get()) };
    thread.state.get().0 as c_int
}

/// The states that a thread may be in, in the order of their enumeration.
const STATES: &[(ompt_state_t, &CStr)] = &[
    (ompt_state_undefined, c"ompt_state_undefined"),
    (ompt_state_work_serial, c"ompt_state_work_serial"),
    (ompt_state_work_parallel, c"ompt_state_work_parallel"),
    (ompt_state_wait_barrier_implicit_parallel, c"ompt_state_wait_barrier_implicit_parallel"),
    (ompt_state_wait_barrier_implicit_workshare, c"ompt_state_wait_barrier_implicit_workshare"),
    (ompt_state_wait_barrier_explicit, c"ompt_state_wait_barrier_explicit"),
    (ompt_state_wait_barrier_implementation, c"ompt_state_wait_barrier_implementation"),
    (ompt_state_wait_taskwait, c"ompt_state_wait_taskwait"),
    (ompt_state_wait_taskgroup, c"ompt_state_wait_taskgroup"),
    (ompt_state_wait_lock, c"ompt_state_wait_lock"),
    (ompt_state_wait_critical, c"ompt_state_wait_critical"),
    (ompt_state_wait_atomic, c"ompt_state_wait_atomic"),
    (ompt_state_wait_ordered, c"ompt_state_wait_ordered"),
    (ompt_state_idle, c"ompt_state_idle"),
];

unsafe extern "C" fn enumerate_states(
    current_state: c_int,
    next_state: *mut c_int,
    next_state_name: *mut *const c_char,
) -> c_int {
    let current = STATES.iter().position(|(state, _)| state.0 as c_int == current_state);
    let Some((state, name)) = current.and_then(|current| STATES.get(current + 1)) else {
        return 0;
    };
    // SAFETY: places of the tool's (OpenMP 5.2, 19.6.1.1).
    unsafe {
        write(next_state, state.0 as c_int);
        write(next_state_name, name.as_ptr());
    }
    1
}

/// The one way of mutual exclusion that is reported.
pub(crate) const MUTEX_IMPLEMENTATION: c_uint = 1;

unsafe extern "C" fn enumerate_mutex_impls(
    current_impl: c_int,
    next_impl: *mut c_int,
    next_impl_name: *mut *const c_char,
) -> c_int {
    if current_impl != ompt_mutex_impl_none {
        return 0;
    }
    // SAFETY: places of the tool's (OpenMP 5.2, 19.6.1.2).
    unsafe {
        write(next_impl, MUTEX_IMPLEMENTATION as c_int);
        write(next_impl_name, c"libgomp".as_ptr());
    }
    1
}

unsafe extern "C" fn get_unique_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Finalizes the tool, once (OpenMP 5.2, 19.6.1.19).
unsafe extern "C" fn finalize_tool() {
    let tool = TOOL.swap(ptr::null_mut(), Ordering::AcqRel);
    if tool.is_null() {
        return;
    }
    // SAFETY: the result of `ompt_start_tool`, which is valid until this returns.
    unsafe {
        if let Some(finalize) = (*tool).finalize {
            finalize(&raw mut (*tool).tool_data);
        }
    }
    STATE.store(state::NONE, Ordering::Release);
    callbacks::clear();
}

/// The libgomp that answers the tool's questions.
fn gomp() -> Option<&'static Libgomp> {
    let of_thread = thread::of_tool().map(|thread| thread.gomp.get());
    // The program may have unloaded the one that the thread called last.
    of_thread.filter(|gomp| gomp.is_there()).or_else(libgomp::any)
}

unsafe extern "C" fn get_num_procs() -> c_int {
    // SAFETY: libgomp's function, without arguments; so below.
    gomp().map_or(0, |gomp| unsafe { real!(gomp, omp_get_num_procs)() })
}

unsafe extern "C" fn get_num_places() -> c_int {
    gomp()
        .and_then(|gomp| gomp.omp_get_num_places)
        // SAFETY: as above.
        .map_or(0, |function| unsafe { function() })
}

unsafe extern "C" fn get_place_num() -> c_int {
    gomp()
        .and_then(|gomp| gomp.omp_get_place_num)
        // SAFETY: as above.
        .map_or(-1, |function| unsafe { function() })
}

unsafe extern "C" fn get_place_proc_ids(place: c_int, size: c_int, ids: *mut c_int) -> c_int {
    let Some(gomp) = gomp() else { return 0 };
    let (Some(count), Some(list)) = (gomp.omp_get_place_num_procs, gomp.omp_get_place_proc_ids) else {
        return 0;
    };
    // SAFETY: libgomp writes as many numbers as it has said, for which the tool has room.
    unsafe {
        let count = count(place);
        if count <= size {
            list(place, ids);
        }
        count
    }
}

unsafe extern "C" fn get_partition_place_nums(size: c_int, places: *mut c_int) -> c_int {
    let Some(gomp) = gomp() else { return 0 };
    let (Some(count), Some(list)) = (gomp.omp_get_partition_num_places, gomp.omp_get_partition_place_nums)
    else {
        return 0;
    };
    // SAFETY: as in `get_place_proc_ids`.
    unsafe {
        let count = count();
        if count <= size {
            list(places);
        }
        count
    }
}

unsafe extern "C" fn get_proc_id() -> c_int {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }
}

unsafe extern "C" fn get_num_devices() -> c_int {
    target::known_devices()
}

unsafe extern "C" fn get_target_info(
    _device_num: *mut u64,
    _target_id: *mut ompt_id_t,
    _host_op_id: *mut ompt_id_t,
) -> c_int {
    0
}
