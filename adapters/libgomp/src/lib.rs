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
//! | `entries` | how an exported function learns its caller's return address and frame, and what the caller's call is |
//! | `which_libgomp` | the real functions, one set for each libgomp in the process, and which set serves a caller |
//! | `release` | which release of GCC a libgomp comes from, and whether it has the interface itself |
//! | `loaded` | the libraries that the process has loaded |
//! | `start` | what the global scope holds when the process begins |
//! | `memory` | this library's own memory |
//! | `elf` | symbols of libraries, by their dynamic sections |
//! | `audit` | how calls that the loader binds elsewhere get here |
//! | `old_locks` | the versions of lock functions |
//! | `unload` | what happens when the program unloads a library |
//! | `tool` | the search for a tool, the entry points that it gets, the end; whether there is one |
//! | `callbacks` | the callbacks that the tool registered |
//! | `model` | teams and tasks, as OMPT sees them, the tasks that a cancellation may discard, a thread's words |
//! | `thread` | the calling thread, its begin and its end |
//! | `parallel`, `worksharing`, `barrier`, `mutex` | the entry points of these constructs |
//! | `task`, `task_block`, `taskloop`, `taskloop_tasks`, `depend` | explicit tasks, and what they wait for |
//! | `target`, `devices` | device constructs, and the devices that they use |
//! | `cancel`, `control`, `variables` | the rest |
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

mod memory;
mod model;
mod sanitizer;
mod start;
