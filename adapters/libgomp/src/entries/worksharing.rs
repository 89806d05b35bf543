//! Worksharing regions: loops, sections, `single`, `scope` (OpenMP 5.2, 11; 19.5.2.5 and 19.5.2.6).
//!
//! GCC inlines loops with a static schedule, so the adapter does not see them.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;

use ompt_sys::*;

use crate::model::thread::Thread;
use crate::model::{WithReductions, Work};
use crate::which_libgomp::functions::Libgomp;

/// The number of iterations of a loop of signed numbers; `end` is exclusive.
pub(crate) fn trip_count(first: i64, end: i64, step: i64) -> u64 {
    let (distance, step) = match step {
        0 => return 0,
        1.. if first < end => (end.wrapping_sub(first) as u64, step as u64),
        ..0 if first > end => (first.wrapping_sub(end) as u64, step.unsigned_abs()),
        _ => return 0,
    };
    distance.div_ceil(step)
}

/// Like [`trip_count`], for unsigned numbers. If `up` is false, `step` is the two's complement of a negative number.
pub(crate) fn unsigned_trip_count(up: bool, first: u64, end: u64, step: u64) -> u64 {
    let (distance, step) = match up {
        true if first < end => (end - first, step),
        false if first > end => (first - end, step.wrapping_neg()),
        _ => return 0,
    };
    if step == 0 { 0 } else { distance.div_ceil(step) }
}

/// The step, or 1 for 0: it is used as a divisor.
fn not_zero(step: i64) -> i64 {
    if step == 0 { 1 } else { step }
}

pub(crate) fn signed(kind: ompt_work_t, first: i64, end: i64, step: i64) -> Work {
    Work { kind, count: trip_count(first, end, step), first, step: not_zero(step) }
}

fn unsigned(kind: ompt_work_t, up: bool, first: u64, end: u64, step: u64) -> Work {
    Work {
        kind,
        count: unsigned_trip_count(up, first, end, step),
        first: first as i64,
        step: not_zero(step as i64),
    }
}

/// A loop whose iterations are already numbered from 0.
fn numbered(kind: ompt_work_t, count: u64) -> Work {
    Work { kind, count, first: 0, step: 1 }
}

pub(crate) fn sections(count: c_uint) -> Work {
    numbered(ompt_work_sections, count.into())
}

pub(crate) fn is_static(_: &Libgomp) -> ompt_work_t {
    ompt_work_loop_static
}

pub(crate) fn is_dynamic(_: &Libgomp) -> ompt_work_t {
    ompt_work_loop_dynamic
}

pub(crate) fn is_guided(_: &Libgomp) -> ompt_work_t {
    ompt_work_loop_guided
}

/// The schedule that `schedule(runtime)` selects.
pub(crate) fn of_environment(gomp: &Libgomp) -> ompt_work_t {
    let (mut kind, mut chunk): (c_int, c_int) = (0, 0);
    // SAFETY: libgomp's function writes two numbers.
    unsafe { real!(gomp, omp_get_schedule)(&raw mut kind, &raw mut chunk) };
    match kind & c_int::MAX {
        1 => ompt_work_loop_static,
        2 => ompt_work_loop_dynamic,
        3 => ompt_work_loop_guided,
        _ => ompt_work_loop_other,
    }
}

/// The schedule that GCC passes as a number; 0 means that of `schedule(runtime)`.
fn by_number(gomp: &Libgomp, schedule: c_long) -> ompt_work_t {
    match schedule & 0x7fff_ffff {
        1 => ompt_work_loop_static,
        2 => ompt_work_loop_dynamic,
        3 => ompt_work_loop_guided,
        0 => of_environment(gomp),
        _ => ompt_work_loop_other,
    }
}

impl Thread {
    /// The thread's task enters a worksharing region.
    #[inline(always)]
    pub(crate) fn begin_work(&self, work: Work, code: *const c_void) {
        self.end_single();
        let task = self.task();
        task.after_single.set(false);
        task.work.set(Some(work));
        task.work_code.set(code);
        self.report_work(work.kind, ompt_scope_begin, work.count, code);
    }

    /// The task leaves the worksharing region.
    #[inline(always)]
    pub(crate) fn end_work(&self, code: *const c_void) {
        self.end_single();
        if let Some(work) = self.task().work.take() {
            self.report_work(work.kind, ompt_scope_end, work.count, code);
        }
    }

    #[inline(always)]
    fn report_work(
        &self,
        kind: ompt_work_t,
        endpoint: ompt_scope_endpoint_t,
        count: u64,
        code: *const c_void,
    ) {
        let task = self.task();
        report!(
            ompt_callback_work as ompt_callback_work_t,
            kind,
            endpoint,
            task.parallel_data(),
            task.data(),
            count,
            code
        );
    }

    /// The thread has left its `single` by now: libgomp is not called at the end of a `single`.
    #[inline(always)]
    pub(crate) fn end_single(&self) {
        if let Some(code) = self.task().single.take() {
            self.report_work(ompt_work_single_executor, ompt_scope_end, 1, code);
        }
    }

    /// Ends the worksharing regions that a cancelled region left open.
    pub(crate) fn end_open_work(&self) {
        self.end_single();
        let task = self.task();
        if task.work.get().is_some() {
            self.end_work(task.work_code.get());
        }
    }

    pub(crate) fn report_dispatch(&self, kind: ompt_dispatch_t, instance: ompt_data_t) {
        let task = self.task();
        report!(
            ompt_callback_dispatch as ompt_callback_dispatch_t,
            task.parallel_data(),
            task.data(),
            kind,
            instance
        );
    }

    /// Reports the chunk from `first` to `end` (exclusive) of a loop or taskloop.
    #[inline(always)]
    pub(crate) fn report_chunk(&self, kind: ompt_dispatch_t, work: Work, first: i64, end: i64) {
        let distance = |from: i64, to: i64| {
            let (distance, step) = match work.step {
                step @ 1.. => (to.wrapping_sub(from) as u64, step as u64),
                step => (from.wrapping_sub(to) as u64, step.unsigned_abs()),
            };
            (distance, step)
        };
        let (before, step) = distance(work.first, first);
        let (within, _) = distance(first, end);
        let mut chunk = ompt_dispatch_chunk_t { start: before / step, iterations: within.div_ceil(step) };
        self.report_dispatch(kind, ompt_data_t { ptr: (&raw mut chunk).cast() });
    }

    /// Reports the loop's next chunk, which libgomp wrote to `first` and `end`, if `more` says that there is one.
    ///
    /// # Safety
    /// Both pointers are NULL, or libgomp wrote to them.
    #[inline(always)]
    unsafe fn next_chunk(&self, more: bool, first: *const i64, end: *const i64) -> bool {
        if more && !first.is_null() && !crate::tool::callbacks::get(ompt_callback_dispatch).is_null() {
            let work = self.task().work.get().unwrap_or(numbered(ompt_work_loop_other, 0));
            // SAFETY: by the caller's promise.
            let (first, end) = unsafe { (first.read(), end.read()) };
            self.report_chunk(ompt_dispatch_ws_loop_chunk, work, first, end);
        }
        more
    }
}

/// `NAME, NAME_OF_UNSIGNED: schedule`, and whether a chunk size follows the step.
macro_rules! loop_starts {
    ($($name:ident, $unsigned_name:ident: $kind:expr $(, $chunk:ident)?;)*) => {$(
        entry_in_memory! {
            fn $name(first: c_long, end: c_long, step: c_long $(, $chunk: c_long)?, from: *mut c_long, to: *mut c_long) -> bool, call => {
                let real = real!(call.gomp, $name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(first, end, step $(, $chunk)?, from, to) };
                };
                thread.begin_work(signed($kind(call.gomp), first, end, step), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk.
                unsafe { thread.next_chunk(real(first, end, step $(, $chunk)?, from, to), from, to) }
            }
        }
        entry_in_memory! {
            fn $unsigned_name(up: bool, first: u64, end: u64, step: u64 $(, $chunk: u64)?, from: *mut u64, to: *mut u64) -> bool, call => {
                let real = real!(call.gomp, $unsigned_name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(up, first, end, step $(, $chunk)?, from, to) };
                };
                thread.begin_work(unsigned($kind(call.gomp), up, first, end, step), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk. Differences are the same as for
                // signed numbers.
                unsafe { thread.next_chunk(real(up, first, end, step $(, $chunk)?, from, to), from.cast(), to.cast()) }
            }
        }
    )*};
}

loop_starts! {
    GOMP_loop_static_start, GOMP_loop_ull_static_start: is_static, chunk;
    GOMP_loop_dynamic_start, GOMP_loop_ull_dynamic_start: is_dynamic, chunk;
    GOMP_loop_guided_start, GOMP_loop_ull_guided_start: is_guided, chunk;
    GOMP_loop_nonmonotonic_dynamic_start, GOMP_loop_ull_nonmonotonic_dynamic_start: is_dynamic, chunk;
    GOMP_loop_nonmonotonic_guided_start, GOMP_loop_ull_nonmonotonic_guided_start: is_guided, chunk;
    GOMP_loop_ordered_static_start, GOMP_loop_ull_ordered_static_start: is_static, chunk;
    GOMP_loop_ordered_dynamic_start, GOMP_loop_ull_ordered_dynamic_start: is_dynamic, chunk;
    GOMP_loop_ordered_guided_start, GOMP_loop_ull_ordered_guided_start: is_guided, chunk;
    GOMP_loop_runtime_start, GOMP_loop_ull_runtime_start: of_environment;
    GOMP_loop_ordered_runtime_start, GOMP_loop_ull_ordered_runtime_start: of_environment;
    GOMP_loop_nonmonotonic_runtime_start, GOMP_loop_ull_nonmonotonic_runtime_start: of_environment;
    GOMP_loop_maybe_nonmonotonic_runtime_start, GOMP_loop_ull_maybe_nonmonotonic_runtime_start: of_environment;
}

macro_rules! loop_nexts {
    ($($name:ident: $type:ty;)*) => {$(
        entry! {
            fn $name(from: *mut $type, to: *mut $type) -> bool, call => {
                // SAFETY: the program's own call.
                let more = unsafe { real!(call.gomp, $name)(from, to) };
                match call.observed() {
                    // SAFETY: libgomp wrote the next chunk.
                    Some(thread) => unsafe { thread.next_chunk(more, from.cast(), to.cast()) },
                    None => more,
                }
            }
        }
    )*};
}

loop_nexts! {
    GOMP_loop_static_next: c_long;
    GOMP_loop_dynamic_next: c_long;
    GOMP_loop_guided_next: c_long;
    GOMP_loop_runtime_next: c_long;
    GOMP_loop_nonmonotonic_dynamic_next: c_long;
    GOMP_loop_nonmonotonic_guided_next: c_long;
    GOMP_loop_nonmonotonic_runtime_next: c_long;
    GOMP_loop_maybe_nonmonotonic_runtime_next: c_long;
    GOMP_loop_ordered_static_next: c_long;
    GOMP_loop_ordered_dynamic_next: c_long;
    GOMP_loop_ordered_guided_next: c_long;
    GOMP_loop_ordered_runtime_next: c_long;
    GOMP_loop_ull_static_next: u64;
    GOMP_loop_ull_dynamic_next: u64;
    GOMP_loop_ull_guided_next: u64;
    GOMP_loop_ull_runtime_next: u64;
    GOMP_loop_ull_nonmonotonic_dynamic_next: u64;
    GOMP_loop_ull_nonmonotonic_guided_next: u64;
    GOMP_loop_ull_nonmonotonic_runtime_next: u64;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next: u64;
    GOMP_loop_ull_ordered_static_next: u64;
    GOMP_loop_ull_ordered_dynamic_next: u64;
    GOMP_loop_ull_ordered_guided_next: u64;
    GOMP_loop_ull_ordered_runtime_next: u64;
}

/// Loops whose schedule is passed as a number, with task reductions or memory for `lastprivate(conditional:)`.
macro_rules! general_loop_starts {
    ($($name:ident, $unsigned_name:ident;)*) => {$(
        entry_in_memory! {
            fn $name(first: c_long, end: c_long, step: c_long, schedule: c_long, chunk: c_long, from: *mut c_long, to: *mut c_long, reductions: *mut usize, memory: *mut *mut c_void) -> bool, call => {
                let real = real!(call.gomp, $name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(first, end, step, schedule, chunk, from, to, reductions, memory) };
                };
                thread.begin_reductions(reductions);
                thread.begin_work(signed(by_number(call.gomp, schedule), first, end, step), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk.
                unsafe { thread.next_chunk(real(first, end, step, schedule, chunk, from, to, reductions, memory), from, to) }
            }
        }
        entry_in_memory! {
            fn $unsigned_name(up: bool, first: u64, end: u64, step: u64, schedule: c_long, chunk: u64, from: *mut u64, to: *mut u64, reductions: *mut usize, memory: *mut *mut c_void) -> bool, call => {
                let real = real!(call.gomp, $unsigned_name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(up, first, end, step, schedule, chunk, from, to, reductions, memory) };
                };
                thread.begin_reductions(reductions);
                thread.begin_work(unsigned(by_number(call.gomp, schedule), up, first, end, step), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk.
                unsafe { thread.next_chunk(real(up, first, end, step, schedule, chunk, from, to, reductions, memory), from.cast(), to.cast()) }
            }
        }
    )*};
}

general_loop_starts! {
    GOMP_loop_start, GOMP_loop_ull_start;
    GOMP_loop_ordered_start, GOMP_loop_ull_ordered_start;
}

impl Thread {
    /// The region that begins has task reductions if `reductions` is not NULL.
    fn begin_reductions(&self, reductions: *const usize) {
        if !reductions.is_null() {
            self.note_artificial_team();
            self.task().open_with_reductions(WithReductions::Worksharing);
        }
    }
}

/// Loops with `ordered(n)`: they pass the iteration counts of the nested loops; a chunk size follows for some.
macro_rules! doacross_starts {
    ($($name:ident: $type:ty, $kind:expr $(, $chunk:ident)?;)*) => {$(
        entry_in_memory! {
            fn $name(loops: c_uint, counts: *mut $type $(, $chunk: $type)?, from: *mut $type, to: *mut $type) -> bool, call => {
                let real = real!(call.gomp, $name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(loops, counts $(, $chunk)?, from, to) };
                };
                // SAFETY: GCC passes at least one count.
                let count = unsafe { counts.read() } as u64;
                thread.begin_work(numbered($kind(call.gomp), count), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk.
                unsafe { thread.next_chunk(real(loops, counts $(, $chunk)?, from, to), from.cast(), to.cast()) }
            }
        }
    )*};
}

doacross_starts! {
    GOMP_loop_doacross_static_start: c_long, is_static, chunk;
    GOMP_loop_doacross_dynamic_start: c_long, is_dynamic, chunk;
    GOMP_loop_doacross_guided_start: c_long, is_guided, chunk;
    GOMP_loop_doacross_runtime_start: c_long, of_environment;
    GOMP_loop_ull_doacross_static_start: u64, is_static, chunk;
    GOMP_loop_ull_doacross_dynamic_start: u64, is_dynamic, chunk;
    GOMP_loop_ull_doacross_guided_start: u64, is_guided, chunk;
    GOMP_loop_ull_doacross_runtime_start: u64, of_environment;
}

macro_rules! general_doacross_starts {
    ($($name:ident: $type:ty;)*) => {$(
        entry_in_memory! {
            fn $name(loops: c_uint, counts: *mut $type, schedule: c_long, chunk: $type, from: *mut $type, to: *mut $type, reductions: *mut usize, memory: *mut *mut c_void) -> bool, call => {
                let real = real!(call.gomp, $name);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real(loops, counts, schedule, chunk, from, to, reductions, memory) };
                };
                thread.begin_reductions(reductions);
                // SAFETY: GCC passes at least one count.
                let count = unsafe { counts.read() } as u64;
                thread.begin_work(numbered(by_number(call.gomp, schedule), count), call.code);
                // SAFETY: the program's own call; libgomp writes the first chunk.
                unsafe { thread.next_chunk(real(loops, counts, schedule, chunk, from, to, reductions, memory), from.cast(), to.cast()) }
            }
        }
    )*};
}

general_doacross_starts! {
    GOMP_loop_doacross_start: c_long;
    GOMP_loop_ull_doacross_start: u64;
}

/// The ends of loops and sections: with a barrier, with a cancellable barrier, and without a barrier.
macro_rules! ends {
    ($($end:ident, $end_cancel:ident, $end_nowait:ident;)*) => {$(
        entry! {
            fn $end(), call => {
                let real = real!(call.gomp, $end);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real() };
                };
                thread.end_work(call.code);
                thread.wait(ompt_sync_region_barrier_implicit_workshare, &call, real);
            }
        }
        entry! {
            fn $end_cancel() -> bool, call => {
                let real = real!(call.gomp, $end_cancel);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real() };
                };
                thread.end_work(call.code);
                thread.wait(ompt_sync_region_barrier_implicit_workshare, &call, real)
            }
        }
        entry! {
            fn $end_nowait(), call => {
                // SAFETY: the program's own call.
                unsafe { real!(call.gomp, $end_nowait)() };
                if let Some(thread) = call.observed() {
                    thread.end_work(call.code);
                }
            }
        }
    )*};
}

ends! {
    GOMP_loop_end, GOMP_loop_end_cancel, GOMP_loop_end_nowait;
    GOMP_sections_end, GOMP_sections_end_cancel, GOMP_sections_end_nowait;
}

impl Thread {
    /// Reports the section that libgomp assigned; 0 means that no section is left.
    fn next_section(&self, section: c_uint, code: *const c_void) -> c_uint {
        if section != 0 {
            self.report_dispatch(ompt_dispatch_section, ompt_data_t { ptr: code.cast_mut() });
        }
        section
    }
}

entry! {
    fn GOMP_sections_start(count: c_uint) -> c_uint, call => {
        let real = real!(call.gomp, GOMP_sections_start);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(count) };
        };
        thread.begin_work(sections(count), call.code);
        // SAFETY: the program's own call.
        thread.next_section(unsafe { real(count) }, call.code)
    }
}

entry! {
    fn GOMP_sections2_start(count: c_uint, reductions: *mut usize, memory: *mut *mut c_void) -> c_uint, call => {
        let real = real!(call.gomp, GOMP_sections2_start);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(count, reductions, memory) };
        };
        thread.begin_reductions(reductions);
        thread.begin_work(sections(count), call.code);
        // SAFETY: the program's own call.
        thread.next_section(unsafe { real(count, reductions, memory) }, call.code)
    }
}

entry! {
    fn GOMP_sections_next() -> c_uint, call => {
        // SAFETY: the program's own call.
        let section = unsafe { real!(call.gomp, GOMP_sections_next)() };
        match call.observed() {
            Some(thread) => thread.next_section(section, call.code),
            None => section,
        }
    }
}

impl Thread {
    /// The thread executes a `single` region, or skips it because another thread executes it.
    fn begin_single(&self, executes: bool, code: *const c_void) {
        let task = self.task();
        task.after_single.set(true);
        if executes {
            task.single.set(Some(code));
            self.report_work(ompt_work_single_executor, ompt_scope_begin, 1, code);
        } else {
            self.report_work(ompt_work_single_other, ompt_scope_begin, 1, code);
            self.report_work(ompt_work_single_other, ompt_scope_end, 1, code);
        }
    }
}

entry! {
    fn GOMP_single_start() -> bool, call => {
        let real = real!(call.gomp, GOMP_single_start);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.end_single();
        // SAFETY: the program's own call.
        let executes = unsafe { real() };
        thread.begin_single(executes, call.code);
        executes
    }
}

entry! {
    fn GOMP_single_copy_start() -> *mut c_void, call => {
        let real = real!(call.gomp, GOMP_single_copy_start);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.end_single();
        let (task, team) = (thread.task(), thread.team());
        let number = task.copies.get();
        task.copies.set(number.wrapping_add(1));
        // Threads that do not execute the region wait within the call.
        if team.is_region.get() && team.copies.are_of_another(number) {
            thread.begin_single(false, call.code);
            return thread.wait(ompt_sync_region_barrier_implementation, &call, real);
        }
        task.set_enter_frame(call.frame);
        // SAFETY: the program's own call.
        let data = unsafe { real() };
        task.set_enter_frame(ptr::null_mut());
        if data.is_null() {
            team.copies.begin(number);
        }
        thread.begin_single(data.is_null(), call.code);
        data
    }
}

entry! {
    fn GOMP_single_copy_end(data: *mut c_void), call => {
        let real = real!(call.gomp, GOMP_single_copy_end);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(data) };
        };
        thread.end_single();
        thread.begin_wait(ompt_sync_region_barrier_implementation, &call);
        // SAFETY: the program's own call.
        unsafe { real(data) };
        thread.end_wait(ompt_sync_region_barrier_implementation, &call);
    }
}

entry! {
    // GCC calls it only for scopes with task reductions.
    fn GOMP_scope_start(reductions: *mut usize), call => {
        if let Some(thread) = call.observed() {
            thread.end_single();
            thread.note_artificial_team();
            thread.task().open_with_reductions(WithReductions::Scope);
            thread.report_work(ompt_work_scope, ompt_scope_begin, 1, call.code);
        }
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_scope_start)(reductions) }
    }
}

entry! {
    // The end of every worksharing region and scope with task reductions: waits for the tasks and for the team.
    fn GOMP_workshare_task_reduction_unregister(cancelled: bool), call => {
        let real = real!(call.gomp, GOMP_workshare_task_reduction_unregister);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(cancelled) };
        };
        thread.end_single();
        if thread.task().close_with_reductions() == Some(WithReductions::Scope) {
            thread.report_work(ompt_work_scope, ompt_scope_end, 1, call.code);
        }
        thread.begin_wait(ompt_sync_region_barrier_implicit_workshare, &call);
        // SAFETY: the program's own call.
        unsafe { real(cancelled) };
        thread.end_wait(ompt_sync_region_barrier_implicit_workshare, &call);
    }
}
