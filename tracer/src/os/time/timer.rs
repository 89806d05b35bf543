//! A timer on a thread's CPU time, its signal, and the stack of the signal's handler.

use std::ffi::{c_int, c_void};
use std::io;

use interpose::system_call;

use crate::os::signals::Signals;

/// The handler of a signal.
pub(crate) type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The real-time signals to try, starting this far below the last one: programs usually take the last ones first.
const FIRST_BELOW_LAST: c_int = 3;
const TRIED: c_int = 8;

/// A timer, identified by the kernel's number.
#[derive(Debug)]
pub(crate) struct Timer(c_int);

impl Timer {
    /// Creates a timer that sends `signal` with `value` to the calling thread after each `period_ns` of its CPU time.
    /// The kernel checks such timers once per clock tick, and reports missed expirations as overruns.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn on_this_thread(signal: c_int, value: usize, period_ns: u64) -> io::Result<Timer> {
        // SAFETY: all zeros is a valid structure of C.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_value.sival_ptr = value as *mut c_void;
        event.sigev_notify_thread_id = crate::os::system::thread_id();
        let mut number: c_int = 0;
        let arguments =
            [libc::CLOCK_THREAD_CPUTIME_ID as usize, &raw mut event as usize, &raw mut number as usize];
        // SAFETY: a valid event, and a place for the number.
        unsafe { system_call::call(libc::SYS_timer_create, arguments) }?;
        let timer = Timer(number);
        let period = libc::timespec {
            tv_sec: (period_ns / 1_000_000_000) as i64,
            tv_nsec: (period_ns % 1_000_000_000) as i64,
        };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        let arguments = [number as usize, 0, &raw const times as usize, 0];
        // SAFETY: the timer made above, and valid times.
        match unsafe { system_call::call(libc::SYS_timer_settime, arguments) } {
            Ok(_) => Ok(timer),
            Err(error) => {
                timer.delete();
                Err(error)
            }
        }
    }

    /// The timer's number plus 1, for [`Timer::of_number`].
    pub(crate) fn number(self) -> c_int {
        self.0 + 1
    }

    /// The timer with that number; `None` for 0.
    pub(crate) fn of_number(number: c_int) -> Option<Timer> {
        number.checked_sub(1).filter(|number| *number >= 0).map(Timer)
    }

    /// Deletes the timer. A signal that was already sent may be delivered later.
    pub(crate) fn delete(self) {
        // SAFETY: a plain number.
        let _ = unsafe { system_call::call(libc::SYS_timer_delete, [self.0 as usize]) };
    }
}

/// Whether the calling thread blocks `signal`.
pub(crate) fn is_blocked(signal: c_int) -> bool {
    let mut blocked: Signals = 0;
    let arguments = [libc::SIG_SETMASK as usize, 0, &raw mut blocked as usize, size_of::<Signals>()];
    // SAFETY: no new set; a place for the current one, of the size that the kernel has.
    let _ = unsafe { system_call::call(libc::SYS_rt_sigprocmask, arguments) };
    blocked >> (signal - 1) & 1 != 0
}

/// The current action of a signal.
fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid structure of C, which the call fills.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is valid for writing.
    unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    action
}

/// Whether `signal` is delivered to `handler`.
pub(crate) fn is_handled_by(signal: c_int, handler: Handler) -> bool {
    action(signal).sa_sigaction == handler as libc::sighandler_t
}

/// Installs `handler` for a real-time signal that the program does not use, and returns the signal; `None` if all of
/// those tried are in use.
pub(crate) fn take_signal(handler: Handler) -> Option<c_int> {
    let last = libc::SIGRTMAX() - FIRST_BELOW_LAST;
    let mut tried = (last - TRIED + 1..=last).rev();
    let signal = tried
        .find(|signal| action(*signal).sa_sigaction == libc::SIG_DFL || is_handled_by(*signal, handler))?;
    // SAFETY: all zeros is a valid structure of C.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler as libc::sighandler_t;
    // Restart the program's system calls, and block its signal handlers until ours returns.
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: a valid set; a valid action, whose handler is async-signal-safe.
    let error = unsafe {
        libc::sigfillset(&mut new.sa_mask);
        libc::sigaction(signal, &new, std::ptr::null_mut())
    };
    (error == 0).then_some(signal)
}

/// The lowest usable address of the calling thread's stack, and the address after the highest.
pub(crate) fn stack_of_this_thread() -> Option<(u64, u64)> {
    // SAFETY: all zeros is a valid structure of C, which the call fills; it is destroyed once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut base, mut len, mut guard) = (std::ptr::null_mut(), 0, 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut base, &mut len) == 0
            && libc::pthread_attr_getguardsize(&attributes, &mut guard) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        let low = base as u64 + guard as u64;
        found.then(|| (low, base as u64 + len as u64))
    }
}
