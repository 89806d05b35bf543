//! The kernel's per-thread counts: CPU time, context switches and page faults.

use std::path::Path;

use interpose::system_call;

use crate::os::system;

/// The counts of the calling thread; `None` if the system refuses.
pub(crate) fn of_this_thread() -> Option<libc::rusage> {
    // SAFETY: all zeros is a valid structure of C, which the call fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let arguments = [libc::RUSAGE_THREAD as usize, &raw mut usage as usize];
    // SAFETY: valid for writing.
    unsafe { system_call::call(libc::SYS_getrusage, arguments) }.ok()?;
    Some(usage)
}

/// CPU time of the calling thread in nanoseconds, including the current time slice; `None` if the system refuses.
pub(crate) fn processor_time_ns() -> Option<u64> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process in nanoseconds, including threads that have ended.
pub(crate) fn processor_time_of_process_ns() -> Option<u64> {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this process's thread with this id, in nanoseconds; `None` also if there is no such thread.
pub(crate) fn processor_time_of_thread_ns(tid: i32) -> Option<u64> {
    // As computed by the kernel's `MAKE_THREAD_CPUCLOCK`: a thread's clock of the scheduler. Id 0 would be the caller.
    (tid > 0).then(|| read(!tid << 3 | 0b110)).flatten()
}

/// Time in nanoseconds for which this process's thread with this id was ready to run while others had the CPUs. `None`
/// if the system does not provide it.
pub(crate) fn delay_of_thread_ns(tid: i32) -> Option<u64> {
    let mut buffer = [0; 64];
    let path = format!("/proc/self/task/{tid}/schedstat");
    let text = system::read_start(Path::new(&path), &mut buffer).ok()?;
    // Time on a CPU, time in the run queue, and number of time slices.
    let text = std::str::from_utf8(text).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [clock as usize, &raw mut time as usize];
    // SAFETY: valid for writing.
    unsafe { system_call::call(libc::SYS_clock_gettime, arguments) }.ok()?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_thread_is_that_of_its_id() {
        let own = system::thread_id();
        let (before, by_id, after) = (
            processor_time_ns().unwrap(),
            processor_time_of_thread_ns(own).unwrap(),
            processor_time_ns().unwrap(),
        );
        assert!(before <= by_id && by_id <= after, "{before} {by_id} {after}");
        assert!(processor_time_of_process_ns().unwrap() >= before);
        // Process 1 is not a thread of this process.
        assert_eq!(processor_time_of_thread_ns(1), None);
        assert_eq!(processor_time_of_thread_ns(0), None);
        assert_eq!(delay_of_thread_ns(1), None);
    }
}
