//! The tools interface of OpenMP (OMPT) as C declares it in `omp-tools.h`: OpenMP 5.2, chapter 19, and what
//! OpenMP 6.0 adds. Types, enumerations, signatures; no logic.
//!
//! | module | what a tool needs it for |
//! | --- | --- |
//! | [`start`] | to be found by the runtime: `ompt_start_tool`, initialize, finalize |
//! | [`entry_points`] | to ask the runtime, by what `ompt_function_lookup_t` answers |
//! | [`callbacks`] | to be called by the runtime when something happens |
//! | [`enums`] | the numbers in the arguments of both |
//! | [`types`] | scalars, `ompt_data_t`, `ompt_frame_t` and other small structures |
//! | [`records`] | to read what a device wrote into a trace buffer |
//! | [`collector`] | to serve runtimes that speak the Collector API of 2007 |
//! | [`tr2`] | to serve runtimes that speak the Technical Report 2 of 2014 |
//! | [`tr4`], [`tr6`] | to serve runtimes that speak a draft of OpenMP 5.0: what was otherwise in it |
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
//! # What is meant by NULL
//!
//! Pointers to functions are plain `unsafe extern "C" fn`; where the specification, or a runtime, lets them be NULL
//! they are an `Option`. All other pointers are raw and may be NULL where their section says so, and elsewhere too
//! in real runtimes.
//!
//! # How it is kept right
//!
//! `tests/header/main.rs` compiles C against each `omp-tools.h` that it finds and compares sizes, offsets, types, values.

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
