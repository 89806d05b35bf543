//! Libraries that the process has loaded. The loader is never asked for one while it lists them: it holds a lock then, which another
//! thread's `dlopen` takes behind its own.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

use crate::unload;

/// What [`visit`] looks for, and what it found.
struct Search {
    is_it: fn(&[u8]) -> bool,
    files: Vec<CString>,
}

/// The names that the loader has for those libraries that `is_it` accepts, in the order in which they were loaded.
pub(crate) fn files(is_it: fn(&[u8]) -> bool) -> Vec<CString> {
    let mut search = Search {
        is_it,
        files: Vec::new(),
    };
    // SAFETY: `visit` gets a pointer to a `Search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.files
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes its own description of a library, and `files` a `Search`.
    let (file, search) = unsafe { ((*info).dlpi_name, &mut *search.cast::<Search>()) };
    if !file.is_null() {
        // SAFETY: a string of the loader's.
        let file = unsafe { CStr::from_ptr(file) };
        if (search.is_it)(file.to_bytes()) {
            search.files.push(file.to_owned());
        }
    }
    0
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
    unsafe { unload::close(handle) };
    Some(made)
}
