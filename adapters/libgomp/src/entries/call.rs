//! A call of one of the exported functions: who serves it, and whether a tool observes it.

use core::ffi::c_void;
use core::ptr;

use ompt_sys::ompt_thread_initial;

use crate::model::thread;
use crate::model::thread::Thread;
use crate::tool::lifecycle;
use crate::which_libgomp::functions::{self, Libgomp};
use crate::which_libgomp::serving::{self, Serving};

/// Where the program called an entry point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    /// The call's return address.
    pub(crate) return_address: *const c_void,
    /// The canonical frame address of the entry point: the stack pointer before the call.
    pub(crate) frame: *mut c_void,
}

/// A call of one of the exported functions.
pub(crate) struct Call {
    /// The libgomp that serves the caller.
    pub(crate) gomp: &'static Libgomp,
    /// The return address in the program (`codeptr_ra`).
    pub(crate) code: *const c_void,
    /// The frame address of the exported function.
    pub(crate) frame: *mut c_void,
    is_active: bool,
}

impl Call {
    /// Finds out what serves the caller, and searches for the tool at the first call of the process.
    #[inline(always)]
    pub(crate) fn enter(site: CallSite) -> Call {
        let (gomp, code) = match serving::of_caller(site.return_address) {
            Serving::Libgomp(gomp) => (gomp, site.return_address),
            Serving::TailCall => caller_of_tail_call(),
        };
        Call { gomp, code, frame: site.frame, is_active: !gomp.has_ompt && lifecycle::is_active() }
    }

    /// Whether a tool observes the call.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// The calling thread, which begins where it has not, if a tool observes it.
    #[inline(always)]
    pub(crate) fn observed(&self) -> Option<&'static Thread> {
        if !self.is_active {
            return None;
        }
        match thread::existing() {
            Some(thread) => {
                thread.gomp.set(self.gomp);
                Some(thread)
            }
            None => thread::begin(ompt_thread_initial, self.gomp),
        }
    }
}

#[cold]
fn caller_of_tail_call() -> (&'static Libgomp, *const c_void) {
    if let Some(thread) = thread::existing() {
        return (thread.gomp.get(), thread.function.get());
    }
    match serving::any() {
        Some(gomp) => (gomp, ptr::null()),
        None => functions::missing("a function of libgomp"),
    }
}
