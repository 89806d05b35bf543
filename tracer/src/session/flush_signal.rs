//! SIGUSR2, if the user requests it: a flight recorder writes its retained chunks, and continues.
//!
//! A signal handler may neither lock nor write files, so it only posts a semaphore; a helper thread does the rest.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::os::log::warning;
use crate::os::system;
use crate::os::threads::helper_thread::HelperThread;
use crate::os::threads::lock::Semaphore;
use crate::recorder::this_thread;
use crate::session::Session;
use crate::session::helper_threads::Listener;

static ASKED: Semaphore = Semaphore::new();

extern "C" fn handle(_: c_int) {
    // Saved, because the interrupted code may be about to read it.
    let errno = system::errno();
    ASKED.post();
    system::set_errno(errno);
}

/// The current action of the signal.
fn action() -> libc::sigaction {
    // SAFETY: all zeros is a valid structure of C, which the call fills.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is valid for writing.
    unsafe { libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut action) };
    action
}

fn set_handler(handler: libc::sighandler_t) {
    // SAFETY: as in `action`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a valid action, whose handler is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()) };
}

fn our_handler() -> libc::sighandler_t {
    handle as extern "C" fn(c_int) as libc::sighandler_t
}

/// In a forked child, which has no listener: restores the signal's action from before. If the program has installed its
/// own handler in the meantime, that is kept.
pub(crate) fn give_back() {
    if action().sa_sigaction == our_handler() {
        set_handler(libc::SIG_DFL);
    }
}

impl Listener {
    /// Starts to listen; `None` and a warning if the program uses the signal itself, or no thread can be created.
    pub(crate) fn start(session: &'static Session) -> Option<&'static Listener> {
        if ![libc::SIG_DFL, our_handler()].contains(&action().sa_sigaction) {
            warning!(
                "the program uses SIGUSR2 itself, so this signal does not make the flight recorder write its events"
            );
            return None;
        }
        ASKED.reset();
        let listener: &'static Listener =
            Box::leak(Box::new(Listener { thread: HelperThread::new(), stop: AtomicBool::new(false) }));
        let listen = || {
            this_thread::begin_own_work();
            loop {
                ASKED.wait(None);
                // Acquire; pairs with Release in `stop`.
                if listener.stop.load(Ordering::Acquire) {
                    return None;
                }
                session.write_kept();
            }
        };
        listener
            .thread
            .start(c"omptrace-flight", listen)
            .inspect_err(|error| warning!("cannot start the thread that handles SIGUSR2: {error}"))
            .ok()?;
        set_handler(our_handler());
        Some(listener)
    }

    /// Ends the thread, waiting for at most `most`. False if the thread may still write. The handler remains installed,
    /// like the library: a signal sent to a process that is about to exit should be harmless.
    pub(crate) fn stop(&self, most: Option<Duration>) -> bool {
        // Release; pairs with Acquire in the thread.
        self.stop.store(true, Ordering::Release);
        ASKED.post();
        self.thread.end(most);
        self.thread.has_ended()
    }
}
