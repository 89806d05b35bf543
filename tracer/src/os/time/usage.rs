//! What the kernel keeps of the calling thread: its processor time, switches and page faults.

use crate::os::system_call;

/// Counts of the calling thread; `None` where the system refuses.
pub(crate) fn of_this_thread() -> Option<libc::rusage> {
    // SAFETY: all zeros is a valid structure of C, which the call fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let arguments = [libc::RUSAGE_THREAD as usize, &raw mut usage as usize];
    // SAFETY: valid for writing.
    unsafe { system_call::call(libc::SYS_getrusage, arguments) }.ok()?;
    Some(usage)
}

/// Nanoseconds that the calling thread has had a processor, also those since it got this one; `None` where the system refuses.
pub(crate) fn processor_time_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [libc::CLOCK_THREAD_CPUTIME_ID as usize, &raw mut time as usize];
    // SAFETY: valid for writing.
    unsafe { system_call::call(libc::SYS_clock_gettime, arguments) }.ok()?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
