//! Another library that listens. The interfaces know one library each: where the user has set one, `omptrace record` passes its path
//! on, and it gets all calls, too.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The library that a variable names.
#[derive(Debug)]
pub(crate) struct NextTool {
    variable: &'static CStr,
    handle: AtomicPtr<c_void>,
    state: AtomicU8,
}

const UNKNOWN: u8 = 0;
const KNOWN: u8 = 1;

impl NextTool {
    pub(crate) const fn of(variable: &'static CStr) -> NextTool {
        NextTool { variable, handle: AtomicPtr::new(null_mut()), state: AtomicU8::new(UNKNOWN) }
    }

    /// Loads it, where there is one. For functions that interfaces call when they have loaded this library themselves.
    pub(crate) fn handle(&self) -> *mut c_void {
        // Acquire; pairs with Release below. Two threads may both load it, which gives the same handle.
        if self.state.load(Ordering::Acquire) == UNKNOWN {
            // SAFETY: the text of the environment, which the program does not change while a library of its own is loaded.
            let path: *const c_char = unsafe { libc::getenv(self.variable.as_ptr()) };
            // SAFETY: null or a C string.
            if !path.is_null() && unsafe { path.read() } != 0 {
                // SAFETY: the user's own library, which an interface would have loaded like this.
                let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY) };
                if handle.is_null() {
                    interpose::forget_error();
                }
                self.handle.store(handle, Ordering::Relaxed);
            }
            self.state.store(KNOWN, Ordering::Release);
        }
        self.handle.load(Ordering::Relaxed)
    }

    /// Its function of this name.
    ///
    /// # Safety
    /// `F` is the type of a function pointer, and a function of this name has this type.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let handle = self.handle();
        if handle.is_null() {
            return None;
        }
        // SAFETY: a handle of the loader.
        let found = unsafe { interpose::symbol(handle, name) };
        // SAFETY: by the caller's promise.
        (!found.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&found) })
    }
}
