//! A call of an exported function: the libgomp that serves it, and whether a tool observes it.

use core::ffi::c_void;
use core::ptr;

use ompt_sys::ompt_thread_initial;

use crate::model::thread;
use crate::model::thread::Thread;
use crate::tool::lifecycle;
use crate::which_libgomp::functions::{self, Libgomp, Outlined};
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
    /// Return address in the program, or the result of [`code_of`] (`codeptr_ra`).
    pub(crate) code: *const c_void,
    /// The frame address of the exported function.
    pub(crate) frame: *mut c_void,
    is_active: bool,
}

/// The code address with which a region, task or taskloop is reported: the entry of the function into which GCC
/// outlined it, plus 1, as for a return address.
///
/// GCC gives the call of libgomp the line of an earlier statement, and may merge the calls of several constructs. But
/// the outlined function begins in the line of the directive, and each construct has a function of its own.
pub(crate) fn code_of(function: Outlined) -> *const c_void {
    (function as *const c_void).wrapping_byte_add(1)
}

impl Call {
    /// The same call with the code address of the construct that GCC outlined into `function`.
    pub(crate) fn of_construct(self, function: Outlined) -> Call {
        Call { code: code_of(function), ..self }
    }

    /// Determines which libgomp serves the caller, and searches for the tool at the first call of the process.
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

    /// The calling thread, if a tool observes the call. Registers the thread if this has not been done.
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
