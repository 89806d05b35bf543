//! What `cargo xtask sanitize` builds besides: what ThreadSanitizer must know, and mistakes that must be found.
//!
//! ThreadSanitizer does not see libgomp's own synchronization: system calls of its own, and atomics that no compiler has
//! instrumented. So it is informed of what libgomp orders: a region's begin and end, a task's creation and its run.
//!
//! | cfg | what it does |
//! | --- | --- |
//! | `omptrace_thread_sanitizer` | informs ThreadSanitizer |
//! | `omptrace_planted = "race"` | lets the members of a team write one word ([`plant_race`]) |
//! | `omptrace_planted = "fault"` | reads memory that was given back ([`plant_fault`]) |

/// Whoever calls [`acquire`] of this `place` afterwards sees what was done before.
pub(crate) fn release<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: the address is only a name.
    unsafe {
        __tsan_release(core::ptr::from_ref(place).cast())
    };
    let _ = place;
}

/// What was done before the last [`release`] of this `place` is seen.
pub(crate) fn acquire<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __tsan_acquire(core::ptr::from_ref(place).cast())
    };
    let _ = place;
}

// Of ThreadSanitizer's runtime (compiler-rt, `tsan_interface.h`).
#[cfg(omptrace_thread_sanitizer)]
unsafe extern "C" {
    fn __tsan_acquire(place: *const core::ffi::c_void);
    fn __tsan_release(place: *const core::ffi::c_void);
}

/// A race between the members of a team, where one is planted.
pub(crate) fn plant_race() {
    #[cfg(omptrace_planted = "race")]
    {
        static mut COUNT: u64 = 0;
        let count = &raw mut COUNT;
        // SAFETY: none; ThreadSanitizer must say so.
        unsafe { count.write_volatile(count.read_volatile() + 1) };
    }
}

/// A read of freed memory, where one is planted.
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
