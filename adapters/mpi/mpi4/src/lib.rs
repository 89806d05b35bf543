//! `libomptmpi4.so`: the functions that MPI 4.0 added; or `libomptmpi4c.so`: the variants of functions for large counts
//! (`_c`).
//!
//! All exported functions continue in `libomptmpi.so`, which is preloaded together with these libraries and holds the
//! state of threads and of the tracer. They are separate libraries because programs test which functions exist: see
//! [`omptrace_mpi_api::wrappers`].
//!
//! [`omptrace_mpi_api::wrappers`]: https://docs.rs/omptrace-mpi-api

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#![allow(non_snake_case, reason = "names of MPI")]

#[path = "../../src/wrapper.rs"]
#[macro_use]
mod wrapper;

unsafe extern "C" {
    /// A function of `libomptmpi.so`. Its arguments are those of the called MPI function.
    fn omptrace_mpi_call();
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
