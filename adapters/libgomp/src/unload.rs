//! Libraries that the program unloads: call sites in them are forgotten, since another library may come to lie there.

use core::ffi::{c_char, c_int, c_void};
use core::mem;
use core::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{libgomp, loaded};

type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The program's own call.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    libgomp::keep_all();
    // SAFETY: the program's own call.
    let result = unsafe { close(handle) };
    libgomp::forget_unloaded();
    result
}

interpose::interpose! {
    /// A libgomp deletes its key when it is unloaded, also by a way that is not seen here. It may do so by a jump, so that the
    /// loader seems to call.
    unsafe extern "C" fn pthread_key_delete(), goes on in choose_delete_key(0)
}

unsafe extern "C" fn choose_delete_key(_return_address: *const c_void, _: usize) -> *const c_void {
    extern "C" fn none(_: libc::pthread_key_t) -> c_int {
        libc::EINVAL
    }
    libgomp::doubt();
    let known = loaded::delete_key();
    if !known.is_null() {
        return known;
    }
    // A library's constructor that comes before ours, or another namespace.
    // SAFETY: looked at as a pointer only.
    unsafe { interpose::next(c"pthread_key_delete") }.unwrap_or(none as *const c_void)
}

/// What `f` makes of a handle of the library in `file`; `None` where it is not loaded. It is neither loaded nor kept by that.
///
/// # Safety
/// `file` is the loader's name of a library, or NULL for the program.
pub(crate) unsafe fn with<T>(file: *const c_char, f: impl FnOnce(*mut c_void) -> T) -> Option<T> {
    // SAFETY: by this function's contract.
    let handle = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
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
