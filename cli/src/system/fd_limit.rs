//! The limit of open files.
//!
//! This file contains all unsafe code for raising the limit.

use std::mem::MaybeUninit;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// The initial limit of open files of a process.
#[derive(Clone, Copy)]
pub(crate) struct Limit(libc::rlimit);

impl Limit {
    /// The current limit of this process, at least approximately.
    pub(crate) fn now() -> Option<u64> {
        limit().map(|limit| limit.rlim_cur)
    }

    /// Whether the limit allows `each` descriptors for as many threads as there are CPUs.
    pub(crate) fn is_enough_for(each: usize) -> bool {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let wanted = threads.saturating_mul(each) as u64;
        Limit::now().is_none_or(|limit| limit >= wanted)
    }

    /// Restores the initial limit of this process in the program that `command` starts.
    pub(crate) fn pass_on(self, command: &mut Command) {
        let set = move || {
            set(&self.0);
            Ok(())
        };
        // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(set) };
    }
}

/// Raises the limit of this process as far as allowed, because traces stay open while they are read, and MPI programs
/// leave thousands. If it cannot be raised, it stays as it is. Returns the initial limit if it was raised, because
/// programs that are started later would inherit the new one.
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
