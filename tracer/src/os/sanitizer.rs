//! Additions for the build of `cargo xtask sanitize`: facts that ThreadSanitizer must know, and planted bugs that must
//! be detected.
//!
//! | cfg | effect |
//! | --- | --- |
//! | `omptrace_thread_sanitizer` | informs ThreadSanitizer of the orderings that it does not see: those of the standard library's locks and of the kernel |
//! | `omptrace_planted = "race"` | publishes events without ordering ([`crate::lockfree::chunk_header`]) |
//! | `omptrace_planted = "fault"` | reads freed memory ([`plant_fault`]) |

/// Makes everything done so far visible to a thread that later calls [`acquire`] with the same `place`.
pub(crate) fn release<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: the address is only a name.
    unsafe {
        __tsan_release(std::ptr::from_ref(place).cast())
    };
    let _ = place;
}

/// Makes everything done before the last [`release`] with the same `place` visible to this thread.
pub(crate) fn acquire<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __tsan_acquire(std::ptr::from_ref(place).cast())
    };
    let _ = place;
}

// Functions of ThreadSanitizer's runtime (compiler-rt, `tsan_interface.h`).
#[cfg(omptrace_thread_sanitizer)]
unsafe extern "C" {
    fn __tsan_acquire(place: *const std::ffi::c_void);
    fn __tsan_release(place: *const std::ffi::c_void);
}

/// Accesses freed memory if that fault is planted.
pub(crate) fn plant_fault() {
    #[cfg(omptrace_planted = "fault")]
    {
        let given_back = Box::into_raw(Box::new(0_u8));
        // SAFETY: none; memcheck must report it.
        let _ = unsafe {
            drop(Box::from_raw(given_back));
            given_back.read_volatile()
        };
    }
}
