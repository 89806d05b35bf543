//! The call stacks on which parallel regions and tasks are created.
//!
//! A region's stack is needed if a sample was taken in the region: a worker's stack starts in the runtime, so only the
//! creator's stack shows where the region was created. So the signal handler marks the regions that the thread is in.
//! The thread that ends a marked region stores its own stack, since it is in the frame that created the region. Regions
//! without samples cost one comparison.
//!
//! A task's stack is recorded if the user requests it, when the task is created, because it is not known yet whether
//! the task will be sampled.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::{ompt_data_t, ompt_frame_t, ompt_task_flag_t, ompt_task_taskwait, ompt_task_undeferred};

use super::session_samples;
use super::unwind;
use crate::callbacks;
use crate::os::signals;
use crate::os::time::clock;
use crate::recorder::callback::Function;
use crate::recorder::guarded::guarded;
use crate::recorder::this_thread;
use crate::samples::loaded_code;
use crate::samples::processor::Registers;
use crate::samples::ring_record::{Context, Taken};
use crate::samples::sampled_threads;
use crate::samples::sampled_threads::Sampled;

const SLOTS: usize = 4096;

/// The ids of marked regions, each in the slot of its hash. If two regions have the same slot, the stack of the first
/// is not stored.
static WANTED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

fn slot(region: u64) -> &'static AtomicU64 {
    // The stream's number is in the upper half, a counter in the lower.
    &WANTED[(region ^ region >> 37) as usize % SLOTS]
}

/// Called in the handler: marks a region whose creator's stack is needed.
pub(super) fn want(region: u64) {
    // Relaxed: only a request. If it is missed, the stack is not stored.
    slot(region).store(region, Ordering::Relaxed);
}

/// The callbacks that store stacks of regions' creators, with the names of the callbacks that they call.
pub(crate) static OF_REGIONS: &[(&str, Function)] = {
    // SAFETY: the function below has the signature of the callback of this name.
    unsafe { &[("parallel_end", Function::new(parallel_end as *const c_void))] }
};

/// The callbacks that store stacks of tasks' creators.
pub(crate) static OF_TASKS: &[(&str, Function)] = {
    // SAFETY: as above.
    unsafe { &[("task_create", Function::new(task_create as *const c_void))] }
};

/// Number of tasks whose creator's stack was not stored for lack of room.
static WITHOUT_STACK: AtomicU64 = AtomicU64::new(0);

/// In a forked child: starts counting from 0.
pub(super) fn forget() {
    WITHOUT_STACK.store(0, Ordering::Relaxed);
}

/// Number of tasks whose creator's stack was not stored for lack of room.
pub(super) fn tasks_without_stack() -> u64 {
    // Relaxed: a count.
    WITHOUT_STACK.load(Ordering::Relaxed)
}

unsafe extern "C" fn parallel_end(
    parallel_data: *mut ompt_data_t,
    encountering_task_data: *mut ompt_data_t,
    flags: c_int,
    codeptr_ra: *const c_void,
) {
    // SAFETY: valid during the callback, or null; every bit pattern of the union is a number.
    let region = unsafe { parallel_data.as_ref().map_or(0, |data| data.value) };
    // Relaxed: as in `want`.
    if region != 0 && slot(region).load(Ordering::Relaxed) == region {
        slot(region).store(0, Ordering::Relaxed);
        guarded(|| {
            store_stack(Created::Region(region));
        });
    }
    // SAFETY: the arguments of this call.
    unsafe { callbacks::parallel_end(parallel_data, encountering_task_data, flags, codeptr_ra) };
}

unsafe extern "C" fn task_create(
    encountering_task_data: *mut ompt_data_t,
    encountering_task_frame: *const ompt_frame_t,
    new_task_data: *mut ompt_data_t,
    flags: c_int,
    has_dependences: c_int,
    codeptr_ra: *const c_void,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        callbacks::task_create(
            encountering_task_data,
            encountering_task_frame,
            new_task_data,
            flags,
            has_dependences,
            codeptr_ra,
        );
    }
    // The stack of an undeferred task includes that of its creator. Waiting for dependences executes nothing.
    let flags = ompt_task_flag_t(flags as u32);
    let is_deferred = !flags.contains(ompt_task_undeferred) && !flags.contains(ompt_task_taskwait);
    // SAFETY: as in `parallel_end`; the callback has assigned the task's id.
    let task = unsafe { new_task_data.as_ref().map_or(0, |data| data.value) };
    if task != 0 && is_deferred {
        guarded(|| {
            if !store_stack(Created::Task(task)) {
                // Relaxed: a count.
                WITHOUT_STACK.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// The region or task that a thread created.
#[derive(Clone, Copy, Debug)]
enum Created {
    Region(u64),
    Task(u64),
}

/// Stores the calling thread's stack, on which it created the region or task. False if there is no room.
#[inline(never)]
fn store_stack(created: Created) -> bool {
    let number = this_thread::recorder().stream.sampled.get() as usize;
    let record = number.checked_sub(1).and_then(sampled_threads::of_number);
    let record = record.filter(|record| record.is_of_this_thread());
    // Without signals, because the handler uses the same ring.
    record.is_none_or(|record| signals::without_signals(|| store(record, created)))
}

fn store(record: &Sampled, created: Created) -> bool {
    let start = Registers::here();
    let stack = record.stack_above(start.stack_pointer());
    if stack.is_empty() {
        return true;
    }
    // Samples have priority over tasks' stacks. A region's stack can be stored at its next instance.
    if matches!(created, Created::Task(_)) && !record.has_room_to_spare() {
        return false;
    }
    let (cache, frames) = record.scratch();
    let found = unwind::unwind(loaded_code::loaded(), cache, start, stack, [0; 2], frames);
    let (parallel_data, task_data) = match created {
        Created::Region(region) => (region, 0),
        Created::Task(task) => (0, task),
    };
    let context = Taken::Context(Context { ticks: clock::ticks(), parallel_data, task_data, end: found.end });
    let is_stored = record.push(&[&context.words(), &frames[..found.frames]]);
    if matches!(created, Created::Task(_))
        && record.is_filling_up()
        && let Some(samples) = record.session().and_then(session_samples::of)
    {
        samples.hurry();
    }
    is_stored
}
