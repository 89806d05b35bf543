//! Runs a program as if `omptrace` were not there: signals reach it once, its end is passed on.
//!
//! All unsafe code of the running of programs is here.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::output::signals::{self, Handler, survive};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It called `exit` with this status.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

impl End {
    /// The status as a shell has it: 128 + n for signal n.
    pub(crate) fn status(self) -> u8 {
        let status = match self {
            End::Exit(status) => status,
            End::Signal(signal) => 128 + signal,
        };
        // Exit statuses are one byte to the kernel.
        (status & 0xff) as u8
    }
}

/// A program that ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// Its process id.
    pub(crate) pid: u32,
    /// How it ended.
    pub(crate) end: End,
    /// The CPU time that it and the processes that it waited for took; `None` where the system does not say.
    pub(crate) cpu_ns: Option<u64>,
    /// Before it was started.
    pub(crate) started: Now,
    /// When it had ended.
    pub(crate) ended: Now,
}

/// A reading of two of the system's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// `CLOCK_MONOTONIC_RAW`, which each time namespace has for itself (time_namespaces(7)).
    pub(crate) raw_ns: u64,
    /// `CLOCK_REALTIME`, which all have.
    pub(crate) realtime_ns: u64,
}

impl Now {
    pub(crate) fn read() -> Now {
        Now { raw_ns: raw_ns(), realtime_ns: nanoseconds(libc::CLOCK_REALTIME) }
    }
}

/// Runs the program and waits for its end.
///
/// While it runs, TERM, HUP, USR1 and USR2 are forwarded to it; batch systems announce the end of a job by one of
/// these. INT and QUIT come from the terminal, which sends them to the program as well: here they are only survived.
/// A signal that is ignored stays ignored, in the program too (`nohup`).
///
/// When the program has ended, nothing but QUIT ends this process: its traces and its status are not to be lost.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn run(command: &mut Command) -> io::Result<Ran> {
    // Signals that a handler catches have their default action again in the program; ignored ones would stay ignored.
    let forwarded = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
    let mut handlers = Vec::new();
    for signal in forwarded {
        handlers.push(Handler::install(signal, forward)?);
    }
    handlers.push(Handler::install(libc::SIGINT, survive)?);
    let _quit = Handler::install(libc::SIGQUIT, survive)?;
    signals::pass_pipe_on(command);
    let before_ns = children_ns();
    let started = Now::read();
    let mut child = command.spawn()?;
    let pid = child.id();
    target(pid.cast_signed());
    wait_for_end(pid);
    let ended = Now::read();
    // From here on the kernel may give the id to another process.
    target(0);
    signals::survive_most(handlers);
    let status = child.wait()?;
    let end = match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Exit(status.code().unwrap_or_default()),
    };
    let cpu_ns = children_ns().zip(before_ns).map(|(after, before)| after.saturating_sub(before));
    Ok(Ran { pid, end, cpu_ns, started, ended })
}

/// The clock that traces have, in nanoseconds.
pub(crate) fn raw_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC_RAW)
}

/// Interrupts the programs that the terminal would interrupt: those of this program's group, itself too.
pub(crate) fn interrupt_group() {
    // SAFETY: it only sends a signal.
    unsafe { libc::kill(0, libc::SIGINT) };
}

/// The CPU time that this program has taken, in nanoseconds.
pub(crate) fn processor_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The CPU time of all processes that this one has waited for, and that these have waited for.
fn children_ns() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a `rusage` to the place given; all zeros is a valid one, too.
    let usage = unsafe {
        (libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) == 0).then(|| usage.assume_init())
    }?;
    let ns = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
    };
    Some(ns(usage.ru_utime) + ns(usage.ru_stime))
}

/// By the system itself, as the tracer asks: libraries that are preloaded to fake the time replace libc's function.
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists on every Linux, and an error leaves zeros.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The name of a signal, as in `kill -l`, with its number.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// The program that signals are forwarded to; 0 while there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the program was there; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

/// Names the process that signals go to, and forwards what came too early for it.
///
/// Sequentially consistent, as are the loads and stores of [`forward`]: either it sees the process, or we see the
/// signal it left.
fn target(pid: i32) {
    CHILD.store(pid, Ordering::SeqCst);
    if pid != 0 {
        let pending = PENDING.swap(0, Ordering::SeqCst);
        if pending != 0 {
            send(pid, pending);
        }
    }
}

extern "C" fn forward(signal: libc::c_int) {
    match CHILD.load(Ordering::SeqCst) {
        0 => PENDING.store(signal, Ordering::SeqCst),
        pid => send(pid, signal),
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: `kill` takes any numbers and is async-signal-safe; `__errno_location` returns this thread's `errno`,
    // which a signal handler must leave as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::kill(pid, signal);
        *errno = before;
    }
}

/// Waits until the process ends, and leaves it to be reaped: until then its id stays its own.
fn wait_for_end(pid: u32) {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the kernel writes a `siginfo_t` to the place given, which is not read.
        let result =
            unsafe { libc::waitid(libc::P_PID, pid, info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) };
        // Any other error cannot be waited out; the caller's own wait reports it.
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}
