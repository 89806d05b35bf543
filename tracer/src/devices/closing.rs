//! Threads that offload while the program ends and the runtime closes its devices.
//!
//! LLVM's runtime forgets the program's regions, and closes devices, while other threads use them. Who comes back into it then crashes
//! the program. The longer the end takes, the surer that is, and a tool takes time at the end. So threads are held in their
//! callbacks, where they do not use the runtime. From `exit` on that is at their target regions, and from the first
//! `device_finalize` after it at all operations. `exit` waits for a moment until they are there. In `device_finalize` that would be too late: who is
//! still in the runtime then is lost, and only a fast end helps.
//!
//! A program may also join its threads in `exit`. So nobody is held for long, nor when the thread that ends the program goes on with
//! devices. A `device_finalize` without `exit`, as where a library is closed, holds nobody.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ompt_sys::{self as ompt, ompt_scope_endpoint_t};

use crate::os::system;
use crate::recorder::this_thread;
use crate::recorder::thread_stream::NO_DEVICE;

/// How long `exit` waits for target regions in progress.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long it waits for a thread that may be between two of them, and for each further one.
const QUIET: Duration = Duration::from_millis(2);
/// The time between two looks at them.
const LOOK: Duration = Duration::from_micros(50);
/// How long threads are held after `exit`, until a device is closed.
const HELD_AT_EXIT: Duration = Duration::from_millis(100);
/// How long threads are held after the last step of the end.
const HELD_AFTER_STEP: Duration = Duration::from_millis(300);
/// How long threads are held while the trace is written.
const HELD_FOR_TRACE: Duration = Duration::from_secs(10);

/// Whom to hold. Held threads sleep by it.
static STATE: AtomicU32 = AtomicU32::new(OPEN);
const OPEN: u32 = 0;
/// Who begins or ends a target region.
const EXITING: u32 = 1;
/// Who begins or ends an operation, too.
const CLOSING: u32 = 2;

/// The `CLOCK_MONOTONIC` up to which threads are held.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// The thread that ends the program, or closes devices.
static CLOSER: AtomicI32 = AtomicI32::new(0);
/// Threads in target regions, and those of them that are held.
static IN_REGIONS: AtomicI32 = AtomicI32::new(0);
static HELD: AtomicI32 = AtomicI32::new(0);
/// All threads that were held.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The recorder of a thread that has offloaded, and whether another one has.
static OFFLOADER: AtomicUsize = AtomicUsize::new(0);
static HAS_SEVERAL: AtomicBool = AtomicBool::new(false);
/// The process that notices its `exit`.
static WATCHED: AtomicU32 = AtomicU32::new(0);
/// The process that has noticed it.
static ENDING: AtomicU32 = AtomicU32::new(0);

fn now() -> Duration {
    Duration::from_nanos(system::clock_ns(libc::CLOCK_MONOTONIC))
}

fn state() -> u32 {
    // Relaxed, here and below: who sees it a moment later is held a moment later.
    STATE.load(Ordering::Relaxed)
}

fn hold_for(time: Duration) {
    let until = now() + time;
    UNTIL.store(until.as_nanos() as u64, Ordering::Relaxed);
}

fn set(state: u32) {
    STATE.store(state, Ordering::Relaxed);
    system::wake(&STATE, i32::MAX as u32);
}

/// Has [`exits`] called by `exit`, before what the runtime and the program's image have registered by now: the last comes first.
fn watch_exit() {
    let offloader = std::ptr::from_ref(this_thread::recorder()) as usize;
    let before = OFFLOADER.load(Ordering::Relaxed);
    if before == 0 {
        OFFLOADER.store(offloader, Ordering::Relaxed);
    } else if before != offloader && !HAS_SEVERAL.load(Ordering::Relaxed) {
        HAS_SEVERAL.store(true, Ordering::Relaxed);
    }
    let process = system::process_id();
    if WATCHED.load(Ordering::Relaxed) != process && WATCHED.swap(process, Ordering::Relaxed) != process {
        // SAFETY: a function of this library, which is never unloaded (`-z nodelete`).
        unsafe { libc::atexit(exits) };
    }
}

extern "C" fn exits() {
    // A child that was forked has not the threads that are counted.
    let process = system::process_id();
    if WATCHED.load(Ordering::Relaxed) != process || ENDING.swap(process, Ordering::Relaxed) == process {
        return;
    }
    CLOSER.store(system::thread_id(), Ordering::Relaxed);
    hold_for(HELD_AT_EXIT);
    set(EXITING);
    let is_alone = OFFLOADER.load(Ordering::Relaxed) == std::ptr::from_ref(this_thread::recorder()) as usize
        && !HAS_SEVERAL.load(Ordering::Relaxed);
    if !is_alone {
        wait_for_others();
    }
}

/// Waits for threads that offload to be held.
fn wait_for_others() {
    let own = i32::from(is_in_region());
    let begin = now();
    let (mut arrived, mut last) = (0, begin);
    while now() - begin < PATIENCE {
        let in_regions = IN_REGIONS.load(Ordering::Relaxed) - HELD.load(Ordering::Relaxed);
        let arrived_now = ARRIVED.load(Ordering::Relaxed);
        if arrived_now != arrived {
            (arrived, last) = (arrived_now, now());
        }
        if in_regions <= own && now() - last > QUIET {
            return;
        }
        system::sleep(LOOK);
    }
}

/// The calling thread closes a device.
pub(super) fn begins() {
    if ENDING.load(Ordering::Relaxed) != system::process_id() {
        return;
    }
    CLOSER.store(system::thread_id(), Ordering::Relaxed);
    hold_for(HELD_AFTER_STEP);
    STATE.store(CLOSING, Ordering::Relaxed);
}

/// The program uses devices again.
pub(super) fn goes_on() {
    if state() != OPEN {
        set(OPEN);
    }
}

/// The trace is about to be written.
pub(crate) fn process_ends() {
    if state() == CLOSING {
        hold_for(HELD_FOR_TRACE);
    }
}

/// The trace is written.
pub(crate) fn process_has_ended() {
    if state() == CLOSING {
        hold_for(HELD_AFTER_STEP);
        // Who sleeps for longer shall know.
        system::wake(&STATE, i32::MAX as u32);
    }
}

/// Holds the calling thread, which begins or ends a target region, where that is due.
pub(crate) fn hold_region(endpoint: ompt_scope_endpoint_t) {
    let begins = endpoint == ompt::ompt_scope_begin;
    if begins {
        IN_REGIONS.fetch_add(1, Ordering::Relaxed);
    } else if endpoint == ompt::ompt_scope_end {
        IN_REGIONS.fetch_sub(1, Ordering::Relaxed);
        watch_exit();
    }
    if state() != OPEN {
        hold(begins, begins);
    }
}

/// Holds the calling thread, which begins or ends an operation, where that is due. In a target region, the runtime may hold locks.
pub(crate) fn hold_operation(endpoint: ompt_scope_endpoint_t) {
    let is_in_region = is_in_region();
    if endpoint == ompt::ompt_scope_end && !is_in_region {
        watch_exit();
    }
    let state = state();
    if state == CLOSING || state == EXITING && !is_in_region {
        hold(is_in_region, false);
    }
}

fn is_in_region() -> bool {
    let stream = super::operations::stream();
    stream.is_some_and(|stream| stream.target_device.get() != NO_DEVICE)
}

#[cold]
fn hold(is_in_region: bool, begins_region: bool) {
    if CLOSER.load(Ordering::Relaxed) == system::thread_id() {
        // The program does not end yet.
        if begins_region {
            goes_on();
        }
        return;
    }
    ARRIVED.fetch_add(1, Ordering::Relaxed);
    HELD.fetch_add(is_in_region.into(), Ordering::Relaxed);
    loop {
        let state = state();
        let until = Duration::from_nanos(UNTIL.load(Ordering::Relaxed));
        let left = until.saturating_sub(now());
        if state == OPEN || left.is_zero() {
            break;
        }
        system::wait_while(&STATE, state, Some(left));
    }
    HELD.fetch_sub(is_in_region.into(), Ordering::Relaxed);
}
