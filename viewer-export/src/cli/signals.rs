//! Handlers of signals.
//!
//! All unsafe code of setting them is here.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// A signal's handler, for as long as this value lives. A signal that is ignored stays ignored.
pub(crate) struct Handler {
    signal: libc::c_int,
    before: libc::sigaction,
}

impl Handler {
    /// Installs `handler`, which must do only what is async-signal-safe.
    ///
    /// # Errors
    /// The signal takes no handler.
    pub(crate) fn install(
        signal: libc::c_int,
        handler: extern "C" fn(libc::c_int),
    ) -> io::Result<Handler> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the action in force; the kernel writes it to the place given.
        check(unsafe { libc::sigaction(signal, ptr::null(), before.as_mut_ptr()) })?;
        // SAFETY: all-zero bytes are a valid `sigaction`, and the kernel has filled it in.
        let before = unsafe { before.assume_init() };
        if before.sa_sigaction != libc::SIG_IGN {
            let mut action = before;
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            // SAFETY: the handler has the signature for flags without SA_SIGINFO, lives as long as the program, and
            // does only what is async-signal-safe.
            check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) })?;
        }
        Ok(Handler { signal, before })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: gives back the action that `install` was given. It cannot fail for a signal that it worked for.
        unsafe { libc::sigaction(self.signal, &self.before, ptr::null_mut()) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A handler for signals that have no effect here.
pub(crate) extern "C" fn survive(_signal: libc::c_int) {}
