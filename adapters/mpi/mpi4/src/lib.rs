//! `libomptmpi4.so`: functions that MPI 4.0 added. And `libomptmpi4c.so`: the variants of functions for large counts (`_c`).
//!
//! All that they export goes on in `libomptmpi.so`, which is preloaded along with them, and which has what is known of threads and
//! of the tracer. They are libraries of their own because programs ask which functions there are: see [`omptrace_mpi_api::wrappers`].
//!
//! [`omptrace_mpi_api::wrappers`]: https://docs.rs/omptrace-mpi-api

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#![allow(non_snake_case, reason = "names of MPI")]

#[path = "../../src/wrapper.rs"]
#[macro_use]
mod wrapper;

unsafe extern "C" {
    /// Of `libomptmpi.so`. It has the arguments of the function that was called.
    fn omptrace_mpi_call();
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
