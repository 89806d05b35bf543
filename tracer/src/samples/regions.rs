//! Regions whose creator's stack is wanted: those that a sample was taken in.
//!
//! A worker's stack begins in the runtime. Only its creator's stack says where the region was created. So the handler marks the
//! regions that the thread is in. Who ends a marked region stores its own stack, in the frame that created the region. Regions
//! without samples cost one comparison.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::ompt_data_t;

use super::code;
use super::record::{Context, Taken};
use super::threads::{self, Sampled};
use super::unwind::{self, Registers};
use crate::dialects::dialect::Function;
use crate::hot::callbacks;
use crate::hot::guard::guarded;
use crate::hot::tls;
use crate::os::clock;
use crate::os::system;

const SLOTS: usize = 4096;

/// Ids of regions, each in the slot of its number. Two regions with one slot: the stack of the first is not stored.
static WANTED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

fn slot(region: u64) -> &'static AtomicU64 {
    // The stream is in the upper half, its counter in the lower.
    &WANTED[(region ^ region >> 37) as usize % SLOTS]
}

/// In the handler: the stack of this region's creator is wanted.
pub(super) fn want(region: u64) {
    // Relaxed: a wish. Who misses it stores no stack.
    slot(region).store(region, Ordering::Relaxed);
}

/// The callbacks that store stacks, under the names of those that they call.
pub(crate) static CALLBACKS: &[(&str, Function)] = {
    // SAFETY: the function below has the signature of the callback of this name.
    unsafe { &[("parallel_end", Function::new(parallel_end as *const c_void))] }
};

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
        guarded(|| store_stack(region));
    }
    // SAFETY: the arguments of this call.
    unsafe { callbacks::parallel_end(parallel_data, encountering_task_data, flags, codeptr_ra) };
}

/// Stores the calling thread's stack, on which `region` was created.
#[inline(never)]
fn store_stack(region: u64) {
    let number = tls::recorder().stream.sampled.get() as usize;
    let record = number.checked_sub(1).and_then(threads::of_number);
    if let Some(record) = record.filter(|record| record.is_of_this_thread()) {
        // The handler uses the same ring.
        system::without_signals(|| store(record, region));
    }
}

fn store(record: &Sampled, region: u64) {
    let start = registers();
    let stack = record.stack_above(start.stack_pointer);
    if stack.is_empty() {
        return;
    }
    let (cache, frames) = record.scratch();
    let found = unwind::unwind(code::loaded(), cache, start, stack, [0; 2], frames);
    let context = Taken::Context(Context {
        ticks: clock::ticks(),
        parallel_data: region,
        end: found.end,
    });
    // Where there is no room the samples before were more important, and the next region is another chance.
    record.push(&[&context.words(), &frames[..found.frames]]);
}

/// Those of the calling function.
#[inline(always)]
pub(super) fn registers() -> Registers {
    let (pc, stack_pointer, frame_pointer);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) pc, out(reg) stack_pointer, out(reg) frame_pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    Registers {
        pc,
        stack_pointer,
        frame_pointer,
        r10: 0,
    }
}
