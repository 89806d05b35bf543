//! The tools interface of OpenMP (OMPT) as declared in C by `omp-tools.h`: OpenMP 5.2, chapter 19, and the additions of
//! OpenMP 6.0. Types, enumerations, signatures; no logic.
//!
//! | module | purpose for a tool |
//! | --- | --- |
//! | [`start`] | being found by the runtime: `ompt_start_tool`, initialize, finalize |
//! | [`entry_points`] | querying the runtime, with the entry points that `ompt_function_lookup_t` finds |
//! | [`callbacks`] | being called by the runtime |
//! | [`enums`] | the numbers in the arguments of both |
//! | [`types`] | scalars, `ompt_data_t`, `ompt_frame_t` and other small structures |
//! | [`records`] | reading what a device has written to a trace buffer |
//! | [`collector`] | supporting runtimes with the Collector API of 2007 |
//! | [`tr2`] | supporting runtimes of the Technical Report 2 of 2014 |
//! | [`tr4`], [`tr6`] | supporting runtimes of a draft of OpenMP 5.0: its differences |
//!
//! A tool starts like this:
//!
//! ```
//! use core::ffi::{c_char, c_int, c_uint};
//! use ompt_sys::*;
//!
//! unsafe extern "C" fn on_thread_begin(thread_type: ompt_thread_t, _thread_data: *mut ompt_data_t) {
//!     assert_ne!(thread_type, ompt_thread_unknown);
//! }
//!
//! unsafe extern "C" fn initialize(lookup: ompt_function_lookup_t, _: c_int, _: *mut ompt_data_t) -> c_int {
//!     // SAFETY: the runtime passes a working lookup, and the specification gives the type of this entry point.
//!     unsafe {
//!         let Some(set_callback) = lookup(c"ompt_set_callback".as_ptr()) else { return 0 };
//!         let set_callback: ompt_set_callback_t = core::mem::transmute(set_callback);
//!         let callback: ompt_callback_thread_begin_t = on_thread_begin;
//!         set_callback(ompt_callback_thread_begin, Some(core::mem::transmute(callback)));
//!     }
//!     1
//! }
//!
//! unsafe extern "C" fn finalize(_: *mut ompt_data_t) {}
//!
//! #[unsafe(no_mangle)]
//! extern "C" fn ompt_start_tool(_omp_version: c_uint, _: *const c_char) -> *mut ompt_start_tool_result_t {
//!     static mut RESULT: ompt_start_tool_result_t = ompt_start_tool_result_t {
//!         initialize: Some(initialize),
//!         finalize: Some(finalize),
//!         tool_data: ompt_data_none,
//!     };
//!     &raw mut RESULT
//! }
//! ```
//!
//! # The meaning of NULL
//!
//! Pointers to functions are plain `unsafe extern "C" fn`, or an `Option` if the specification, or a runtime, permits
//! NULL. All other pointers are raw; they may be NULL where the documentation says so and, with real runtimes, also
//! elsewhere.
//!
//! # How it is checked
//!
//! `tests/header/main.rs` compiles C code with each `omp-tools.h` that it finds, and compares sizes, offsets, types and
//! values.

#![no_std]
// The names are those of the C header.
#![allow(non_camel_case_types, non_upper_case_globals)]

#[macro_use]
pub mod enums;

pub mod callbacks;
pub mod entry_points;
mod old;
pub mod records;
pub mod start;
pub mod types;

pub use callbacks::*;
pub use entry_points::*;
pub use enums::*;
pub use old::{collector, tr2, tr4, tr6, tr7};
pub use records::*;
pub use start::*;
pub use types::*;
