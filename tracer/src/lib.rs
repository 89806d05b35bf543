//! `libomptrace.so`: the OMPT tool that records an OpenMP program.
//!
//! An OpenMP runtime loads it (`OMP_TOOL_LIBRARIES=libomptrace.so ./app`) and calls back whenever something happens. Each
//! callback stores its arguments and the time into its thread's chunk and returns. **The tracer records facts; the reader
//! interprets them.**
//!
//! ```text
//! entry                how the tracer enters a process and leaves it
//!   |-> dialects       the generations of the tools interface      -> callbacks, session
//!   |-> quirks         faults of single runtimes                   -> callbacks, session
//!   |-> devices        trace buffers, images and clocks of devices -> slow path, session
//!   |-> chain          the next tool, where there is one           -> dialects, quirks
//!   v
//! counters: read -> row                                          where they are asked for
//!   v
//! hot:     callbacks -> tls -> recorder -> chunk in the spool      each event
//!                       anything rare |
//!                                     v
//!                                slow path                          some events
//!   ^                                 |
//!   v                                 v
//! session:  spool: free chunks <-> full chunks -> writer -> output  chunks and the file
//!   |  ^
//!   v  | sample streams
//! samples:  timer -> handler -> ring of each thread -> drain        where samples are asked for
//!   |
//!   v
//! lockfree, os         modelled protocols; the operating system     know nothing of the rest
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`entry`] | `ompt_start_tool` and the library's constructor and destructor |
//! | [`dialects`] | the generations of the tools interface, and the runtime behind them |
//! | [`quirks`] | what is done about faults of runtimes that would harm the program, a module for each |
//! | [`devices`] | trace buffers, images and clocks of devices |
//! | [`chain`] | the next tool, which the tracer passes on to |
//! | [`hot`] | what runs at each event: the callbacks' table, the recorder, the slow path |
//! | [`session`] | a session's life; chunks on their way into the file; metadata; forks; `omp_control_tool` |
//! | [`counters`] | counters of threads, at the boundaries of constructs |
//! | [`samples`] | call stacks of all threads, by a timer |
//! | [`lockfree`], [`sync`] | what threads share without a lock, and is modelled |
//! | [`os`] | system calls, locks, clock, files, threads, messages |
//! | [`config`] | the settings in force |
//!
//! Each folder's `mod.rs` has a map of its modules. `tests/layers.rs` checks that a folder uses only what it may.
//!
//! Invariants: on the hot path nothing allocates, locks, formats, makes a system call or loops without bound. No panic
//! and no failure leaves the tracer: tracing turns itself off, says so in one line, and the program runs on.

#![allow(rustdoc::private_intra_doc_links, reason = "the table above is for those who read the code")]
#![cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "rings and mappings of samples"))]

pub mod callbacks;
mod chain;
mod config;
mod counters;
mod devices;
mod dialects;
mod entry;
mod lockfree;
mod os;
mod quirks;
mod recorder;
mod runtime;
#[cfg(target_arch = "x86_64")]
mod samples;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_samples.rs"]
mod samples;
mod session;
mod storage;
mod sync;
