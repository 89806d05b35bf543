//! Runs a program under the tracer.
//!
//! ```text
//! before it
//!   find_tracer      the tracer's library, and the environment variables that make runtimes load it
//!   libgomp          whether LLVM's runtime replaces GCC's, or the adapter observes GCC's
//!   mpi              the libraries that record MPI calls
//!   annotations      the environment variables by which annotations reach the tracer
//!   preload          what the loader loads into programs before their own libraries
//!   tunables         variables of the C library and of sanitizers, because of preloaded libraries
//!   diagnosis        whether a program can be traced; advice: what to do about it
//!   command_words    why a command's programs may not be reached; permissions: libraries that other users cannot load
//! while it runs
//!   child_process    the program as a child process; energy: the machine's energy in the meantime
//! after it
//!   recorded_traces  traces with a note by the tracer; unregistered_traces: traces without a note
//!   kept_modules     files of modules that no longer exist when the program ends
//!   observed_process what `record` itself observed about the process
//!   crash_hints, separate_namespaces, libgomp_replacement
//!                    messages about crashes, libraries that were not reached, and replaced runtimes
//!   run_notes        notes about the recording
//!   record_summary   how the program ended, where the time went, where the trace is; launched_rank, job_traces:
//!                    one rank reports for all
//! ```

pub(crate) mod advice;
pub(crate) mod annotations;
pub(crate) mod child_process;
pub(crate) mod command_words;
pub(crate) mod crash_hints;
pub(crate) mod diagnosis;
pub(crate) mod energy;
pub(crate) mod find_tracer;
pub(crate) mod job_traces;
pub(crate) mod kept_modules;
pub(crate) mod launched_rank;
pub(crate) mod libgomp;
pub(crate) mod libgomp_replacement;
pub(crate) mod mpi;
pub(crate) mod observed_process;
pub(crate) mod permissions;
pub(crate) mod preload;
pub(crate) mod record_summary;
pub(crate) mod recorded_traces;
pub(crate) mod run_notes;
pub(crate) mod separate_namespaces;
pub(crate) mod tunables;
pub(crate) mod unregistered_traces;
