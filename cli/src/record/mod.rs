//! A traced run.
//!
//! ```text
//! before it
//!   find_tracer      the tracer's library, and the variables that make runtimes load it
//!   libgomp          whether LLVM's runtime takes the place of GCC's, or the adapter observes it
//!   mpi              which libraries see calls of MPI
//!   annotations      the variables by which programs find the tracer for what they say of themselves
//!   preload          what the loader loads into programs before their own libraries
//!   tunables         variables of the C library and of sanitizers, for libraries that are preloaded
//!   diagnosis        whether a program can be traced; advice: what to do then
//!   command_words    what in a command keeps the tracer from its programs; permissions: libraries that others cannot load
//! while it runs
//!   child_process    the program, as a child; energy: what the machine uses meanwhile
//! after it
//!   recorded_traces  traces of which the tracer left a note; unregistered_traces: others
//!   kept_modules     files of code that are gone when the program ends
//!   observed_process what `record` itself saw of the process
//!   crash_hints, separate_namespaces, libgomp_replacement
//!                    what is said of a death, of libraries that were not reached, of a runtime that was replaced
//!   record_summary   how it ended, where the time went, where the trace is; launched_rank, job_traces: one
//!                    rank speaks for all
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
pub(crate) mod separate_namespaces;
pub(crate) mod tunables;
pub(crate) mod unregistered_traces;
