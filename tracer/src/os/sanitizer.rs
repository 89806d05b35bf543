//! Additions to the build of `cargo xtask sanitize`: facts that ThreadSanitizer must know, and mistakes that must be found.
//!
//! | cfg | what it does |
//! | --- | --- |
//! | `omptrace_thread_sanitizer` | informs ThreadSanitizer of what it does not see: what the standard library's locks order, and the kernel |
//! | `omptrace_planted = "race"` | publishes events without ordering ([`crate::lockfree::chunk_header`]) |
//! | `omptrace_planted = "fault"` | reads memory that was given back ([`plant_fault`]) |

/// Makes all that was done before visible to the thread that calls [`acquire`] of this `place` afterwards.
pub(crate) fn release<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: the address is only a name.
    unsafe {
        __tsan_release(std::ptr::from_ref(place).cast())
    };
    let _ = place;
}

/// Makes the thread see all that was done before the last [`release`] of this `place`.
pub(crate) fn acquire<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __tsan_acquire(std::ptr::from_ref(place).cast())
    };
    let _ = place;
}

// Of ThreadSanitizer's runtime (compiler-rt, `tsan_interface.h`).
#[cfg(omptrace_thread_sanitizer)]
unsafe extern "C" {
    fn __tsan_acquire(place: *const std::ffi::c_void);
    fn __tsan_release(place: *const std::ffi::c_void);
}

/// A mistake, where one is planted.
pub(crate) fn plant_fault() {
    #[cfg(omptrace_planted = "fault")]
    {
        let given_back = Box::into_raw(Box::new(0_u8));
        // SAFETY: none; memcheck must say so.
        let _ = unsafe {
            drop(Box::from_raw(given_back));
            given_back.read_volatile()
        };
    }
}
