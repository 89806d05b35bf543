//! Disables the sanitizers with which the program was built while the tracer works.
//!
//! Sanitizers replace functions of the C library, and check their callers by what instrumented code did before. The
//! tracer is not instrumented. So MemorySanitizer takes each text that the tracer wrote for uninitialized, and aborts
//! the program. ThreadSanitizer does not see our memory orderings. LeakSanitizer does not follow pointers in memory
//! that the tracer has mapped, and reports memory that the C library and the runtime allocated for the tracer as leaks
//! of the program. Each sanitizer has functions to exempt code like ours. The loader finds them if the program has the
//! sanitizer, and leaves null pointers otherwise.
//!
//! Calls nest, and apply to the thread. Memory that the runtime allocates while the tracer queries it is exempt, too.

use std::ffi::{c_char, c_int};
use std::ptr::null;

/// A sanitizer's function; `None` if the program does not have that sanitizer. ThreadSanitizer's functions take the
/// caller's file and line; the others have no parameters.
type Switch = Option<unsafe extern "C" fn(file: *const c_char, line: c_int)>;

/// A function that starts an exemption, and the one that ends it.
type Pair = [Switch; 2];

const PAIRS: usize = 5;

/// The table below, filled in by the loader. LeakSanitizer's functions are also AddressSanitizer's.
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
    // SAFETY: the loader wrote it before any code of the library ran. Volatile, because the compiler would otherwise
    // assume that it is zero.
    unsafe { (&raw const omptrace_sanitizers).read_volatile() }
}

#[cfg(not(target_pointer_width = "64"))]
fn table() -> [Pair; PAIRS] {
    [[None; 2]; PAIRS]
}

/// While this value exists, no sanitizer checks the calling thread.
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
                // SAFETY: it counts for this thread, and ignores its arguments.
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
