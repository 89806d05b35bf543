//! The loader's own `dlclose`, which this library replaces (`unload`), and handles of loaded libraries.

use core::ffi::{c_char, c_int, c_void};
use core::mem;
use core::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The process is ending: destructors of libraries run.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Runs before the destructors of all libgomps, because the adapter is preloaded: glibc calls the destructors of
/// libraries in the order in which it loaded them, dependents first.
#[unsafe(link_section = ".fini_array")]
#[used]
static DESTRUCTOR: extern "C" fn() = {
    extern "C" fn destructor() {
        // Relaxed: this thread runs the destructors that call `dlclose` afterwards.
        IS_ENDING.store(true, Ordering::Relaxed);
    }
    destructor
};

/// Whether destructors of libraries run. After a library's destructor, `dlopen` would run its constructor again: libgomp's
/// then ends the process.
pub(crate) fn process_is_ending() -> bool {
    // Relaxed: see above.
    IS_ENDING.load(Ordering::Relaxed)
}

/// Calls `f` with a handle of the library in `file`; `None` if the library is not loaded, or the process is ending. The
/// call neither loads nor pins it.
///
/// # Safety
/// `file` is the loader's name of a library, or NULL for the program.
pub(crate) unsafe fn with<T>(file: *const c_char, f: impl FnOnce(*mut c_void) -> T) -> Option<T> {
    if process_is_ending() {
        return None;
    }
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
