//! SIGUSR2, where the user asks for it: a flight recorder writes what it keeps, and goes on.
//!
//! A signal handler may neither lock nor write files, so that it only raises a semaphore; a thread of ours does the rest.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::log::warning;
use crate::session::Session;
use crate::system;

/// The semaphore; the C library's, since posting it is among the few things that a handler may do.
struct Semaphore(std::cell::UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: `sem_post` and `sem_wait` may be called by any thread at any time after `sem_init`.
unsafe impl Sync for Semaphore {}

static ASKED: Semaphore = Semaphore(std::cell::UnsafeCell::new(MaybeUninit::uninit()));

impl Semaphore {
    fn begin(&self) {
        // SAFETY: called before the handler and the thread are there that use it.
        unsafe { libc::sem_init((*self.0.get()).as_mut_ptr(), 0, 0) };
    }

    fn post(&self) {
        // SAFETY: `begin` came before; async-signal-safe (signal-safety(7)).
        unsafe { libc::sem_post((*self.0.get()).as_mut_ptr()) };
    }

    fn wait(&self) {
        // SAFETY: `begin` came before. Interrupted or not, the caller looks what there is to do.
        unsafe { libc::sem_wait((*self.0.get()).as_mut_ptr()) };
    }
}

/// The thread that waits for the signal, and what the signal did before.
pub(crate) struct Listener {
    thread: JoinHandle<()>,
    stop: &'static AtomicBool,
    before: libc::sigaction,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    /// Begins to listen; `None`, and one line, where the program uses the signal itself or no thread can be had.
    pub(crate) fn start(session: &'static Session) -> Option<Listener> {
        extern "C" fn handle(_: c_int) {
            // The interrupted code may be about to read it.
            let errno = system::errno();
            ASKED.post();
            system::set_errno(errno);
        }
        // SAFETY: all zeros is a valid structure of C, which the call fills.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: `before` is valid for writing.
        unsafe { libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut before) };
        if before.sa_sigaction != libc::SIG_DFL {
            warning!("the program uses SIGUSR2 itself: it does not write what is kept");
            return None;
        }
        ASKED.begin();
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let run = move || loop {
            ASKED.wait();
            // Acquire; pairs with Release in `stop`.
            if stop.load(Ordering::Acquire) {
                return;
            }
            session.write_kept();
        };
        let builder = std::thread::Builder::new().name("omptrace-flight".into());
        let thread = system::without_signals(|| builder.spawn(run))
            .inspect_err(|error| warning!("cannot start a thread for SIGUSR2: {error}"))
            .ok()?;
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: a valid action, whose handler does what handlers may.
        unsafe { libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()) };
        Some(Listener {
            thread,
            stop,
            before,
        })
    }

    /// The signal does again what it did before; the thread is gone.
    pub(crate) fn stop(self) {
        // SAFETY: the action that was read before. The library may be unloaded, its handler must not stay.
        unsafe { libc::sigaction(libc::SIGUSR2, &self.before, std::ptr::null_mut()) };
        // Release; pairs with Acquire in the thread.
        self.stop.store(true, Ordering::Release);
        ASKED.post();
        let _ = self.thread.join();
    }
}
