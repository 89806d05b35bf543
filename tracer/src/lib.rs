//! `libomptrace.so`: the OMPT tool that records an OpenMP program.
//!
//! An OpenMP runtime loads it (`OMP_TOOL_LIBRARIES=libomptrace.so ./app`) and calls back whenever something happens. Each
//! callback stores its arguments and the time into its thread's chunk and returns. **The tracer records facts; the reader
//! interprets them.**
//!
//! A folder uses only those below its line, which `tests/layers.rs` checks:
//!
//! ```text
//! entry                        how the tracer enters a process and leaves it
//! dialects                     the generations of the tools interface, which begin and end sessions
//! samples                      call stacks of all threads, by a timer
//! annotations                  what programs say of themselves
//! calls                        calls of other programming interfaces, such as MPI
//! callbacks, second_tool       the callbacks' table; the next tool, which the tracer passes on to
//! counters, devices, runtime_faults, waits  counters of threads; devices' trace buffers; faults of runtimes that would harm the program; waits that are not OpenMP's
//! session                      a session's life; chunks on their way into the file; metadata; forks; the cold path
//! recorder                     one thread's state: its events into its chunk
//! storage                      the spool, which threads share, and the trace file
//! config, runtime              the settings in force; the runtime, as it is asked
//! launched_rank, lockfree, os  the rank that an MPI launcher gives; what threads share without a lock, and is modelled; system calls, locks, clock, files, threads
//! sync                         atomics, or loom's in the models
//! ```
//!
//! An event's way, and that of a sample:
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
//! samples: timer -> handler -> ring of each thread -> drain        where samples are asked for
//! ```
//!
//! Modules above the session that act when it begins, ends or forks have hooks ([`session::hooks`]): samples, counters, devices and
//! some faults of runtimes. Each folder's `mod.rs` has a map of its modules.
//!
//! Invariants: on the hot path nothing allocates, locks, formats, makes a system call or loops without bound. No panic
//! and no failure leaves the tracer: tracing turns itself off, says so in one line, and the program runs on.

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
