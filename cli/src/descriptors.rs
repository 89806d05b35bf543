//! How many files may be open at once.

use std::mem::MaybeUninit;

/// Lets this process open as many files as it may ask for. Traces stay open while they are read, and a program of MPI leaves
/// thousands. A limit that cannot be raised stays as it is. Programs that are run later inherit it: not for `record`.
pub(crate) fn allow_most() {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the kernel writes an `rlimit` to the place given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: all-zero bytes are a valid `rlimit`, and the call has filled it in.
    let mut limit = unsafe { limit.assume_init() };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: a valid structure, which the kernel only reads.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}
