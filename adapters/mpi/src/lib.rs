//! `libomptmpi.so`: records MPI calls for `omptrace record`, with any MPI library, in C and Fortran.
//!
//! A program preloads the library. Each exported function continues in the next definition of its name, with its
//! arguments unchanged:
//!
//! ```text
//! MPI_Send, mpi_send_, mpi_send_f08_ ...    each a number in a register
//!     -> omptrace_mpi_call                  no tracer: on to the next definition
//!         -> begins(function, communicator, peer, tag, count, type, caller)
//!         -> the next definition, with the same arguments
//!         -> ends(function, result, request, peer, tag, bytes)
//! ```
//!
//! The library neither uses headers of an MPI library nor is linked to one. MPI has no floating-point arguments, so all
//! arguments are 64-bit words in registers and on the stack ([`enter`]). The differences between MPI libraries are in a
//! table of constants ([`family`]).
//!
//! | module | contents |
//! | --- | --- |
//! | [`wrapper`] | the exported functions |
//! | [`enter`] | stores the registers of a call in memory, and restores them |
//! | [`frame`] | the arguments in memory, and calls of functions with them |
//! | [`next`] | the next definitions of functions |
//! | [`row`] | the arguments to record for each function |
//! | [`family`] | constants of the three binary interfaces |
//! | [`fortran`] | the addresses that mean "ignored" and "in place" |
//! | [`fortran_handles`] | Fortran handles |
//! | [`direct`] | fast path for most C calls: where their arguments are |
//! | [`call`] | other calls and their arguments |
//! | [`report`] | reports of a call to the tracer |
//! | [`completion`] | calls that wait for requests or test them |
//! | [`communicator_size`] | sizes of communicators, for arrays with a count for each rank |
//! | [`object`] | communicators, windows, files, datatypes |
//! | [`clocks`] | comparisons of the clocks of several hosts |
//! | [`initialization`] | reports at the initialization of MPI |
//! | [`thread`] | whether the thread is already in a call |
//! | [`tracer`] | the tracer's functions |
//!
//! The code has no destructors and takes no locks, because an error handler may leave a call by `longjmp`. Calls
//! allocate nothing, except those with many requests, which get memory from the kernel.

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
