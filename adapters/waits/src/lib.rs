//! `libomptrace_waits.so`: the C library's functions that may wait, for `omptrace record --waits`.
//!
//! A program preloads the library. Each function goes on in the next definition of its name, which is the C library's, or a
//! sanitizer's. The tracer gives the library two functions ([`tracer`]): it is asked for the time before a call that may be about to
//! wait, and gets the call afterwards. What is short, or a runtime's, it leaves out.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`entries`] | the functions as they are exported, a row each |
//! | [`next`] | where they go on |
//! | [`tracer`] | the tracer's two functions |
//!
//! A thread may be cancelled in many of these functions, and a signal handler may leave them by `longjmp`. Nothing here has a
//! destructor, takes a lock, allocates, or keeps what a call would have to put back.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

#[macro_use]
mod exported;
mod entries;
mod next;
mod tracer;

/// The loader calls it when the library is loaded.
#[unsafe(link_section = ".init_array")]
#[used]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn constructor() {
        entries::ALL.iter().for_each(|next| next.find());
    }
    constructor
};
