//! How many files may be open at once.
//!
//! All unsafe code of asking for more is here.

use std::mem::MaybeUninit;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// The descriptors that a process may have, as it was started with.
#[derive(Clone, Copy)]
pub(crate) struct Limit(libc::rlimit);

impl Limit {
    /// How many this process may have by now, or about that many.
    pub(crate) fn now() -> Option<u64> {
        limit().map(|limit| limit.rlim_cur)
    }

    /// Whether as many threads as there are CPUs may have this many each.
    pub(crate) fn is_enough_for(each: usize) -> bool {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let wanted = threads.saturating_mul(each) as u64;
        Limit::now().is_none_or(|limit| limit >= wanted)
    }

    /// Gives the program that `command` starts the limit that this process had.
    pub(crate) fn pass_on(self, command: &mut Command) {
        let set = move || {
            set(&self.0);
            Ok(())
        };
        // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(set) };
    }
}

/// Lets this process open as many files as it may ask for. Traces stay open while they are read, and a program of MPI leaves
/// thousands. A limit that cannot be raised stays as it is. Programs that are run later inherit it, unless they get the one
/// that was: it is returned where it was raised.
pub(crate) fn allow_most() -> Option<Limit> {
    let before = limit()?;
    let most = libc::rlimit { rlim_cur: before.rlim_max, ..before };
    (before.rlim_cur < most.rlim_cur && set(&most)).then_some(Limit(before))
}

fn limit() -> Option<libc::rlimit> {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the kernel writes an `rlimit` to the place given.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) } == 0;
    // SAFETY: all-zero bytes are a valid `rlimit`, and the call has filled it in.
    is_known.then(|| unsafe { limit.assume_init() })
}

fn set(limit: &libc::rlimit) -> bool {
    // SAFETY: a valid structure, which the kernel only reads.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}
