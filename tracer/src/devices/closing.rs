//! Holds threads that offload while the program ends and the runtime closes its devices.
//!
//! LLVM's runtime drops the program's regions and closes devices while other threads still use them; a thread that
//! enters the runtime after that crashes the program. The longer the program's end takes, the more likely that is, and
//! a tool makes it longer. So threads are held in their callbacks, outside of the runtime: after `exit` was called, at
//! target regions, and after the first `device_finalize`, at all operations. `exit` waits shortly until the threads are
//! held. In `device_finalize` that would be too late: a thread still in the runtime at that time is lost, and only a
//! fast end helps.
//!
//! A program may also join its threads in `exit`. So no thread is held for long, and threads are released if the thread
//! that ends the program continues to use devices. A `device_finalize` without `exit`, for example because a library is
//! closed, holds no thread.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ompt_sys::{self as ompt, ompt_scope_endpoint_t};

use crate::os::system;
use crate::recorder::this_thread;
use crate::recorder::thread_stream::NO_DEVICE;

/// Maximum time that `exit` waits for target regions in progress.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time that `exit` waits for a thread that may be between two target regions, and for each further one.
const QUIET: Duration = Duration::from_millis(2);
/// Interval at which `exit` checks the threads.
const LOOK: Duration = Duration::from_micros(50);
/// Maximum time that threads are held after `exit`, until a device is closed.
const HELD_AT_EXIT: Duration = Duration::from_millis(100);
/// Maximum time that threads are held after the latest step of the end.
const HELD_AFTER_STEP: Duration = Duration::from_millis(300);
/// Maximum time that threads are held while the trace is written.
const HELD_FOR_TRACE: Duration = Duration::from_secs(10);

/// Which threads to hold, and the futex on which they sleep.
static STATE: AtomicU32 = AtomicU32::new(OPEN);
const OPEN: u32 = 0;
/// Threads that begin or end a target region.
const EXITING: u32 = 1;
/// Also threads that begin or end an operation.
const CLOSING: u32 = 2;

/// The time until which threads are held (`CLOCK_MONOTONIC`, in nanoseconds).
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// The thread that ends the program, or closes devices.
static CLOSER: AtomicI32 = AtomicI32::new(0);
/// Number of threads in target regions, and number of those that are held.
static IN_REGIONS: AtomicI32 = AtomicI32::new(0);
static HELD: AtomicI32 = AtomicI32::new(0);
/// Number of threads held so far.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The recorder of the first thread that offloaded, and whether another thread has offloaded.
static OFFLOADER: AtomicUsize = AtomicUsize::new(0);
static HAS_SEVERAL: AtomicBool = AtomicBool::new(false);
/// The process in which [`exits`] is registered.
static WATCHED: AtomicU32 = AtomicU32::new(0);
/// The process in which [`exits`] was called.
static ENDING: AtomicU32 = AtomicU32::new(0);

fn now() -> Duration {
    Duration::from_nanos(system::clock_ns(libc::CLOCK_MONOTONIC))
}

fn state() -> u32 {
    // Relaxed, here and below: a thread that sees the change a moment later is held a moment later.
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

/// Registers [`exits`] with `exit`. It is called before the functions that the runtime and the image have registered so
/// far, because the last one registered is called first.
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
    // A forked child does not have the threads that are counted.
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

/// Waits until the threads that offload are held.
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

/// The calling thread closes a device: from now on, threads are held at all operations.
pub(super) fn begins() {
    if ENDING.load(Ordering::Relaxed) != system::process_id() {
        return;
    }
    CLOSER.store(system::thread_id(), Ordering::Relaxed);
    hold_for(HELD_AFTER_STEP);
    STATE.store(CLOSING, Ordering::Relaxed);
}

/// The program uses devices again: releases all threads.
pub(super) fn goes_on() {
    if state() != OPEN {
        set(OPEN);
    }
}

/// The trace is about to be written: extends the time for which threads are held.
pub(crate) fn process_ends() {
    if state() == CLOSING {
        hold_for(HELD_FOR_TRACE);
    }
}

/// The trace is written: shortens the time for which threads are held.
pub(crate) fn process_has_ended() {
    if state() == CLOSING {
        hold_for(HELD_AFTER_STEP);
        // Wake sleeping threads, so that they use the new time.
        system::wake(&STATE, i32::MAX as u32);
    }
}

/// Holds the calling thread, which begins or ends a target region, if necessary.
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

/// Holds the calling thread, which begins or ends an operation, if necessary. In a target region, the runtime may hold
/// locks.
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
        // The thread that called `exit` starts another region, so the program does not end yet.
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
