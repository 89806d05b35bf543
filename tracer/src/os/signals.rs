//! Blocks signals on the calling thread: for the tracer's own threads, and for writes that must not kill the program.

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use interpose::system_call;

use super::system::timespec;

/// A set of signals in the kernel's format: signal 1 is bit 0.
pub(crate) type Signals = u64;

/// Signals that are never blocked. The C libraries' own: glibc uses 32 to cancel threads and 33 to change their user,
/// musl also uses 34. A signal caused by an instruction kills the process if it is blocked: a sandbox answers system
/// calls with SIGSYS, a debugger within the process steps with SIGTRAP.
const NEVER_BLOCKED: Signals = bit(32) | bit(33) | bit(34) | bit(libc::SIGSYS) | bit(libc::SIGTRAP);

const fn bit(signal: c_int) -> Signals {
    1 << (signal - 1)
}

/// Blocks exactly these signals; returns those that were blocked before.
fn block(signals: Signals) -> Signals {
    let mut before = 0;
    let arguments = [
        libc::SIG_SETMASK as usize,
        &raw const signals as usize,
        &raw mut before as usize,
        size_of::<Signals>(),
    ];
    // SAFETY: valid sets of the size that the kernel has.
    let _ = unsafe { system_call::call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Runs `f` with signals blocked on this thread, so that a thread started by it never receives any.
pub(crate) fn without_signals<T>(f: impl FnOnce() -> T) -> T {
    let before = block(!NEVER_BLOCKED);
    let result = f();
    block(before);
    result
}

/// Writes once to a descriptor that is not ours. A pipe without a reader, or a file at its size limit, does not kill
/// the program.
///
/// # Errors
/// The system's error.
pub(crate) fn write_without_signal(descriptor: RawFd, bytes: &[u8]) -> io::Result<()> {
    const DEADLY: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
    without_signals(|| {
        let before = pending();
        let arguments = [descriptor as usize, bytes.as_ptr() as usize, bytes.len()];
        // SAFETY: the buffer is valid for its length.
        let result = unsafe { system_call::call(libc::SYS_write, arguments) };
        if result.is_err() {
            let new = pending() & !before;
            let came = |signal: &&c_int| new & bit(**signal) != 0;
            DEADLY.iter().filter(came).for_each(take);
        }
        result.map(drop)
    })
}

/// Signals that are pending for the calling thread.
fn pending() -> Signals {
    let mut set: Signals = 0;
    let arguments = [&raw mut set as usize, size_of::<Signals>()];
    // SAFETY: a set is plain data, which the call fills.
    let _ = unsafe { system_call::call(libc::SYS_rt_sigpending, arguments) };
    set
}

/// Removes a pending signal.
fn take(signal: &c_int) {
    let (set, now) = (bit(*signal), timespec(Duration::ZERO));
    let arguments = [&raw const set as usize, 0, &raw const now as usize, size_of::<Signals>()];
    // SAFETY: a valid set and time; nobody asks for details.
    let _ = unsafe { system_call::call(libc::SYS_rt_sigtimedwait, arguments) };
}
