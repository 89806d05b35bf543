//! The signal handler, which stores in the thread's ring what the thread is doing.
//!
//! It does not allocate, lock, call the loader or make system calls, and it does not access the library's thread-local
//! storage. It may run at any instruction of the program, the C library, the runtime and the tracer.
//! `tests/tests/samples.rs` runs programs in which it interrupts each of these.

use std::ffi::{c_int, c_void};
use std::ops::RangeInclusive;

use omptrace_trace_format::field::StackEnd;

use super::creators;
use super::unwind::{self, Found, NO_FRAME};
use crate::os::system;
use crate::os::time::clock;
use crate::recorder::recorder::Mode;
use crate::recorder::this_thread;
use crate::samples::loaded_code;
use crate::samples::processor::{Cache, Registers};
use crate::samples::ring_record::{Sample, Taken};
use crate::samples::runtime_state;
use crate::samples::sampled_threads;
use crate::samples::sampled_threads::{ROOM, Sampled};

/// From `POLL_IN` to `POLL_HUP` in <signal.h>.
const POLLED: RangeInclusive<c_int> = 1..=6;

/// The handler.
pub(super) extern "C" fn handle(_: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    // Saved, because the interrupted code may be about to read it.
    let errno = system::errno();
    // SAFETY: the kernel's structures, valid while the handler runs (SA_SIGINFO).
    let (information, context) = unsafe { (&*information, &*context.cast::<libc::ucontext_t>()) };
    // A timer's signal identifies the thread's record. Others may send the signal, too.
    if information.si_code == libc::SI_TIMER {
        // SAFETY: a timer's signal has these.
        let (number, overruns) =
            unsafe { (information.si_value().sival_ptr as usize, information.si_overrun()) };
        let record = sampled_threads::of_number(number).filter(|record| record.is_of_this_thread());
        if let Some(record) = record {
            sample(record, overruns, context);
        }
    }
    // A signal of a `perf_event_open` clock contains nothing else, but is delivered to the clock's thread. The pointer
    // to the recorder is in storage that exists from the thread's start on.
    if POLLED.contains(&information.si_code) {
        let number = this_thread::recorder().stream.sampled.get() as usize;
        let record = number.checked_sub(1).and_then(sampled_threads::of_number);
        if let Some(record) = record.filter(|record| record.is_of_this_thread()) {
            sample(record, 0, context);
            if !record.go_on() {
                sampled_threads::note_closed();
            }
        }
    }
    system::set_errno(errno);
}

fn sample(record: &Sampled, overruns: c_int, context: &libc::ucontext_t) {
    if Mode::current() != Mode::Record {
        return;
    }
    let ticks = clock::ticks();
    let weight_ns = (1 + overruns.max(0) as u64) * record.period_ns();
    let answer = runtime_state::ask();
    runtime_state::each_region(creators::want);
    let (cache, frames) = record.scratch();
    let found = stack(record, context, answer.frames, cache, frames);
    let sample = Taken::Sample(Sample { ticks, weight_ns, answer, inside: found.inside, end: found.end });
    if !record.push(&[&sample.words(), &frames[..found.frames]]) {
        record.lose(ticks, weight_ns);
    }
}

/// Unwinds the interrupted code's stack.
fn stack(
    record: &Sampled,
    context: &libc::ucontext_t,
    inside_of: [u64; 2],
    cache: &mut Cache,
    frames: &mut [u64],
) -> Found {
    let start = Registers::interrupted(context);
    let alternate = context.uc_stack.ss_sp as u64;
    let alternate = alternate..alternate.saturating_add(context.uc_stack.ss_size as u64);
    let here = 0_u8;
    let here = &raw const here as u64;
    let ours = record.stack_around(here, alternate);
    let room = here - ours.start;
    let stack = record.stack_above(start.stack_pointer());
    let end = match () {
        () if stack.is_empty() => StackEnd::other_stack,
        () if room < ROOM as u64 => StackEnd::no_room,
        () => {
            let code = loaded_code::loaded();
            unwind::find_signal_return(code, cache, ours, frames);
            return unwind::unwind(code, cache, start, stack, inside_of, frames);
        }
    };
    frames[0] = start.pc;
    Found { frames: 1, end, inside: [NO_FRAME; 2] }
}
