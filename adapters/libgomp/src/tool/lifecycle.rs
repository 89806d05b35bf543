//! The search for a tool, its initialization and its finalization (OpenMP 5.2, 19.2 and 19.3.1).

use core::ffi::{c_uint, c_void};
use core::ptr;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use ompt_sys::*;

use super::entry_points::lookup;
use super::state::{
    HAS_EXACT_ENDS, IS_CANCELLABLE, PROCESS, STATE, TOOL, finalize_tool, found, is_of_this_process,
};
use crate::entries::devices;
use crate::model::thread;
use crate::model::thread::Thread;
use crate::model::thread_words;
use crate::start;
use crate::start::START_TOOL;
use crate::which_libgomp::release;
use crate::which_libgomp::serving;

/// The value of `_OPENMP` for OpenMP 5.2.
const OPENMP_VERSION: c_uint = 202_111;

static SEARCH: Once = Once::new();

/// Whether a tool observes the program. The first call searches for a tool.
#[inline(always)]
pub(crate) fn is_active() -> bool {
    // Acquire: pairs with the release in `search`, which comes after the registration of the callbacks.
    match STATE.load(Ordering::Acquire) {
        found::ACTIVE => true,
        found::NOT_SEARCHED => search_once(),
        _ => false,
    }
}

/// The thread that searches or has searched, identified by the address of its own word; 0 before the search.
static SEARCHER: AtomicUsize = AtomicUsize::new(0);

#[cold]
#[inline(never)]
fn search_once() -> bool {
    let this = thread_words::of_thread();
    // Relaxed: a thread finds its own address only if it stored it itself.
    match SEARCHER.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => SEARCH.call_once(search),
        // The search may call functions that the program replaces, which may use OpenMP. So may the tool before it is
        // active.
        Err(searcher) if searcher == this => return false,
        Err(_) => SEARCH.wait(),
    }
    STATE.load(Ordering::Acquire) == found::ACTIVE
}

/// Called in a child that is forked during the search for a tool. The searching thread does not exist in the child,
/// unless it forked itself. So no thread could wait for it, and the tool's initialization stays incomplete: the child
/// has no tool.
extern "C" fn search_is_lost() {
    // Relaxed: the child has one thread.
    let searcher = SEARCHER.load(Ordering::Relaxed);
    if STATE.load(Ordering::Relaxed) == found::NOT_SEARCHED
        && searcher != 0
        && searcher != thread_words::of_thread()
    {
        STATE.store(found::NONE, Ordering::Relaxed);
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
    let found = if is_active { found::ACTIVE } else { found::NONE };
    // Release: pairs with the acquire in `is_active`.
    STATE.store(found, Ordering::Release);
}

fn is_disabled() -> bool {
    env::var_os("OMP_TOOL").is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
}

/// The tools' libraries that were loaded when the process started: the value of the variable that named them, and the
/// functions found in them.
static LOADED: OnceLock<(OsString, Vec<usize>)> = OnceLock::new();

/// Called by the loader before the program starts, usually before all other constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn construct() {
        if !start::get().is_auditor {
            load();
        }
    }
    construct
};

/// Loads the tools' libraries when the process starts, unless a tool is in the global scope. Later, the thread that
/// first uses OpenMP may not be able to wait for the loader.
fn load() {
    // SAFETY: the function stays loaded: a preloaded library is never unloaded.
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

/// Loads the libraries that `list` names, and returns the addresses of their [`START_TOOL`] functions. Clears the
/// errors of libraries that cannot be loaded, so that the program's `dlerror` does not return them.
fn load_all(list: &OsStr) -> Vec<usize> {
    let libraries = list.as_bytes().split(|byte| *byte == b':');
    let libraries = libraries.filter(|library| !library.is_empty());
    let functions = libraries.filter_map(|library| {
        let library = CString::new(library).ok()?;
        // SAFETY: loads a library that the user names; then passes its handle and a string.
        let function = unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY);
            if handle.is_null() {
                interpose::forget_error();
                return None;
            }
            interpose::symbol(handle, START_TOOL)
        };
        (!function.is_null()).then_some(function as usize)
    });
    functions.collect()
}

/// The first tool that accepts: the program's own tool, otherwise the first one in `OMP_TOOL_LIBRARIES` (OpenMP 5.2,
/// 19.2.2).
fn find() -> Option<*mut ompt_start_tool_result_t> {
    let start = start::get();
    let loaded = LOADED.get();
    let known = loaded.map_or(&[][..], |(_, functions)| functions);
    let of_program = start.tool.or_else(|| {
        // Only the loader knows whether the library is in the global scope.
        // SAFETY: a constant of the loader.
        let find = || unsafe { interpose::symbol(libc::RTLD_DEFAULT, START_TOOL) as usize };
        let found = if start.is_defined_later(START_TOOL, known) { find() } else { 0 };
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

/// Calls the `ompt_start_tool` at this address, which returns NULL if the tool declines.
fn ask(function: usize) -> Option<*mut ompt_start_tool_result_t> {
    // SAFETY: functions with this name have this signature (OpenMP 5.2, 19.3.1).
    let result = unsafe {
        let function: ompt_start_tool_t = core::mem::transmute(function);
        let version = serving::any().map_or(release::UNKNOWN, |gomp| gomp.version);
        function(OPENMP_VERSION, version.as_ptr())
    };
    (!result.is_null()).then_some(result)
}

/// Initializes the tool; false if it wants no events.
fn initialize(tool: *mut ompt_start_tool_result_t) -> bool {
    // SAFETY: the tool's result stays valid until its finalizer returns (OpenMP 5.2, 19.3.1).
    let Some(function) = (unsafe { (*tool).initialize }) else {
        return false;
    };
    thread::prepare();
    // SAFETY: no arguments.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    TOOL.store(tool, Ordering::Relaxed);
    // What the tool registers from here on is called before the threads end, as it is with other runtimes, whose destructors
    // end them. SAFETY: the function stays loaded: a preloaded library is never unloaded.
    unsafe { libc::atexit(at_exit) };
    // SAFETY: the tool's own function and data.
    let wants_events = unsafe { function(lookup, 0, &raw mut (*tool).tool_data) } != 0;
    if wants_events {
        // SAFETY: the function stays loaded: a preloaded library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    wants_events
}

extern "C" fn at_exit() {
    if STATE.load(Ordering::Acquire) != found::ACTIVE {
        return;
    }
    interpose::plant_fault!();
    // In a child created by a direct system call, the threads of the pool are its parent's.
    let is_unknown = !is_of_this_process();
    if let Some(thread) = thread::existing()
        && !is_unknown
        && thread.is_outside_regions()
    {
        end_threads_of_pool(thread);
        thread::end();
    }
    // SAFETY: the process is exiting, so no thread of the program has to be in the tool.
    unsafe { finalize_tool() };
}

/// A further function for forked children, set once events of tasks are stored.
pub(crate) static LEAVE_EVENTS: OnceLock<fn()> = OnceLock::new();

/// Called in a forked child.
extern "C" fn in_child() {
    // SAFETY: no arguments.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    devices::forget();
    if let Some(leave) = LEAVE_EVENTS.get() {
        leave();
    }
    thread::begin_again();
}

/// Reports the ends of the threads of the calling thread's pool, each on its own thread: runs a last region with all of
/// them, which is not reported to the tool. At exit, outside of all regions, libgomp's threads end without any call.
fn end_threads_of_pool(thread: &Thread) {
    let gomp = thread.led_of.get();
    // The program may have unloaded the libgomp.
    if thread.led.get() < 2 || thread.has_artificial_team.get() || !gomp.is_there() {
        return;
    }
    // SAFETY: libgomp's function, without arguments.
    let is_outside = unsafe { real!(gomp, omp_get_level)() } == 0;
    if !is_outside {
        return;
    }
    // SAFETY: a function with the type of a region's function, which interprets the data correctly.
    unsafe {
        real!(gomp, GOMP_parallel)(end_thread, ptr::from_ref(thread).cast_mut().cast(), thread.led.get(), 0);
    }
}

/// Reports the end of the calling thread unless it is the [`Thread`] to which `leader` points.
unsafe extern "C-unwind" fn end_thread(leader: *mut c_void) {
    if thread::existing().is_some_and(|thread| !ptr::eq(ptr::from_ref(thread).cast(), leader)) {
        thread::end();
    }
}
