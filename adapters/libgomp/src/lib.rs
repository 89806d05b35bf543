//! `libomptgomp.so`: the OpenMP tools interface (OMPT) for programs that run on GCC's libgomp, which has none.
//!
//! A program preloads the library. The library defines libgomp's entry points, each of which calls libgomp's own
//! function. It reports to a tool what an OpenMP runtime with OMPT would report (OpenMP 5.2, chapter 19). It does not
//! depend on omptrace: any tool can use it, and it finds the tool as the specification says (19.2.2).
//!
//! The code is written from libgomp's calling interface: names, signatures and flags, taken from GCC's `libgomp.map`
//! and `libgomp_g.h`.
//!
//! | module | contents |
//! | --- | --- |
//! | `entries` | libgomp's functions as the adapter exports them, by construct: `parallel`, `worksharing`, `barrier`, `mutex`, `task`, `taskloop`, `depend`, `target`, `cancel` |
//! | `entries::exported` | how an exported function gets its caller's return address and frame |
//! | `model` | threads, teams and tasks, as OMPT sees them |
//! | `tool` | the search for a tool, the entry points for the tool, its callbacks, finalization |
//! | `which_libgomp` | libgomp's functions, one set for each libgomp in the process, and the set that serves a caller; libraries and their symbols |
//! | `start` | the symbols in the global scope when the process starts |
//! | `fork_lock` | locks that stay usable in forked children |
//! | `sanitizer` | annotations for ThreadSanitizer |
//!
//! Constructs that are not visible at libgomp's interface are not reported: GCC inlines static loops, `masked`,
//! `atomic` and most reductions, and libgomp resolves task dependences internally.

#![allow(
    non_snake_case,
    non_upper_case_globals,
    reason = "exported names are libgomp's, numbers those of OMPT's header"
)]
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

#[macro_use]
mod which_libgomp;
#[macro_use]
mod tool;
#[macro_use]
mod entries;

mod fork_lock;
mod model;
mod sanitizer;
mod start;

/// Sanitizers must see allocations, so they use the default allocator.
#[cfg(not(any(omptrace_memory_is_watched, omptrace_thread_sanitizer)))]
#[global_allocator]
static MEMORY: interpose::memory::KernelMemory = interpose::memory::KernelMemory;
