//! Runs a program as if `omptrace` were not there: signals reach it once, and its exit status is passed on.
//!
//! This file contains all unsafe code for running programs.

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
    /// The exit status as in a shell: 128 + n for signal n.
    pub(crate) fn status(self) -> u8 {
        let status = match self {
            End::Exit(status) => status,
            End::Signal(signal) => 128 + signal,
        };
        // The kernel uses one byte of an exit status.
        (status & 0xff) as u8
    }
}

/// A program that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// Its process id.
    pub(crate) pid: u32,
    /// How it ended.
    pub(crate) end: End,
    /// The CPU time of the program and of the processes that it waited for; `None` if the system does not report it.
    pub(crate) cpu_ns: Option<u64>,
    /// The time before the program was started.
    pub(crate) started: Now,
    /// The time after the program had ended.
    pub(crate) ended: Now,
}

/// A reading of two system clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// `CLOCK_MONOTONIC_RAW`, which may differ between time namespaces (time_namespaces(7)).
    pub(crate) raw_ns: u64,
    /// `CLOCK_REALTIME`, which is the same for all processes.
    pub(crate) realtime_ns: u64,
}

impl Now {
    pub(crate) fn read() -> Now {
        Now { raw_ns: raw_ns(), realtime_ns: nanoseconds(libc::CLOCK_REALTIME) }
    }
}

/// Runs the program and waits for its end.
///
/// While it runs, TERM, HUP, USR1 and USR2 are forwarded to it, because batch systems announce the end of a job by one
/// of these. INT and QUIT come from the terminal, which also sends them to the program, so this process only survives
/// them. Ignored signals stay ignored, also in the program (`nohup`).
///
/// After the program has ended, only QUIT ends this process, so that the program's traces and status are not lost.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn run(command: &mut Command) -> io::Result<Ran> {
    // Signals with a handler get their default action back in the program, whereas ignored ones would stay ignored.
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
    // From here on, the kernel may give the id to another process.
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

/// The clock used in traces, in nanoseconds.
pub(crate) fn raw_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC_RAW)
}

/// Interrupts the processes that the terminal would interrupt: this process's group, including the process itself.
pub(crate) fn interrupt_group() {
    // SAFETY: it only sends a signal.
    unsafe { libc::kill(0, libc::SIGINT) };
}

/// The CPU time of this process, in nanoseconds.
pub(crate) fn processor_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The CPU time of all processes that this process has waited for, including those that they have waited for.
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

/// Reads a clock by a system call, like the tracer, because preloaded libraries that fake the time replace the C
/// library's function.
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

/// The process to which signals are forwarded; 0 while there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before the program was started; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

/// Sets the process to which signals are forwarded, and forwards a signal that arrived too early.
///
/// Sequentially consistent, like the loads and stores of [`forward`]: either `forward` sees the process, or this
/// function sees the signal that it left.
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

/// Waits until the process ends without reaping it, so that its id is not reused.
fn wait_for_end(pid: u32) {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the kernel writes a `siginfo_t` to the place given, which is not read.
        let result =
            unsafe { libc::waitid(libc::P_PID, pid, info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) };
        // Waiting again does not help against other errors; the caller's own wait reports them.
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}
