//! The dependences of undeferred tasks, which LLVM's runtime and Intel's cannot report without harm.
//!
//! A thread may wait for the dependences of an undeferred task, or in a `taskwait` that has some. It then reports a task
//! with the flag `ompt_task_taskwait` (`__kmpc_omp_taskwait_deps_51`). If a tool wants `dependences`, the runtime then fills
//! an array. It writes behind the array if a dependence is `mutexinoutset` or `inoutset`: its heap is corrupt, and the
//! program dies. So the callback is taken back before the first such task, while the runtime reports that task's creation.
//! The dependences of deferred tasks are recorded until then. A user who names the callback gets it all the same.
//!
//! A runtime looks whether a callback is wanted, fills the array, and calls. What is taken back in between is a call through
//! null. So each thread notes that its runtime may be in between, from the creation of a task with dependences to
//! `dependences`. The thread that takes the callback back waits for these threads, and they wait for it:
//!
//! ```text
//! collecting = true; is it taken back? then wait     creation of a task, on each thread
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

/// How long threads wait for each other: one that created a task with an empty list of dependences never reports them.
const PATIENCE: Duration = Duration::from_millis(200);

/// The reason in the trace where the callback was taken back.
const WHY: &str = "not recorded, starting with the first undeferred task that has dependences (if clause, taskwait depend). This OpenMP runtime corrupts its memory there if a tool requests this callback and a dependence is mutexinoutset or inoutset. To record them anyway, use --events default,dependences";

/// The data that is needed to take the callback back; null where it stays.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

/// How far it is.
static STATE: AtomicU8 = AtomicU8::new(REGISTERED);
const REGISTERED: u8 = 0;
const TAKING: u8 = 1;
const TAKEN: u8 = 2;

#[derive(Debug)]
struct Watch {
    set_callback: ompt_set_callback_t,
    number: ompt_callbacks_t,
}

/// A runtime of this `version` begins; `number` is that of `dependences` if it is registered, and may be taken back.
pub(crate) fn watch(version: &str, set_callback: ompt_set_callback_t, number: Option<ompt_callbacks_t>) {
    let number = number.filter(|_| Fault::WritesBehindDependences.is_of(version));
    let watch = number.map(|number| Box::into_raw(Box::new(Watch { set_callback, number })));
    // Release; pairs with Acquire in `task_is_created`. What was there stays: a thread may be looking at it.
    STATE.store(REGISTERED, Ordering::Release);
    WATCH.store(watch.unwrap_or(null_mut()), Ordering::Release);
}

/// The callback is taken back in one process.
#[derive(Debug)]
pub(crate) struct TakenBack;

pub(crate) static SESSION_HOOKS: TakenBack = TakenBack;

impl SessionHooks for TakenBack {
    /// A forked child: a thread of its parent that was taking the callback back does not go on here.
    fn in_child(&self) {
        // Relaxed: the child has one thread.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = STATE.compare_exchange(TAKING, REGISTERED, success, failure);
    }
}

/// The runtime has reported the creation of a task with dependences, on this thread, and goes on when this returns.
pub(crate) fn task_is_created(is_taskwait: bool) {
    // SAFETY: null, or a box that `watch` left there for good. Acquire; pairs with Release in `watch`.
    let Some(watch) = (unsafe { WATCH.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // Acquire; pairs with Release in `take_back`: the runtime sees that the callback is gone.
    if STATE.load(Ordering::Acquire) == TAKEN {
        return;
    }
    if is_taskwait {
        return take_back(watch);
    }
    let collecting = &this_thread::recorder().stream.collecting;
    // SeqCst; pairs with `take_back`: either it sees this thread, or this thread sees it.
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
    // What this thread noted for an earlier task is past.
    this_thread::recorder().stream.collecting.end();
    let is_collecting = || recorder::all().any(|r| r.stream.collecting.is_going_on());
    wait_while(is_collecting);
    // SAFETY: an entry point, which may be called until the runtime is finalized; it takes a callback back.
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
