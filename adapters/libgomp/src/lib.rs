//! `libomptgomp.so`: the OpenMP tools interface (OMPT) for programs that run on GCC's libgomp, which has none.
//!
//! A program preloads the library. It defines libgomp's entry points, and calls libgomp's own behind each of them. It
//! reports to a tool what an OpenMP runtime with OMPT would report (OpenMP 5.2, chapter 19). It knows nothing of
//! omptrace: any tool can use it, and it finds the tool as the specification says (19.2.2).
//!
//! It is written from libgomp's calling interface: names, signatures and flags, for which the sources are GCC's
//! `libgomp.map` and `libgomp_g.h`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `entries` | libgomp's functions as they are exported, by construct: `parallel`, `worksharing`, `barrier`, `mutex`, `task`, `taskloop`, `depend`, `target`, `cancel` |
//! | `entries::exported` | how an exported function learns its caller's return address and frame |
//! | `model` | threads, teams and tasks, as OMPT sees them |
//! | `tool` | the search for a tool, the entry points that it gets, its callbacks, the end |
//! | `which_libgomp` | the real functions, one set for each libgomp in the process, and which set serves a caller; libraries and their symbols |
//! | `start` | what the global scope holds when the process begins |
//! | `fork_lock` | locks that forked children can have |
//! | `sanitizer` | what `cargo xtask sanitize` builds besides |
//!
//! The adapter does not report what libgomp's interface does not show. GCC inlines static loops, `masked`, `atomic` and most
//! reductions. libgomp resolves dependences between tasks within itself.

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

/// Sanitizers must see what is allocated and freed.
#[cfg(not(any(omptrace_memory_is_watched, omptrace_thread_sanitizer)))]
#[global_allocator]
static MEMORY: interpose::memory::KernelMemory = interpose::memory::KernelMemory;
