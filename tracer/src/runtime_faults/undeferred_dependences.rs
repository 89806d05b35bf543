//! Works around a heap corruption when LLVM's runtime, or Intel's, reports the dependences of undeferred tasks.
//!
//! A thread that waits for the dependences of an undeferred task, or in a `taskwait` with dependences, reports a task
//! with the flag `ompt_task_taskwait` (`__kmpc_omp_taskwait_deps_51`). If a tool wants `dependences`, the runtime then
//! fills an array. It writes past the array's end if a dependence is `mutexinoutset` or `inoutset`, which corrupts the
//! heap and crashes the program. So the callback is removed before the first such task, while the runtime reports the
//! task's creation. Until then, the dependences of deferred tasks are recorded. If the user names the callback
//! explicitly, it is not removed.
//!
//! The runtime checks whether a callback is registered, fills the array, and calls the callback. If it is removed in
//! between, the runtime calls a null pointer. So each thread marks that its runtime may be in between, from the
//! creation of a task with dependences until `dependences` is called. The thread that removes the callback waits for
//! these threads, and they wait for it:
//!
//! ```text
//! collecting = true; is it being removed? then wait     creation of a task, on each thread
//! state = Taking; is a thread collecting? then wait  creation of the first undeferred task
//! ```

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::time::Duration;

use ompt_sys::{ompt_callbacks_t, ompt_set_callback_t};
use omptrace_runtimes::Fault;

use crate::os::system;
use crate::os::time::clock::Stopwatch;
use crate::recorder::recorder;
use crate::recorder::this_thread;
use crate::session;
use crate::session::hooks::SessionHooks;

/// Maximum time that threads wait for each other: a thread that created a task with an empty list of dependences never
/// reports them.
const PATIENCE: Duration = Duration::from_millis(200);

/// The reason stored in the trace if the callback was removed.
const WHY: &str = "not recorded, starting with the first undeferred task that has dependences (a task with an if clause, or a taskwait with a depend clause). At such a task, this OpenMP runtime corrupts its memory if a tool requests the callback `dependences` and a dependence has the type mutexinoutset or inoutset. To record dependences anyway, use --events default,dependences";

/// The data needed to remove the callback; null if the callback should stay.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

/// The progress of the removal.
static STATE: AtomicU8 = AtomicU8::new(REGISTERED);
const REGISTERED: u8 = 0;
const TAKING: u8 = 1;
const TAKEN: u8 = 2;

#[derive(Debug)]
struct Watch {
    set_callback: ompt_set_callback_t,
    number: ompt_callbacks_t,
}

/// A runtime with this `version` starts. `number` is the number of `dependences` if that is registered and may be
/// removed.
pub(crate) fn watch(version: &str, set_callback: ompt_set_callback_t, number: Option<ompt_callbacks_t>) {
    let number = number.filter(|_| Fault::WritesBehindDependences.is_of(version));
    let watch = number.map(|number| Box::into_raw(Box::new(Watch { set_callback, number })));
    // Release; pairs with Acquire in `task_is_created`. The previous value is not freed, because a thread may be
    // reading it.
    STATE.store(REGISTERED, Ordering::Release);
    WATCH.store(watch.unwrap_or(null_mut()), Ordering::Release);
}

/// The part of a session that resets an unfinished removal in a forked child.
#[derive(Debug)]
pub(crate) struct TakenBack;

pub(crate) static SESSION_HOOKS: TakenBack = TakenBack;

impl SessionHooks for TakenBack {
    /// In a forked child: a removal that was in progress on another thread of the parent does not continue here.
    fn in_child(&self) {
        // Relaxed: the child has one thread.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = STATE.compare_exchange(TAKING, REGISTERED, success, failure);
    }
}

/// The runtime has reported the creation of a task with dependences on this thread, and continues when this returns.
pub(crate) fn task_is_created(is_taskwait: bool) {
    // SAFETY: null, or a box that `watch` has leaked. Acquire; pairs with Release in `watch`.
    let Some(watch) = (unsafe { WATCH.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // Acquire; pairs with Release in `take_back`: the runtime sees that the callback is removed.
    if STATE.load(Ordering::Acquire) == TAKEN {
        return;
    }
    if is_taskwait {
        return take_back(watch);
    }
    let collecting = &this_thread::recorder().stream.collecting;
    // SeqCst; pairs with `take_back`: either it sees that this thread is collecting, or this thread sees the removal.
    collecting.begin();
    if STATE.load(Ordering::SeqCst) != REGISTERED {
        collecting.end();
        wait_while(|| STATE.load(Ordering::Acquire) == TAKING);
    }
}

fn take_back(watch: &Watch) {
    // SeqCst; pairs with `task_is_created`.
    let (success, failure) = (Ordering::SeqCst, Ordering::Acquire);
    if STATE.compare_exchange(REGISTERED, TAKING, success, failure).is_err() {
        return wait_while(|| STATE.load(Ordering::Acquire) == TAKING);
    }
    // This thread's mark from an earlier task is out of date.
    this_thread::recorder().stream.collecting.end();
    let is_collecting = || recorder::all().any(|r| r.stream.collecting.is_going_on());
    wait_while(is_collecting);
    // SAFETY: an entry point, which may be called until the runtime is finalized; it removes a callback.
    unsafe { (watch.set_callback)(watch.number, None) };
    // Release; pairs with Acquire in `task_is_created` and above.
    STATE.store(TAKEN, Ordering::Release);
    if let Some(session) = session::of_this_process() {
        session.report_withheld("dependences", WHY);
    }
}

fn wait_while(condition: impl Fn() -> bool) {
    let start = Stopwatch::start();
    while condition() && start.elapsed() < PATIENCE {
        system::yield_now();
    }
}
