//! Handles libraries that the program unloads: their entries are removed, because another library may be loaded at the
//! same address.

use core::ffi::{c_int, c_void};

use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::{functions, real_dlclose, serving};

/// Replaces the loader's `dlclose` for the program.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // A process that is ending unloads no library.
    if !real_dlclose::process_is_ending() {
        serving::keep_all();
    }
    // SAFETY: the program's own call.
    let result = unsafe { real_dlclose::close(handle) };
    serving::forget_unloaded();
    result
}

interpose::interpose! {
    /// A libgomp deletes its key when it is unloaded, even if the unloading is not noticed otherwise. It may do so by a
    /// jump, so that the loader seems to be the caller.
    unsafe extern "C" fn pthread_key_delete(), goes on in choose_delete_key(0)
}

unsafe extern "C" fn choose_delete_key(_return_address: *const c_void, _: usize) -> *const c_void {
    extern "C" fn none(_: libc::pthread_key_t) -> c_int {
        libc::EINVAL
    }
    functions::doubt();
    let known = loaded_libraries::delete_key();
    if !known.is_null() {
        return known;
    }
    // Called by a library's constructor that runs before ours, or in another namespace.
    // SAFETY: only treated as a pointer.
    unsafe { interpose::next(c"pthread_key_delete") }.unwrap_or(none as *const c_void)
}
