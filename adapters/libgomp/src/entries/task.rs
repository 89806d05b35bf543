//! Explicit tasks (OpenMP 5.2, 12.5; 19.5.2.7 and 19.5.2.10).
//!
//! libgomp copies a task's data, or has it copied by a function of GCC's. A [`Header`] that names the [`Task`] goes
//! before the data and is copied with it; [`run`] takes it off again.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;
use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use ompt_sys::*;

use crate::entries::call::{Call, code_of};
use crate::entries::depend;
use crate::fork_lock::ForkLock;
use crate::model::task_block::{Header, copy, flag, layout, with_block};
use crate::model::thread;
use crate::model::thread::Thread;
use crate::model::{Task, event};
use crate::sanitizer;
use crate::tool::{lifecycle, state};
use crate::which_libgomp::functions::{CopyFunction, Libgomp, Outlined};

/// Tasks by their events. No hash map, whose first key is a system call that a filter may refuse.
type Events = BTreeMap<usize, &'static Task>;

/// The tasks whose event may still be fulfilled.
static EVENTS: ForkLock<Events> = ForkLock::new(BTreeMap::new());

fn events() -> MutexGuard<'static, Events> {
    lifecycle::LEAVE_EVENTS.get_or_init(|| || EVENTS.leave_to_parent());
    EVENTS.lock()
}

/// A task's flags as its creation reports them. To a tool, the task of a `taskwait` is not an explicit one.
fn reported(flags: ompt_task_flag_t) -> ompt_task_flag_t {
    match flags.contains(ompt_task_taskwait) {
        true => ompt_task_flag_t(flags.0 & !ompt_task_explicit.0),
        false => flags,
    }
}

impl Thread {
    /// Makes a task that was taken from the pool a child of the current one, and reports it.
    #[inline(always)]
    pub(crate) fn create_task(
        &self,
        task: &'static Task,
        flags: ompt_task_flag_t,
        has_dependences: bool,
        code: *const c_void,
    ) {
        self.create_child(self.task(), task, flags, has_dependences, code);
    }

    /// Like [`Thread::create_task`], of the task `parent`.
    pub(crate) fn create_child(
        &self,
        parent: &'static Task,
        task: &'static Task,
        flags: ompt_task_flag_t,
        has_dependences: bool,
        code: *const c_void,
    ) {
        let team = parent.team.get().unwrap_or_else(|| self.team());
        task.begin(team, Some(parent), flags, 0);
        task.hold_parent(parent);
        report!(
            ompt_callback_task_create as ompt_callback_task_create_t,
            parent.data(),
            parent.frame(),
            task.data(),
            reported(flags).0 as c_int,
            has_dependences.into(),
            code,
        );
        if state::is_cancellable() {
            team.created.add(self, task);
        }
        sanitizer::release(task);
    }

    /// The OMPT flags of a task that GCC's code creates.
    pub(crate) fn task_flags(&self, gomp: &Libgomp, flags: c_uint, is_deferred: bool) -> ompt_task_flag_t {
        let mut result = ompt_task_explicit;
        for (bit, flag) in [
            (flag::UNTIED, ompt_task_untied),
            (flag::FINAL, ompt_task_final),
            (flag::MERGEABLE, ompt_task_mergeable),
        ] {
            if flags & bit != 0 {
                result = result | flag;
            }
        }
        // SAFETY: libgomp's function, without arguments.
        if !is_deferred || self.is_outside_regions() || unsafe { real!(gomp, omp_in_final)() } != 0 {
            result = result | ompt_task_undeferred;
        }
        result
    }

    /// Runs a task's function: switches to it, and back when it is complete. `begun` is called in between.
    ///
    /// # Safety
    /// `function` is the task's, and `data` its data.
    #[inline(always)]
    pub(crate) unsafe fn run_task(
        &self,
        task: &'static Task,
        function: Outlined,
        data: *mut c_void,
        begun: impl FnOnce(),
    ) {
        sanitizer::acquire(task);
        let prior = self.task();
        let state = self.state.get();
        task.thread_num.set(prior.thread_num.get());
        task.ran.store(true, Ordering::Relaxed);
        report_schedule(prior, ompt_task_switch, task.data());
        self.set_current(Some(task));
        let outer = self.function.replace(function as *const c_void);
        self.state.set(self.team().working());
        begun();
        let here = 0u8;
        task.set_exit_frame((&raw const here).cast_mut().cast());
        // SAFETY: by the caller's promise.
        unsafe { function(data) };
        self.function.set(outer);
        self.state.set(state);
        // AcqRel: pairs with `fulfill`, of which only one comes first.
        let is_detached = task.event.load(Ordering::Relaxed) != event::NONE
            && task
                .event
                .compare_exchange(event::OPEN, event::DETACHED, Ordering::AcqRel, Ordering::Acquire)
                .is_ok();
        let status = if is_detached { ompt_task_detach } else { ompt_task_complete };
        report_schedule(task, status, prior.data());
        self.set_current(Some(prior));
        if let Some(team) = task.team.get() {
            sanitizer::release(team);
        }
        self.release(task);
    }
}

/// Reports that a thread stops a task, and what it runs then.
#[inline(always)]
fn report_schedule(prior: &Task, status: ompt_task_status_t, next: *mut ompt_data_t) {
    report!(ompt_callback_task_schedule as ompt_callback_task_schedule_t, prior.data(), status, next);
}

/// Runs a task in place of its function. `block` is a [`Header`], and the data where they were copied.
unsafe extern "C-unwind" fn run(block: *mut c_void) {
    // SAFETY: `GOMP_task` below passed such a block to libgomp.
    let header = unsafe { block.cast::<Header>().read() };
    let (Some(thread), Some(task)) = (thread::existing(), header.task) else {
        return;
    };
    // SAFETY: as above.
    unsafe {
        let data = header.data(block);
        if header.is_detachable {
            // libgomp wrote the event there. The variable of the program may be gone by now, so it is not written.
            data.cast::<*mut c_void>().write(header.words[0]);
            remember_event(thread, header.words[0], task);
        }
        thread.run_task(task, header.function, data, || ());
    }
}

/// Takes note of a task's event, until it is fulfilled.
fn remember_event(thread: &Thread, event: *mut c_void, task: &'static Task) {
    let mut events = events();
    if task.event.load(Ordering::Acquire) == event::FULFILLED {
        return;
    }
    let before = events.insert(event as usize, task);
    if before.is_some_and(|before| ptr::eq(before, task)) {
        return;
    }
    task.hold();
    drop(events);
    // A task that was discarded: libgomp gave its event's address to this one.
    if let Some(before) = before {
        thread.release(before);
    }
}

/// An event is fulfilled (OpenMP 5.2, 18.10.1).
fn fulfill(call: &Call, event: usize) {
    if !call.is_active() {
        return;
    }
    let mut events = events();
    let Some(task) = events.remove(&event) else {
        return;
    };
    // AcqRel: pairs with the end of `run_task`, of which only one comes first. Under the lock: nobody remembers the event
    // again.
    let is_early = task
        .event
        .compare_exchange(event::OPEN, event::FULFILLED, Ordering::AcqRel, Ordering::Acquire)
        .is_ok();
    drop(events);
    let status = if is_early { ompt_task_early_fulfill } else { ompt_task_late_fulfill };
    report_schedule(task, status, ptr::null_mut());
    match thread::existing() {
        Some(thread) => thread.release(task),
        // A thread that OpenMP does not know has no pool: the task is never used again where it was the last to know.
        None => {
            task.release();
        }
    }
}

entry_of_openmp! {
    fn omp_fulfill_event(event: usize), call => {
        fulfill(&call, event);
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, omp_fulfill_event)(event) }
    }
}

entry_of_openmp! {
    fn omp_fulfill_event_(event: *mut usize), call => {
        // SAFETY: Fortran passes the address of the event; the program's own call.
        unsafe {
            fulfill(&call, event.read());
            real!(call.gomp, omp_fulfill_event_)(event)
        }
    }
}

entry_in_memory! {
    fn GOMP_task(function: Outlined, data: *mut c_void, copy_data: Option<CopyFunction>, size: c_long, align: c_long, is_deferred: bool, flags: c_uint, dependences: *mut *mut c_void, priority: c_int, detach: *mut c_void), call => {
        let real = real!(call.gomp, GOMP_task);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(function, data, copy_data, size, align, is_deferred, flags, dependences, priority, detach) };
        };
        let encountering = thread.task();
        let task = thread.tasks.take();
        let has_dependences = flags & flag::DEPEND != 0;
        let is_detachable = flags & flag::DETACH != 0;
        encountering.set_enter_frame(call.frame);
        thread.create_task(task, thread.task_flags(call.gomp, flags, is_deferred), has_dependences, code_of(function));
        if has_dependences {
            // SAFETY: GCC passes such a list.
            unsafe { depend::report(task, dependences) };
        }
        if is_detachable {
            task.event.store(event::OPEN, Ordering::Relaxed);
            task.hold();
        }
        let (header_size, align) = layout(align);
        let size = size.max(0) as usize;
        let mut header = Header {
            words: [ptr::null_mut(); 3],
            task: Some(task),
            taskloop: ptr::null(),
            function,
            copy: copy_data,
            original: ptr::null_mut(),
            is_detachable,
            size: header_size,
        };
        // SAFETY: the program's own call, with a function of the same type and data that hold the program's.
        let create = |block: *mut c_void, copy: Option<CopyFunction>, size: usize| unsafe {
            real(run, block, copy, size as c_long, align as c_long, is_deferred, flags, dependences, priority, detach);
        };
        if copy_data.is_some() {
            header.original = data;
            create((&raw mut header).cast(), Some(copy), header_size + size);
        } else if !is_deferred {
            // It runs now, on the program's own data.
            header.original = data;
            create((&raw mut header).cast(), None, size_of::<Header>());
        } else {
            // SAFETY: the program's data have that size.
            unsafe { with_block(&header, align, data, size, |block| create(block, None, header_size + size)) };
        }
        if is_detachable {
            // From now on the program knows the event.
            if !task.ran.load(Ordering::Relaxed) {
                // SAFETY: libgomp wrote the event to the program's variable.
                remember_event(thread, unsafe { detach.cast::<*mut c_void>().read() }, task);
            }
            thread.release(task);
        }
        encountering.set_enter_frame(ptr::null_mut());
    }
}
