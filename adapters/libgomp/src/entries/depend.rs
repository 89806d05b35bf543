//! Task dependences as GCC passes them, and waits for them (OpenMP 5.2, 15.9; 19.5.2.8).

use core::ffi::{c_int, c_long, c_void};
use core::ptr;
use std::sync::atomic::Ordering;

use ompt_sys::*;

use crate::entries::call::Call;
use crate::model::Task;
use crate::model::thread;
use crate::model::thread::Thread;
use crate::tool::lifecycle;
use crate::which_libgomp::functions;
use crate::which_libgomp::serving;
use crate::which_libgomp::serving::Serving;

/// An `omp_depend_t`: an address and the kind of dependence.
#[repr(C)]
struct DependObject {
    address: *mut c_void,
    kind: usize,
}

/// The kinds of a [`DependObject`].
fn kind_of_object(kind: usize) -> ompt_dependence_type_t {
    match kind {
        1 => ompt_dependence_type_in,
        2 => ompt_dependence_type_out,
        3 => ompt_dependence_type_inout,
        4 => ompt_dependence_type_mutexinoutset,
        _ => ompt_dependence_type_inoutset,
    }
}

/// Reports a task's dependences. GCC's list is `[all, out, addresses...]` or, since GCC 9, `[0, all, out,
/// mutexinoutset, in, addresses..., depend objects...]`. GCC does not distinguish `out` from `inout`.
///
/// # Safety
/// `list` has one of these formats.
pub(crate) unsafe fn report(task: &Task, list: *const *mut c_void) {
    if crate::tool::callbacks::get(ompt_callback_dependences).is_null() {
        return;
    }
    // SAFETY: by the caller's promise, here and below.
    let word = |place: usize| unsafe { list.add(place).read() };
    let number = |place: usize| word(place) as usize;
    let (all, outs, mutexes, ins, first) = match number(0) {
        0 => (number(1), number(2), number(3), number(4), 5),
        all => (all, number(1), 0, all.saturating_sub(number(1)), 2),
    };
    let dependence = |place: usize| {
        let address = word(first + place);
        let (address, kind) = if place < outs {
            (address, ompt_dependence_type_inout)
        } else if place < outs + mutexes {
            (address, ompt_dependence_type_mutexinoutset)
        } else if place < outs + mutexes + ins {
            (address, ompt_dependence_type_in)
        } else {
            // SAFETY: the remaining addresses are those of depend objects.
            let object = unsafe { &*address.cast::<DependObject>() };
            (object.address, kind_of_object(object.kind))
        };
        ompt_dependence_t { variable: ompt_data_t { ptr: address }, dependence_type: kind }
    };
    let dependences: Vec<ompt_dependence_t> = (0..all).map(dependence).collect();
    report!(
        ompt_callback_dependences as ompt_callback_dependences_t,
        task.data(),
        dependences.as_ptr(),
        all as c_int
    );
}

entry! {
    fn GOMP_taskwait(), call => {
        let real = real!(call.gomp, GOMP_taskwait);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.wait(ompt_sync_region_taskwait, &call, real);
    }
}

/// The flags of a `taskwait` with dependences, which a tool sees as a task without code.
const TASKWAIT_FLAGS: ompt_task_flag_t = ompt_task_flag_t(
    ompt_task_explicit.0 | ompt_task_taskwait.0 | ompt_task_undeferred.0 | ompt_task_mergeable.0,
);

/// Like [`TASKWAIT_FLAGS`], for a `taskwait` with `nowait`.
const TASKWAIT_NOWAIT_FLAGS: ompt_task_flag_t =
    ompt_task_flag_t(ompt_task_explicit.0 | ompt_task_taskwait.0 | ompt_task_mergeable.0);

impl Thread {
    /// Reports the completed task that represents a `taskwait` with dependences.
    ///
    /// # Safety
    /// `list` is as in [`report`].
    unsafe fn report_taskwait_task(&self, list: *const *mut c_void, call: &Call) {
        let task = self.tasks.take();
        self.create_task(task, TASKWAIT_FLAGS, true, call.code);
        // SAFETY: by the caller's promise.
        unsafe { report(task, list) };
        report!(
            ompt_callback_task_schedule as ompt_callback_task_schedule_t,
            task.data(),
            ompt_taskwait_complete,
            ptr::null_mut()
        );
        task.ran.store(true, Ordering::Relaxed);
        self.release(task);
    }
}

entry! {
    fn GOMP_taskwait_depend(list: *mut *mut c_void), call => {
        let real = real!(call.gomp, GOMP_taskwait_depend);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(list) };
        };
        thread.begin_wait(ompt_sync_region_taskwait, &call);
        // SAFETY: the program's own call, with its list of dependences.
        unsafe {
            real(list);
            thread.report_taskwait_task(list, &call);
        }
        thread.end_wait(ompt_sync_region_taskwait, &call);
    }
}

/// Runs the task that represents a `taskwait` with `nowait`, when its dependences are fulfilled.
unsafe extern "C-unwind" fn complete_taskwait(block: *mut c_void) {
    // SAFETY: `GOMP_taskwait_depend_nowait` below passed a reference to a task to libgomp.
    let task = unsafe { block.cast::<&'static Task>().read() };
    task.ran.store(true, Ordering::Relaxed);
    report!(
        ompt_callback_task_schedule as ompt_callback_task_schedule_t,
        task.data(),
        ompt_taskwait_complete,
        ptr::null_mut()
    );
    if let Some(thread) = thread::existing() {
        thread.release(task);
    }
}

// Since GCC 13. libgomp creates an empty task for it; the adapter has it create a task that reports its end instead.
entry! {
    fn GOMP_taskwait_depend_nowait(list: *mut *mut c_void), call => {
        let real = real!(call.gomp, GOMP_taskwait_depend_nowait);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(list) };
        };
        let encountering = thread.task();
        let mut task = thread.tasks.take();
        encountering.set_enter_frame(call.frame);
        thread.create_task(task, TASKWAIT_NOWAIT_FLAGS, true, call.code);
        // SAFETY: GCC passes such a list. The task's data are the reference, which libgomp copies.
        unsafe {
            report(task, list);
            let (size, align) = (size_of::<&Task>() as c_long, align_of::<&Task>() as c_long);
            let flags = crate::model::task_block::flag::DEPEND;
            real!(call.gomp, GOMP_task)(complete_taskwait, (&raw mut task).cast(), None, size, align, true, flags, list, 0, ptr::null_mut());
        }
        encountering.set_enter_frame(ptr::null_mut());
    }
}

entry! {
    fn GOMP_taskgroup_start(), call => {
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_taskgroup_start)() };
        if let Some(thread) = call.observed() {
            let task = thread.task();
            report!(ompt_callback_sync_region as ompt_callback_sync_region_t, ompt_sync_region_taskgroup, ompt_scope_begin, task.parallel_data(), task.data(), call.code);
        }
    }
}

entry! {
    fn GOMP_taskgroup_reduction_register(reductions: *mut usize), call => {
        if let Some(thread) = call.observed() {
            thread.note_artificial_team();
        }
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_taskgroup_reduction_register)(reductions) };
    }
}

entry! {
    fn GOMP_taskgroup_end(), call => {
        let real = real!(call.gomp, GOMP_taskgroup_end);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.begin_taskgroup_wait(&call);
        // SAFETY: the program's own call.
        unsafe { real() };
        thread.end_wait(ompt_sync_region_taskgroup, &call);
    }
}

impl Thread {
    /// The thread begins to wait at the end of its task group.
    pub(crate) fn begin_taskgroup_wait(&self, call: &Call) {
        let task = self.task();
        task.set_enter_frame(call.frame);
        report!(
            ompt_callback_sync_region_wait as ompt_callback_sync_region_t,
            ompt_sync_region_taskgroup,
            ompt_scope_begin,
            task.parallel_data(),
            task.data(),
            call.code
        );
        self.state.set(ompt_state_wait_taskgroup);
    }
}

// `ordered` with `doacross`: these functions take as many arguments as the loop nest has dimensions, and only libgomp
// knows how many. So all registers and the stack stay as they are, and the call continues in libgomp.

/// Reports a doacross dependence and returns libgomp's function. `which` is an index into the list of functions below.
unsafe extern "C-unwind" fn doacross(return_address: *const c_void, which: usize) -> *const c_void {
    let gomp = match serving::of_caller(return_address) {
        Serving::Libgomp(gomp) => gomp,
        Serving::TailCall => match thread::existing() {
            Some(thread) => thread.gomp.get(),
            None => functions::missing("a doacross function"),
        },
    };
    let kind = if which < 2 { ompt_dependence_type_sink } else { ompt_dependence_type_source };
    if !gomp.has_ompt
        && lifecycle::is_active()
        && let Some(task) = thread::existing().and_then(Thread::current)
    {
        let dependence = ompt_dependence_t { variable: ompt_data_none, dependence_type: kind };
        report!(
            ompt_callback_dependences as ompt_callback_dependences_t,
            task.data(),
            &raw const dependence,
            1
        );
    }
    match which {
        0 => real!(gomp, GOMP_doacross_wait) as *const c_void,
        1 => real!(gomp, GOMP_doacross_ull_wait) as *const c_void,
        2 => real!(gomp, GOMP_doacross_post) as *const c_void,
        _ => real!(gomp, GOMP_doacross_ull_post) as *const c_void,
    }
}

macro_rules! doacross_entries {
    ($($name:ident: $which:literal;)*) => {$(
        interpose::interpose! { unsafe extern "C-unwind" fn $name(), goes on in doacross($which) }
    )*};
}

doacross_entries! {
    GOMP_doacross_wait: 0;
    GOMP_doacross_ull_wait: 1;
    GOMP_doacross_post: 2;
    GOMP_doacross_ull_post: 3;
}
