//! Errors that `cargo xtask sanitize` plants in preloaded libraries. The sanitizers must find them before a check
//! without findings counts.

/// A data race between all threads that execute this code, in builds with `omptrace_planted = "race"`.
#[macro_export]
macro_rules! plant_race {
    () => {
        #[cfg(omptrace_planted = "race")]
        {
            static mut COUNT: u64 = 0;
            let count = &raw mut COUNT;
            // SAFETY: none; ThreadSanitizer must report it.
            unsafe { count.write_volatile(count.read_volatile() + 1) };
        }
    };
}

/// A read of freed memory, in builds with `omptrace_planted = "fault"`.
#[macro_export]
macro_rules! plant_fault {
    () => {
        #[cfg(omptrace_planted = "fault")]
        {
            let given_back = Box::into_raw(Box::new(0_u8));
            // SAFETY: none; memcheck must report it.
            let read = unsafe {
                drop(Box::from_raw(given_back));
                given_back.read_volatile()
            };
            // Memcheck does not see reads of values that are not used.
            std::hint::black_box(read);
        }
    };
}
