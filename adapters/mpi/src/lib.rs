//! `libomptmpi.so`: calls of MPI, for `omptrace record`, whichever library the program uses, in C and Fortran.
//!
//! A program preloads the library. Each exported function goes on in the next definition of its name, with its arguments unchanged:
//!
//! ```text
//! MPI_Send, mpi_send_, mpi_send_f08_ ...    each a number in a register
//!     -> omptrace_mpi_call                  no tracer: on to the next definition
//!         -> begins(function, communicator, peer, tag, count, type, caller)
//!         -> the next definition, with the same arguments
//!         -> ends(function, result, request, peer, tag, bytes)
//! ```
//!
//! No header of an MPI library is used, and none is linked. No argument of MPI's is a floating-point number, so all of them are words
//! of 64 bits in registers and on the stack ([`enter`]). What differs between libraries is a table of constants ([`family`]).
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wrapper`] | the exported functions |
//! | [`enter`] | from registers to words in memory, and back |
//! | [`frame`] | these words, and the call of a function with them |
//! | [`next`] | where functions go on |
//! | [`row`] | what to record of each function |
//! | [`family`] | constants of the three binary interfaces |
//! | [`fortran`] | the addresses that stand for "ignored" and "in place" |
//! | [`fortran_handles`] | Fortran's handles |
//! | [`direct`] | most calls of C: where their arguments are |
//! | [`call`] | other calls: their arguments |
//! | [`report`] | what the tracer is told of a call |
//! | [`completion`] | calls that wait for requests or test them |
//! | [`communicator_size`] | how many counts there are in an array with one for each rank |
//! | [`object`] | communicators, windows, files, datatypes |
//! | [`clocks`] | comparisons of the clocks of several hosts |
//! | [`initialization`] | what is known when MPI is initialized |
//! | [`thread`] | whether the thread is in a call already |
//! | [`tracer`] | the tracer's functions |
//!
//! Nothing here has a destructor or takes a lock, since an error handler may leave a call by `longjmp`. Calls allocate nothing, but for
//! those with many requests, which get memory from the kernel.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

#[macro_use]
mod wrapper;
mod call;
mod clocks;
mod communicator_size;
mod completion;
mod direct;
mod enter;
mod family;
mod fortran;
mod fortran_handles;
mod frame;
mod initialization;
mod next;
mod object;
mod report;
mod row;
mod thread;
mod tracer;

mod exported {
    #![allow(non_snake_case, reason = "names of MPI")]

    use crate::enter::omptrace_mpi_call;

    include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
}
