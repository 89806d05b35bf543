//! Write failures, which turn tracing off; the program continues.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::os::log::warning;
use crate::recorder::recorder::Mode;
use crate::session::Session;

impl Session {
    /// Turns tracing off for good and prints one line; the program continues.
    pub(super) fn fail(&self, what: &str, error: &io::Error) {
        Mode::Off.set();
        // An error without a number means that the program closed the descriptor, see `ProtectedFd`.
        let number = error.raw_os_error().unwrap_or(libc::EBADF);
        // Relaxed: only the number is shared.
        let (ours, theirs) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_first = self.failure.compare_exchange(0, number, ours, theirs);
        if is_first.is_ok() {
            self.spool.report_failure(number);
        }
        if !self.reported_trouble.swap(true, Ordering::Relaxed) {
            warning!(
                "cannot {what} {}: {error}; tracing is off, but the program continues. The events recorded so far are kept in {}",
                self.output.path().display(),
                self.spool_name()
            );
        }
    }

    /// The error that turned tracing off.
    pub(super) fn failure(&self) -> Option<io::Error> {
        // Relaxed: only the number is shared.
        let number = self.failure.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    /// The spool's name for messages.
    pub(super) fn spool_name(&self) -> std::path::Display<'_> {
        let memory = Path::new("the program's memory, until the program ends");
        self.spool.path().unwrap_or(memory).display()
    }
}
