//! OpenMP's own functions, which other runtimes define, too, and where calls of them go on.

use core::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of OpenMP's that is defined here, and the function of the runtime behind this library that it goes on in, if any.
#[repr(C)]
pub(crate) struct PassedOn {
    /// NULL where it goes on here. Must be first: the instructions of `pass_on!` read it.
    function: AtomicPtr<c_void>,
    name: *const c_char,
    /// Bytes of the name with its NUL. They are not counted when the name is asked for: `strlen` may be the program's, and use OpenMP.
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
        // SAFETY: from a string of this library's, of as many bytes.
        unsafe {
            let bytes = core::slice::from_raw_parts(self.name.cast(), self.length);
            CStr::from_bytes_with_nul_unchecked(bytes)
        }
    }

    /// Lets calls go on there.
    pub(crate) fn set(&self, function: usize) {
        // Relaxed: set before the program's own code runs, and the function is that of a library that stays loaded.
        self.function.store(function as *mut c_void, Ordering::Relaxed);
    }

    /// All of them.
    pub(crate) fn all() -> &'static [PassedOn] {
        unsafe extern "C" {
            // The linker defines both: the begin and the end of the section.
            #[link_name = "__start_omptgomp_passed_on"]
            static BEGIN: PassedOn;
            #[link_name = "__stop_omptgomp_passed_on"]
            static END: PassedOn;
        }
        // SAFETY: the section has values of this type only, one behind the other, for as long as the library is loaded.
        unsafe {
            let (begin, end) = (&raw const BEGIN, &raw const END);
            core::slice::from_raw_parts(begin, end.offset_from_unsigned(begin))
        }
    }
}
