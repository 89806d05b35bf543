//! The message of `record` about a program that was killed by a fault: its own, its OpenMP runtime's, or the tracer's.
//!
//! From outside, these cannot be told apart, because only the signal is known. So the message explains how to find out.

use std::ffi::c_int;
use std::path::Path;

use crate::output::message;
use crate::record::child_process::{End, signal_name};

/// Signals that faulty code causes.
const OF_FAULTS: &[c_int] = &[libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV];

/// The cause of a death by SIGSYS, and what to do about it.
const OF_FILTER: [&str; 2] = [
    "the program was killed by its own seccomp filter, which restricts system calls; if the program survives without omptrace, the filter killed it because of a system call that the tracer made",
    "make the filter return an error (SECCOMP_RET_ERRNO) instead of killing the program: tracing then stops, but the program continues. Or let the filter allow the system calls that the manual lists under \"System calls\"",
];

/// Whether faulty code ended the program.
pub(crate) fn is_fault(end: End) -> bool {
    OF_FAULTS.iter().any(|signal| is_of(end, *signal))
}

/// Whether `end` means this signal. A shell or a launcher passes the death of its program on as an exit status.
fn is_of(end: End, signal: c_int) -> bool {
    end == End::Signal(signal) || end == End::Exit(128 + signal)
}

/// Reports that the program was killed, if `program` is given, and what to try.
pub(crate) fn report(end: End, program: Option<&Path>) {
    if let (End::Signal(signal), Some(program)) = (end, program) {
        message::note(&format!("{} was killed by {}", program.display(), signal_name(signal)));
    }
    hints(end).into_iter().for_each(message::hint);
}

/// What to try after this end; empty if it does not indicate a fault.
pub(crate) fn hints(end: End) -> Vec<&'static str> {
    if is_of(end, libc::SIGSYS) {
        return OF_FILTER.into();
    }
    if !is_fault(end) {
        return Vec::new();
    }
    let mut hints = vec![
        "run the program without omptrace to find out whether tracing contributed to the crash. If the program survives, leave out the events at which runtimes are known to crash: try --events default,-dependences,-error, then --events default,-task,-mutex, then --events parallel",
    ];
    if is_of(end, libc::SIGABRT) {
        hints.push(
            "if stderr contains \"OMP: Error #13: Assertion failure\", the OpenMP runtime itself ended the program",
        );
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_hints_and_a_request_to_end_has_none() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL, libc::SIGHUP] {
            assert!(hints(End::Signal(signal)).is_empty());
        }
        assert!(hints(End::Exit(1)).is_empty());
        let filtered = hints(End::Signal(libc::SIGSYS)).join("\n");
        assert!(filtered.contains("its own seccomp filter") && !is_fault(End::Signal(libc::SIGSYS)));
        for end in [End::Signal(libc::SIGABRT), End::Exit(128 + libc::SIGABRT)] {
            let aborted = hints(end).join("\n");
            assert!(aborted.contains("run the program without omptrace"));
            assert!(aborted.contains("--events default,-dependences"));
            assert!(aborted.contains("Error #13"));
        }
        let crashed = hints(End::Signal(libc::SIGSEGV)).join("\n");
        assert!(crashed.contains("--events default,-dependences") && !crashed.contains("Error #13"));
    }
}
