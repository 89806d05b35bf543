//! Taskloops (OpenMP 5.2, 12.6; 19.5.2.5 to 19.5.2.7).
//!
//! libgomp creates all tasks of a taskloop within one call, so the tasks are reported before the call. When a chunk
//! begins, it is assigned to one of these tasks.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use ompt_sys::*;

use crate::entries::worksharing::{trip_count, unsigned_trip_count};
use crate::model::task_block::{Header, copy, flag, layout, with_block};
use crate::model::taskloop_tasks::Taskloop;
use crate::model::thread;
use crate::model::{Task, Work};
use crate::sanitizer;
use crate::which_libgomp::functions::{CopyFunction, Libgomp, Outlined};

/// The number of tasks that libgomp creates for `trips` iterations, by the clauses `grainsize` and `num_tasks` (OpenMP
/// 5.2, 12.6).
fn task_count(gomp: &Libgomp, trips: u64, flags: c_uint, number: u64) -> u64 {
    if flags & flag::GRAINSIZE != 0 {
        let grain = number.max(1);
        return if flags & flag::STRICT != 0 { trips.div_ceil(grain) } else { (trips / grain).max(1) };
    }
    let tasks = match number {
        // SAFETY: libgomp's function, without arguments.
        0 => unsafe { real!(gomp, omp_get_num_threads)() as u64 },
        number => number,
    };
    tasks.min(trips)
}

/// Runs a chunk instead of the taskloop's function. `block` is a [`Header`], followed by the data if they were copied.
unsafe extern "C-unwind" fn run(block: *mut c_void) {
    // SAFETY: `GOMP_taskloop` passed such a block to libgomp, and its header names a taskloop that waits for this
    // chunk.
    let (header, taskloop) = unsafe {
        let header = block.cast::<Header>().read();
        (header, &*header.taskloop)
    };
    sanitizer::acquire(taskloop);
    let Some(thread) = thread::existing() else {
        return;
    };
    let place = taskloop.begun.fetch_add(1, Ordering::Relaxed);
    let is_foreseen = place < taskloop.tasks.len();
    let task = if is_foreseen {
        taskloop.tasks[place]
    } else {
        let task = thread.tasks.take();
        thread.create_child(taskloop.encountering, task, taskloop.flags, false, taskloop.code);
        task
    };
    let [first, end, _] = header.words;
    // SAFETY: libgomp wrote the chunk's bounds into the header; the function reads them in the first words of the data.
    unsafe {
        let data = header.data(block);
        data.cast::<*mut c_void>().write(first);
        data.cast::<*mut c_void>().add(1).write(end);
        thread.run_task(task, header.function, data, || {
            thread.report_chunk(ompt_dispatch_taskloop_chunk, taskloop.work, first as i64, end as i64);
        });
        if is_foreseen {
            Taskloop::release(taskloop);
        }
    }
}

macro_rules! taskloops {
    ($($name:ident: $type:ty, |$flags:ident, $first:ident, $end:ident, $step:ident| $trips:expr;)*) => {$(
        entry_in_memory! {
            fn $name(function: Outlined, data: *mut c_void, copy_data: Option<CopyFunction>, size: c_long, align: c_long, $flags: c_uint, number: u64, priority: c_int, $first: $type, $end: $type, $step: $type), call => {
                let real = real!(call.gomp, $name);
                let trips = $trips;
                let Some(thread) = call.observed().filter(|_| trips > 0) else {
                    // SAFETY: the program's own call.
                    return unsafe { real(function, data, copy_data, size, align, $flags, number, priority, $first, $end, $step) };
                };
                let call = call.of_construct(function);
                let task = thread.task();
                let has_group = $flags & flag::NOGROUP == 0;
                // A task group of the adapter's own separates creation from the wait for the tasks. With reductions,
                // libgomp needs its own group.
                let has_own_group = has_group && $flags & flag::REDUCTION == 0;
                task.set_enter_frame(call.frame);
                if has_group {
                    report!(ompt_callback_sync_region as ompt_callback_sync_region_t, ompt_sync_region_taskgroup, ompt_scope_begin, task.parallel_data(), task.data(), call.code);
                }
                if has_own_group {
                    // SAFETY: libgomp's function, without arguments.
                    unsafe { real!(call.gomp, GOMP_taskgroup_start)() };
                }
                let work = Work { kind: ompt_work_taskloop, count: trips, first: $first as i64, step: match $step as i64 { 0 => 1, step => step } };
                report!(ompt_callback_work as ompt_callback_work_t, work.kind, ompt_scope_begin, task.parallel_data(), task.data(), trips, call.code);
                let ompt_flags = thread.task_flags(call.gomp, $flags, $flags & flag::IF != 0);
                let count = task_count(call.gomp, trips, $flags, number) as usize;
                let tasks: Vec<&'static Task> = (0..count)
                    .map(|_| {
                        let child = thread.tasks.take();
                        thread.create_task(child, ompt_flags, false, call.code);
                        child
                    })
                    .collect();
                let taskloop: *const Taskloop = Box::into_raw(Box::new(Taskloop {
                    work,
                    encountering: task,
                    flags: ompt_flags,
                    code: call.code,
                    tasks,
                    begun: AtomicUsize::new(0),
                    users: AtomicUsize::new(count + 1),
                }));
                // SAFETY: the taskloop stays until this call releases it.
                sanitizer::release(unsafe { &*taskloop });
                let (header_size, align) = layout(align);
                let size = size.max(0) as usize;
                let mut header = Header {
                    words: [ptr::null_mut(); 3],
                    task: None,
                    taskloop,
                    function,
                    copy: copy_data,
                    original: ptr::null_mut(),
                    is_detachable: false,
                    size: header_size,
                };
                if $flags & flag::REDUCTION != 0 {
                    thread.note_artificial_team();
                    // SAFETY: the third word of the data names the reductions.
                    header.words[2] = unsafe { data.cast::<*mut c_void>().add(2).read() };
                }
                let real_flags = if has_own_group { $flags | flag::NOGROUP } else { $flags };
                // SAFETY: the program's own call, with a function of the same type and data that contain the program's
                // data.
                let create = |block: *mut c_void, copy: Option<CopyFunction>| unsafe {
                    real(run, block, copy, (header_size + size) as c_long, align as c_long, real_flags, number, priority, $first, $end, $step);
                };
                if copy_data.is_some() {
                    header.original = data;
                    create((&raw mut header).cast(), Some(copy));
                } else {
                    // SAFETY: the program's data have this size.
                    unsafe { with_block(&header, align, data, size, |block| create(block, None)) };
                }
                report!(ompt_callback_work as ompt_callback_work_t, work.kind, ompt_scope_end, task.parallel_data(), task.data(), trips, call.code);
                if has_group {
                    thread.begin_taskgroup_wait(&call);
                    if has_own_group {
                        // SAFETY: ends the group that was begun above.
                        unsafe { real!(call.gomp, GOMP_taskgroup_end)() };
                    }
                    thread.end_wait(ompt_sync_region_taskgroup, &call);
                    // SAFETY: this call still has its reference.
                    let loop_ = unsafe { &*taskloop };
                    // Cancelled chunks never begin.
                    let begun = loop_.begun.load(Ordering::Relaxed).min(loop_.tasks.len());
                    for task in &loop_.tasks[begun..] {
                        thread.release(task);
                        // SAFETY: the chunk had a reference and will not run any more.
                        unsafe { Taskloop::release(taskloop) };
                    }
                }
                // SAFETY: this call had a reference.
                unsafe { Taskloop::release(taskloop) };
                task.set_enter_frame(ptr::null_mut());
            }
        }
    )*};
}

taskloops! {
    GOMP_taskloop: c_long, |flags, first, end, step| trip_count(first, end, step);
    GOMP_taskloop_ull: u64, |flags, first, end, step| unsigned_trip_count(flags & flag::UP != 0, first, end, step);
}
