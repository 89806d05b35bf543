//! Handlers of signals, and what signals do that ask `omptrace` itself to end.
//!
//! All unsafe code of setting them is here.

use std::cell::UnsafeCell;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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
    pub(crate) fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<Handler> {
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

/// Whether SIGINT came since [`survive_most`] or [`note_interrupts`].
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// SIGINT ends nothing while the value lives; [`is_interrupted`] says whether it came.
///
/// # Errors
/// The signal takes no handler.
pub(crate) fn note_interrupts() -> io::Result<Handler> {
    extern "C" fn note(_: libc::c_int) {
        IS_INTERRUPTED.store(true, Ordering::Relaxed);
    }
    Handler::install(libc::SIGINT, note)
}

/// Whether SIGINT came since [`survive_most`] or [`note_interrupts`].
pub(crate) fn is_interrupted() -> bool {
    // It publishes nothing else.
    IS_INTERRUPTED.load(Ordering::Relaxed)
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: gives back the action that `install` was given. It cannot fail for a signal that it worked for.
        unsafe { libc::sigaction(self.signal, &self.before, ptr::null_mut()) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether SIGPIPE was ignored when this process began: Rust ignores it before `main`, and gives it back its default action in
/// programs that it starts.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Run by the loader, before anything of Rust.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK_AT_PIPE: extern "C" fn() = {
    extern "C" fn look() {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the action in force; all-zero bytes are a valid `sigaction`, too.
        let ignored = unsafe {
            libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr());
            action.assume_init().sa_sigaction == libc::SIG_IGN
        };
        PIPE_WAS_IGNORED.store(ignored, Ordering::SeqCst);
    }
    look
};

/// Lets the program that `command` starts ignore SIGPIPE, where this process was started so.
pub(crate) fn pass_pipe_on(command: &mut Command) {
    if PIPE_WAS_IGNORED.load(Ordering::SeqCst) {
        let ignore = || {
            // SAFETY: async-signal-safe, as all must be between fork and exec; needs no function.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            Ok(())
        };
        // SAFETY: see `ignore`.
        unsafe { command.pre_exec(ignore) };
    }
}

/// A handler for signals that have no effect here.
pub(crate) extern "C" fn survive(_signal: libc::c_int) {}

/// Has `clean` called, in a thread of its own, when a signal asks this process to end. Then the signal ends it.
///
/// The thread waits at a semaphore, which takes no descriptor: they may be few.
///
/// # Errors
/// There is no thread to be had, or no semaphore. Signals end the process as ever.
pub(crate) fn clean_before_end(clean: fn()) -> io::Result<()> {
    // SAFETY: valid memory that nothing else uses yet; its content is a semaphore from here on, and stays one.
    check(unsafe { libc::sem_init(NOTED.0.get(), 0, 0) })?;
    thread::Builder::new().spawn(move || {
        // SAFETY: a semaphore, as said above. A signal may interrupt the wait.
        while unsafe { libc::sem_wait(NOTED.0.get()) } != 0 {}
        clean();
        end_by(NOTE.load(Ordering::SeqCst));
    })?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        mem::forget(Handler::install(signal, note)?);
    }
    Ok(())
}

/// From now on nothing but QUIT asks this process to end, and INT is answered. `before` are never given up: no signal comes
/// between those handlers and these.
pub(crate) fn survive_most(before: Vec<Handler>) {
    // Kept where a search for leaks finds it, which a library that the user preloads may make.
    static BEFORE: Mutex<Vec<Handler>> = Mutex::new(Vec::new());
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = before;
    let handlers: [(_, extern "C" fn(libc::c_int)); 5] = [
        (libc::SIGINT, report_that_we_survive),
        (libc::SIGTERM, survive),
        (libc::SIGHUP, survive),
        (libc::SIGUSR1, survive),
        (libc::SIGUSR2, survive),
    ];
    for (signal, handler) in handlers {
        mem::forget(Handler::install(signal, handler));
    }
}

extern "C" fn report_that_we_survive(_signal: libc::c_int) {
    // The analysis, which comes later, need not be complete.
    IS_INTERRUPTED.store(true, Ordering::Relaxed);
    write(
        libc::STDERR_FILENO,
        b"\nomptrace: still finishing the trace; to stop now, press Ctrl-\\ and finish the trace later with `omptrace recover`\n",
    );
}

/// The signal that [`note`] was called for.
static NOTE: AtomicI32 = AtomicI32::new(0);

/// Posted by [`note`].
static NOTED: Semaphore = Semaphore(UnsafeCell::new(
    // SAFETY: a union of bytes, for which zeros are valid.
    unsafe { MaybeUninit::zeroed().assume_init() },
));

struct Semaphore(UnsafeCell<libc::sem_t>);

// SAFETY: its functions may be called by any thread.
unsafe impl Sync for Semaphore {}

/// Sequentially consistent, as is the load by the thread that the semaphore wakes.
extern "C" fn note(signal: libc::c_int) {
    NOTE.store(signal, Ordering::SeqCst);
    // SAFETY: `sem_post` is async-signal-safe, and the semaphore was made before the handler was installed. It fails only where
    // it was posted more often than anybody can count. `__errno_location` returns this thread's `errno`.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::sem_post(NOTED.0.get());
        *errno = before;
    }
}

fn end_by(signal: libc::c_int) {
    // SAFETY: both take any numbers; the default action needs no function.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Writes what the descriptor takes, for handlers.
fn write(descriptor: libc::c_int, bytes: &[u8]) {
    // SAFETY: `write` is async-signal-safe and reads the bytes given; `__errno_location` returns this thread's `errno`,
    // which a signal handler must leave as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(descriptor, bytes.as_ptr().cast(), bytes.len());
        *errno = before;
    }
}
