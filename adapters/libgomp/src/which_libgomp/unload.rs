//! Libraries that the program unloads: they are forgotten, since another library may come to lie there.

use core::ffi::{c_int, c_void};

use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::{functions, real_dlclose, serving};

/// The program's own call.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    serving::keep_all();
    // SAFETY: the program's own call.
    let result = unsafe { real_dlclose::close(handle) };
    serving::forget_unloaded();
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
    functions::doubt();
    let known = loaded_libraries::delete_key();
    if !known.is_null() {
        return known;
    }
    // A library's constructor that comes before ours, or another namespace.
    // SAFETY: looked at as a pointer only.
    unsafe { interpose::next(c"pthread_key_delete") }.unwrap_or(none as *const c_void)
}
