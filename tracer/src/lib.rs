//! `libomptrace.so`: the OMPT tool that records an OpenMP program.
//!
//! An OpenMP runtime loads it (`OMP_TOOL_LIBRARIES=libomptrace.so ./app`) and calls back whenever something happens. Each
//! callback stores its arguments and the time into its thread's chunk and returns. **The tracer records facts; the reader
//! interprets them.**
//!
//! A module uses only modules below its line, which `tests/layers.rs` checks:
//!
//! ```text
//! entry                        how the tracer enters a process and leaves it
//! dialects                     the generations of the tools interface, which begin and end sessions
//! samples                      call stacks of all threads, sampled by a timer
//! annotations                  NVTX, ITT and other annotations of programs
//! calls                        calls of other programming interfaces, such as MPI
//! callbacks, second_tool       the table of callbacks; the next tool, to which the tracer forwards callbacks
//! counters, devices, runtime_faults, waits  counters of threads; devices' trace buffers; workarounds for runtimes that would harm the program; waits outside OpenMP
//! session                      a session's life; writing chunks to the file; metadata; forks; the cold path
//! recorder                     one thread's state: writes its events into its chunk
//! storage                      the spool, which threads share, and the trace file
//! config, runtime              the settings in force; the runtime's entry points and description
//! launched_rank, lockfree, os  the rank set by an MPI launcher; lock-free data shared by threads, checked with models; system calls, locks, clock, files, threads
//! sync                         atomics, or loom's in the models
//! ```
//!
//! The path of an event, and of a sample:
//!
//! ```text
//! callbacks -> this_thread -> recorder -> chunk in the spool       each event
//!                   anything rare |
//!                                 v
//!                         session::cold_path                       some events
//!                                 |
//!                                 v
//! spool: free chunks <-> full chunks -> writer -> trace file       chunks
//!   ^ sample streams
//!   |
//! samples: timer -> handler -> ring of each thread -> drain        if samples are requested
//! ```
//!
//! Modules above `session` that need to act when a session starts, ends or forks have hooks ([`session::hooks`]):
//! samples, counters, devices and workarounds for some faults of runtimes. Each directory's `mod.rs` lists its modules.
//!
//! Invariants: on the hot path nothing allocates, locks, formats, makes a system call or loops without bound. No panic
//! and no failure leaves the tracer: tracing turns itself off and reports it in one line, and the program continues.

#![allow(rustdoc::private_intra_doc_links, reason = "the words above are for those who read the code")]
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "rings and mappings of samples")
)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod annotations;
pub mod callbacks;
mod calls;
mod config;
mod counters;
mod devices;
mod dialects;
mod entry;
mod launched_rank;
mod lockfree;
mod os;
mod recorder;
mod runtime;
mod runtime_faults;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod samples;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "no_samples.rs"]
mod samples;
mod second_tool;
mod session;
mod storage;
mod sync;
mod waits;
