//! Annotations for ThreadSanitizer, in builds by `cargo xtask sanitize` (`omptrace_thread_sanitizer`).
//!
//! ThreadSanitizer does not see libgomp's own synchronization, which uses system calls and atomics without
//! instrumentation. So it is informed of the order that libgomp guarantees: between a region's begin and its members,
//! between them and its end, and between a task's creation and its run.

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
