//! OpenMP API functions, which other runtimes define, too, and the runtimes in which calls of them continue.

use core::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An OpenMP API function that this library defines, and the function of the following runtime to which it jumps, if
/// any.
#[repr(C)]
pub(crate) struct PassedOn {
    /// NULL if the call continues in this library. Must be the first field: the instructions of `pass_on!` read it.
    function: AtomicPtr<c_void>,
    name: *const c_char,
    /// Bytes of the name with its NUL. Not computed when the name is needed, because the program may replace `strlen`
    /// and use OpenMP in it.
    length: usize,
}

// SAFETY: the name is a string that is never changed.
unsafe impl Sync for PassedOn {}

impl PassedOn {
    pub(crate) const fn new(name: &'static CStr) -> PassedOn {
        PassedOn {
            function: AtomicPtr::new(core::ptr::null_mut()),
            name: name.as_ptr(),
            length: name.count_bytes() + 1,
        }
    }

    pub(crate) fn name(&self) -> &'static CStr {
        // SAFETY: from a string of this library with this number of bytes.
        unsafe {
            let bytes = core::slice::from_raw_parts(self.name.cast(), self.length);
            CStr::from_bytes_with_nul_unchecked(bytes)
        }
    }

    /// Makes calls continue at this address.
    pub(crate) fn set(&self, function: usize) {
        // Relaxed: set before the program's own code runs, and the function's library stays loaded.
        self.function.store(function as *mut c_void, Ordering::Relaxed);
    }

    /// All functions of this kind.
    pub(crate) fn all() -> &'static [PassedOn] {
        unsafe extern "C" {
            // The begin and the end of the section, which the linker defines.
            #[link_name = "__start_omptgomp_passed_on"]
            static BEGIN: PassedOn;
            #[link_name = "__stop_omptgomp_passed_on"]
            static END: PassedOn;
        }
        // SAFETY: the section is an array of values of this type, which exists while the library is loaded.
        unsafe {
            let (begin, end) = (&raw const BEGIN, &raw const END);
            core::slice::from_raw_parts(begin, end.offset_from_unsigned(begin))
        }
    }
}
