//! Code for builds by `cargo xtask sanitize`: annotations for ThreadSanitizer, and planted errors that the sanitizers
//! must find.
//!
//! ThreadSanitizer does not see libgomp's own synchronization, which uses system calls and atomics without
//! instrumentation. So it is informed of the order that libgomp guarantees: between a region's begin and its members,
//! between them and its end, and between a task's creation and its run.
//!
//! | cfg | effect |
//! | --- | --- |
//! | `omptrace_thread_sanitizer` | informs ThreadSanitizer |
//! | `omptrace_planted = "race"` | makes the members of a team write the same word ([`plant_race`]) |
//! | `omptrace_planted = "fault"` | reads freed memory ([`plant_fault`]) |

/// Makes everything that happened before visible to a later [`acquire`] of the same `place`.
pub(crate) fn release<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: the address only serves as a name.
    unsafe {
        __tsan_release(core::ptr::from_ref(place).cast())
    };
    let _ = place;
}

/// Makes everything visible that happened before the last [`release`] of this `place`.
pub(crate) fn acquire<T>(place: &T) {
    #[cfg(omptrace_thread_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __tsan_acquire(core::ptr::from_ref(place).cast())
    };
    let _ = place;
}

// Functions of ThreadSanitizer's runtime (compiler-rt, `tsan_interface.h`).
#[cfg(omptrace_thread_sanitizer)]
unsafe extern "C" {
    fn __tsan_acquire(place: *const core::ffi::c_void);
    fn __tsan_release(place: *const core::ffi::c_void);
}

/// A data race between the members of a team, in builds with a planted race.
pub(crate) fn plant_race() {
    #[cfg(omptrace_planted = "race")]
    {
        static mut COUNT: u64 = 0;
        let count = &raw mut COUNT;
        // SAFETY: none; ThreadSanitizer must report it.
        unsafe { count.write_volatile(count.read_volatile() + 1) };
    }
}

/// A read of freed memory, in builds with a planted fault.
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
