//! The sanitizers that the program was built with look away while the tracer works.
//!
//! They take the place of functions of the C library, and check who calls them by what instrumented code did before. The
//! tracer is not instrumented. So MemorySanitizer takes each text that we wrote for uninitialized, and ends the program over
//! it. ThreadSanitizer knows none of our orderings. LeakSanitizer follows no pointers in memory that we mapped ourselves, and
//! reports what the C library and the runtime allocate for us, and we keep, as a leak of the program. Each has functions for code like ours. The loader finds them
//! where the program has the sanitizer, and leaves null elsewhere.
//!
//! Calls nest, and belong to the thread. What the runtime allocates when we ask it something is not looked at either.

use std::ffi::{c_char, c_int};
use std::ptr::null;

/// A sanitizer's function; `None` where the program has not that sanitizer. Those of ThreadSanitizer take the caller's file
/// and line; the others take nothing.
type Switch = Option<unsafe extern "C" fn(file: *const c_char, line: c_int)>;

/// A function that begins the looking away, and the one that ends it.
type Pair = [Switch; 2];

const PAIRS: usize = 5;

/// The table below, which the loader fills in. LeakSanitizer's functions are also AddressSanitizer's.
#[cfg(target_pointer_width = "64")]
macro_rules! table {
    ($($name:literal)*) => {
        core::arch::global_asm!(
            $(concat!(".weak ", $name),)*
            ".pushsection .data.rel.ro.omptrace_sanitizers, \"aw\"",
            ".balign 8",
            ".globl omptrace_sanitizers",
            ".hidden omptrace_sanitizers",
            "omptrace_sanitizers:",
            $(concat!(".8byte ", $name),)*
            ".popsection",
        );
    };
}
#[cfg(target_pointer_width = "64")]
table! {
    "__lsan_disable" "__lsan_enable"
    "__msan_scoped_disable_interceptor_checks" "__msan_scoped_enable_interceptor_checks"
    "AnnotateIgnoreReadsBegin" "AnnotateIgnoreReadsEnd"
    "AnnotateIgnoreWritesBegin" "AnnotateIgnoreWritesEnd"
    "AnnotateIgnoreSyncBegin" "AnnotateIgnoreSyncEnd"
}

#[cfg(target_pointer_width = "64")]
unsafe extern "C" {
    static omptrace_sanitizers: [Pair; PAIRS];
}

#[cfg(target_pointer_width = "64")]
fn table() -> [Pair; PAIRS] {
    // SAFETY: the loader wrote it before any code of the library ran. The compiler takes it for constant zeros otherwise.
    unsafe { (&raw const omptrace_sanitizers).read_volatile() }
}

#[cfg(not(target_pointer_width = "64"))]
fn table() -> [Pair; PAIRS] {
    [[None; 2]; PAIRS]
}

/// While it lives, no sanitizer looks at the calling thread.
#[derive(Debug)]
pub(crate) struct Unwatched {
    pairs: [Pair; PAIRS],
}

impl Unwatched {
    pub(crate) fn begin() -> Unwatched {
        // The tracer itself is tested under ThreadSanitizer.
        let pairs = match cfg!(omptrace_thread_sanitizer) {
            true => [[None; 2]; PAIRS],
            false => table(),
        };
        for [begin, _] in pairs {
            if let Some(begin) = begin {
                // SAFETY: it counts, for this thread, and does not look at its arguments.
                unsafe { begin(null(), 0) };
            }
        }
        Unwatched { pairs }
    }
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        for [_, end] in self.pairs.into_iter().rev() {
            if let Some(end) = end {
                // SAFETY: as in `begin`, which this thread called.
                unsafe { end(null(), 0) };
            }
        }
    }
}
