//! `libomptrace.so`: the OMPT tool that records an OpenMP program.
//!
//! An OpenMP runtime loads it (`OMP_TOOL_LIBRARIES=libomptrace.so ./app`) and calls back whenever something happens;
//! each callback stores its arguments and the time into its thread's chunk and returns. **The tracer records facts;
//! the reader judges them.**
//!
//! ```text
//! runtime -> callbacks -> recorder (thread-local) -> chunk in the spool     the hot path
//!                            | anything rare
//!                            v
//!                          cold -> session -> spool: free chunks <-> full chunks -> writer -> output
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`start`] | `ompt_start_tool`, initialize, finalize, the library's destructor |
//! | [`dialect`] | the generations of the tools interface |
//! | [`callbacks`] | the table: one row per callback |
//! | [`recorder`], [`tls`], [`clock`] | the hot path |
//! | [`cold`], [`stream`] | what the hot path leaves |
//! | [`session`], [`spool`], [`output`], [`writer`] | chunks on their way into the file |
//! | [`guard`], [`own_file`] | no panic, cancellation or `errno` for the program; files whose descriptors it may close |
//! | [`quirks`] | the table of faults of runtimes that would harm the program |
//! | [`first_thread`] | what LLVM's runtime cannot report when its first thread has ended |
//! | [`join_barrier`] | the place in LLVM's runtime that must be empty where a taskwait with dependences begins |
//! | [`undeferred`] | the dependences of undeferred tasks, which corrupt the heap of LLVM's runtime |
//! | [`own_thread`] | threads of ours, which may have to end under the loader's lock |
//! | [`signal`] | the signal at which a flight recorder writes what it keeps |
//! | [`fork`] | children |
//! | [`lockfree`], [`sync`] | what threads share without a lock, and is modelled |
//! | [`tr2`] | the callbacks of OMPT of 2014 |
//! | [`collector`], [`preload`] | the Collector API, and how a runtime is found that looks for no tool |
//! | [`apart`] | libraries that do not see what is preloaded |
//! | [`libgomp`] | GCC's runtime beside the one that took its place |
//! | [`states`] | what threads are doing, for who asks for it |
//! | [`sanitizer`] | what `cargo xtask sanitize` needs |
//! | [`control`] | `omp_control_tool` |
//! | [`devices`] | trace buffers, images and clocks of devices |
//! | [`module_file`] | the files of modules, for `omptrace record` |
//! | [`modules`], [`facts`], [`runtime`] | what the trace says about process and runtime |
//! | [`config`] | the `OMPTRACE_*` variables |
//! | [`kernel`], [`system`], [`lock`] | system calls that no library can replace, and waiting by them |
//! | [`reserve`], [`log`] | memory where the program has none left, one line on stderr |
//!
//! Invariants: on the hot path nothing allocates, locks, formats, makes a system call or loops without bound. No panic
//! and no failure leaves the tracer: tracing turns itself off, says so in one line, and the program runs on.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the table above is for those who read the code"
)]

mod apart;
pub mod callbacks;
mod clock;
mod cold;
mod collector;
pub mod config;
mod control;
mod devices;
mod dialect;
mod facts;
mod first_thread;
mod fork;
mod guard;
mod join_barrier;
mod kernel;
mod libgomp;
mod lock;
mod lockfree;
mod log;
mod module_file;
mod modules;
mod output;
mod own_file;
mod own_thread;
mod preload;
mod quirks;
mod recorder;
mod reserve;
mod runtime;
mod sanitizer;
mod session;
mod signal;
mod spool;
mod start;
mod states;
mod stream;
mod sync;
mod system;
mod tls;
mod tr2;
mod undeferred;
mod writer;
