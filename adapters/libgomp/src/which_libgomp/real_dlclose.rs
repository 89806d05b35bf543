//! The loader's own `dlclose`, which this library replaces (`unload`).

use core::ffi::{c_char, c_int, c_void};
use core::mem;
use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Calls `f` with a handle of the library in `file`; `None` if the library is not loaded. The call neither loads nor
/// pins it.
///
/// # Safety
/// `file` is the loader's name of a library, or NULL for the program.
pub(crate) unsafe fn with<T>(file: *const c_char, f: impl FnOnce(*mut c_void) -> T) -> Option<T> {
    // SAFETY: by the caller's promise.
    let handle = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        interpose::forget_error();
        return None;
    }
    let made = f(handle);
    // SAFETY: the handle from above, which nothing else uses.
    unsafe { close(handle) };
    Some(made)
}

/// Calls the loader's `dlclose`.
///
/// # Safety
/// See `dlclose`.
pub(crate) unsafe fn close(handle: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // Relaxed: a thread that finds NULL looks the function up itself.
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        // SAFETY: the address of a function, only treated as a pointer; the next library that defines the function is
        // the loader or another tool.
        real = unsafe { interpose::next(c"dlclose") }.unwrap_or(null_mut());
        REAL.store(real, Ordering::Relaxed);
    }
    if real.is_null() {
        return -1;
    }
    // SAFETY: functions with this name have this type; by the caller's promise.
    unsafe { mem::transmute::<*mut c_void, Dlclose>(real)(handle) }
}
