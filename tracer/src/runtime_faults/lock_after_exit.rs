//! Works around a crash of LLVM's runtime after its thread number 0 has ended.
//!
//! At the end of a `critical` region, LLVM's runtime and Intel's report `mutex_released` to a tool. On any thread, they
//! look up the code address in the record of thread 0 (`OMPT_LOAD_RETURN_ADDRESS(0)` in `__kmpc_end_critical`), the
//! first thread that used OpenMP. Once that thread has ended, the record does not exist and the program crashes, for
//! example if it computes in a thread that it creates, and then in another one. So the callback is removed before the
//! thread ends, and the next `mutex_acquired` reports that events will be missing. In most programs, that thread ends
//! with the program, and nothing is missing. LLVM's development version fixed this at the end of 2025; there is no way
//! to distinguish such a runtime from others.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use ompt_sys::{
    ompt_callback_mutex_t, ompt_callback_t, ompt_callbacks_t, ompt_mutex_t, ompt_set_callback_t,
    ompt_wait_id_t,
};
use omptrace_runtimes::Fault;

use crate::os::log::warning;
use crate::os::system;
use crate::recorder::callback::Callback;
use crate::recorder::callback::Function;
use crate::recorder::guarded::guarded;
use crate::session;
use crate::session::hooks::SessionHooks;

/// The data for [`thread_ends`]; null for other runtimes, or if `mutex_released` is not recorded.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

#[derive(Debug)]
struct Watch {
    set_callback: ompt_set_callback_t,
    released: ompt_callbacks_t,
    /// `mutex_acquired`, if it is recorded.
    acquired: Option<(ompt_callbacks_t, ompt_callback_t)>,
    /// The first thread's id; 0 before it begins.
    first: AtomicI32,
    reported: AtomicBool,
}

/// A runtime with this `version` starts, with these callbacks registered.
pub(crate) fn watch<'a>(
    version: &str,
    set_callback: ompt_set_callback_t,
    registered: impl Iterator<Item = &'a Callback>,
) {
    let functions: BTreeMap<&str, _> =
        registered.map(|callback| (callback.name, (callback.number, callback.function))).collect();
    let released = functions.get("mutex_released").map(|(number, _)| *number);
    let is_concerned = Fault::CrashesWithoutFirstThread.is_of(version);
    let watch = released.filter(|_| is_concerned).map(|released| {
        Box::into_raw(Box::new(Watch {
            set_callback,
            released,
            acquired: functions.get("mutex_acquired").copied(),
            first: AtomicI32::new(0),
            reported: AtomicBool::new(false),
        }))
    });
    // Release; pairs with Acquire in `current`. The previous value is not freed, because a thread may be reading it.
    WATCH.store(watch.unwrap_or(null_mut()), Ordering::Release);
}

fn current() -> Option<&'static Watch> {
    // SAFETY: null, or a box that `watch` has leaked. Acquire; pairs with Release in `watch`.
    unsafe { WATCH.load(Ordering::Acquire).as_ref() }
}

/// The part of a session that resets the first thread in a forked child.
#[derive(Debug)]
pub(crate) struct FirstThread;

pub(crate) static SESSION_HOOKS: FirstThread = FirstThread;

impl SessionHooks for FirstThread {
    /// In a forked child, its only thread becomes number 0; the callbacks are inherited.
    fn in_child(&self) {
        if let Some(watch) = current() {
            // Relaxed: the child has one thread.
            watch.first.store(0, Ordering::Relaxed);
        }
    }
}

/// The calling thread begins as an initial thread.
pub(crate) fn initial_thread_begins() {
    if let Some(watch) = current() {
        // Relaxed: only the number is shared; a thread compares it with its own.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = watch.first.compare_exchange(0, system::thread_id(), success, failure);
    }
}

/// The calling thread ends.
pub(crate) fn thread_ends() {
    let Some(watch) = current() else { return };
    // Relaxed: as above.
    if watch.first.load(Ordering::Relaxed) != system::thread_id() {
        return;
    }
    // SAFETY: entry points may be called until the runtime is finalized. One callback is removed; the other function
    // has the signature of its callback.
    unsafe {
        (watch.set_callback)(watch.released, None);
        if let Some((number, _)) = watch.acquired {
            let reporting = Function::new(acquired_unreported as *const c_void).0;
            (watch.set_callback)(number, Some(reporting));
        }
    }
}

/// `mutex_acquired` without the `mutex_released` that should follow.
unsafe extern "C" fn acquired_unreported(
    kind: ompt_mutex_t,
    wait_id: ompt_wait_id_t,
    codeptr_ra: *const c_void,
) {
    let Some(watch) = current() else { return };
    let Some((number, usual)) = watch.acquired else {
        return;
    };
    // SAFETY: the function that was registered for `mutex_acquired`, with the arguments of this call.
    unsafe {
        let usual: ompt_callback_mutex_t = std::mem::transmute(usual);
        usual(kind, wait_id, codeptr_ra);
        (watch.set_callback)(number, watch.acquired.map(|(_, function)| function));
    }
    // Relaxed: it only avoids repeating a message.
    if !watch.reported.swap(true, Ordering::Relaxed) {
        guarded(report);
    }
}

fn report() {
    let message = "the first thread that used OpenMP has ended; from now on, releases of mutexes are not recorded, because this OpenMP runtime would crash if it reported them";
    warning!("{message}");
    if let Some(session) = session::of_this_process() {
        session.report_messages(vec![message.to_owned()]);
    }
}
