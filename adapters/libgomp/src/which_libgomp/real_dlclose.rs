//! The loader's own `dlclose`, which this library defines itself (`unload`).

use core::ffi::{c_char, c_int, c_void};
use core::mem;
use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// What `f` makes of a handle of the library in `file`; `None` where it is not loaded. It is neither loaded nor kept by that.
///
/// # Safety
/// `file` is the loader's name of a library, or NULL for the program.
pub(crate) unsafe fn with<T>(file: *const c_char, f: impl FnOnce(*mut c_void) -> T) -> Option<T> {
    // SAFETY: by this function's contract.
    let handle = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        interpose::forget_error();
        return None;
    }
    let made = f(handle);
    // SAFETY: the handle from above, which nothing else has.
    unsafe { close(handle) };
    Some(made)
}

/// Calls the loader's `dlclose`.
///
/// # Safety
/// As of `dlclose`.
pub(crate) unsafe fn close(handle: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // Relaxed: whoever finds NULL looks it up itself.
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        // SAFETY: a function's address, looked at as a pointer only; the next library that defines the function is the
        // loader's or another tool's.
        real = unsafe { interpose::next(c"dlclose") }.unwrap_or(null_mut());
        REAL.store(real, Ordering::Relaxed);
    }
    if real.is_null() {
        return -1;
    }
    // SAFETY: a function of this name has this type; the caller keeps its contract.
    unsafe { mem::transmute::<*mut c_void, Dlclose>(real)(handle) }
}
