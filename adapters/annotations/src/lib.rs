//! What programs say of themselves: NVTX, Intel's ITT, Kokkos Tools, OpenACC's profiling interface, rocTX.
//!
//! Each of these interfaces looks for a library that listens, by the names of functions that it exports. The crate is a part of
//! `libomptrace.so`, which exports all of them:
//!
//! ```text
//! interface     how it finds the library       exported
//! NVTX 3        NVTX_INJECTION64_PATH          InitializeInjectionNvtx2, InitializeInjectionNvtxExtension
//! ITT           INTEL_LIBITTNOTIFY64           __itt_api_init
//! Kokkos        KOKKOS_TOOLS_LIBS              kokkosp_*
//! OpenACC       ACC_PROFLIB                    acc_register_library
//! rocTX         preloaded                      roctx*
//! omptrace.h    OMPTRACE_ANNOTATION_LIBRARY    omptrace_annotations
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`recorder`] | what the tracer does with annotations |
//! | [`text`] | names, each with a number that events have in its place |
//! | [`domain`] | which domains are recorded |
//! | [`range`] | what the interfaces have in common: ranges, marks, values |
//! | [`next_tool`] | another library that listens, which gets all calls, too |
//! | [`nvtx`], [`itt`], [`kokkos`], [`openacc`], [`roctx`], [`own`] | the interfaces |
//!
//! No function here calls back into the program. All of them return what they would without a tool, or what the next tool returns.
//! Strings that the program has registered are known by their handles, others by their addresses, or else by a hash.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod domain;
mod itt;
mod kokkos;
mod next_tool;
mod nvtx;
mod openacc;
mod own;
mod range;
pub mod recorder;
mod roctx;
mod text;

pub use recorder::{Recorder, Settings, connect};
pub use text::tell_all;

/// What keeps the exported functions in the library, though nothing in it calls them.
pub fn exported() -> usize {
    [
        nvtx::InitializeInjectionNvtx2 as *const () as usize,
        itt::__itt_api_init as *const () as usize,
        kokkos::kokkosp_init_library as *const () as usize,
        openacc::acc_register_library as *const () as usize,
        roctx::roctxMarkA as *const () as usize,
        own::omptrace_annotations as *const () as usize,
    ]
    .into_iter()
    .fold(0, usize::wrapping_add)
}
