//! Barriers, and the reports that all waits have in common (OpenMP 5.2, 15.3 and 19.5.2.13).
//!
//! GCC calls `GOMP_barrier` for the implicit barriers of static loops, too. Only an implicit barrier directly after a
//! `single` can be distinguished from an explicit one.

use ompt_sys::*;

use crate::entries::call::Call;
use crate::model::sync_region::{report_begin, report_end};
use crate::model::thread::Thread;

/// The state of a thread that waits in a synchronization region of this kind.
fn waiting(kind: ompt_sync_region_t) -> ompt_state_t {
    match kind {
        ompt_sync_region_barrier_implicit_parallel => ompt_state_wait_barrier_implicit_parallel,
        ompt_sync_region_barrier_implicit_workshare => ompt_state_wait_barrier_implicit_workshare,
        ompt_sync_region_barrier_implementation => ompt_state_wait_barrier_implementation,
        ompt_sync_region_taskwait => ompt_state_wait_taskwait,
        ompt_sync_region_taskgroup => ompt_state_wait_taskgroup,
        _ => ompt_state_wait_barrier_explicit,
    }
}

impl Thread {
    /// The thread's task enters a synchronization region and waits in it.
    #[inline(always)]
    pub(crate) fn begin_wait(&self, kind: ompt_sync_region_t, call: &Call) {
        let task = self.task();
        task.set_enter_frame(call.frame);
        report_begin(kind, task.parallel_data(), task, call.code);
        self.state.set(waiting(kind));
    }

    /// The wait and the region end.
    #[inline(always)]
    pub(crate) fn end_wait(&self, kind: ompt_sync_region_t, call: &Call) {
        let task = self.task();
        self.state.set(self.team().working());
        report_end(kind, task.parallel_data(), task, call.code);
        task.set_enter_frame(core::ptr::null_mut());
    }

    /// Calls `real` and reports the wait in it, as [`Thread::begin_wait`] and [`Thread::end_wait`] do.
    #[inline(always)]
    pub(crate) fn wait<T: Copy>(
        &self,
        kind: ompt_sync_region_t,
        call: &Call,
        real: unsafe extern "C-unwind" fn() -> T,
    ) -> T {
        self.begin_wait(kind, call);
        // SAFETY: libgomp's own function, called by the program.
        let result = unsafe { real() };
        self.end_wait(kind, call);
        result
    }

    /// The kind of a barrier that the program calls.
    #[inline(always)]
    fn barrier_kind(&self) -> ompt_sync_region_t {
        self.end_single();
        if self.task().after_single.replace(false) {
            ompt_sync_region_barrier_implicit_workshare
        } else {
            ompt_sync_region_barrier_explicit
        }
    }
}

entry! {
    fn GOMP_barrier(), call => {
        let real = real!(call.gomp, GOMP_barrier);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.wait(thread.barrier_kind(), &call, real);
    }
}

entry! {
    fn GOMP_barrier_cancel() -> bool, call => {
        let real = real!(call.gomp, GOMP_barrier_cancel);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        thread.wait(thread.barrier_kind(), &call, real)
    }
}
