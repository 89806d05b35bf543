//! The operating system as the tracer uses it. Nothing in this folder uses another part of the crate.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`kernel`], [`system`] | system calls that no other library can replace |
//! | [`lock`] | mutex and semaphore over futex(2) |
//! | [`clock`] | the time of an event; it is on the hot path |
//! | [`thread_word`] | a word for each thread; it is on the hot path |
//! | [`containment`] | keeps panics, cancellation and changes of `errno` from the program |
//! | [`panics`] | says a panic in one line |
//! | [`unwatched`] | keeps sanitizers of the program from checking the tracer |
//! | [`log`] | one line on stderr |
//! | [`protected_fd`] | files whose descriptors the program may close |
//! | [`helper_thread`] | the tracer's own threads, which may have to begin and end under the loader's lock |
//! | [`loader`] | which library holds an address, without the loader's lock |
//! | [`forks`] | no thread of ours is in the loader while another one forks |
//! | [`stack`] | a stack of our own, for threads that have a small one |
//! | [`module_file`] | sends the files of modules to `omptrace record` |
//! | [`emergency_alloc`] | memory where the program has none left |
//! | [`usage`], [`perf`] | counts that the kernel and the processor keep of a thread |
//! | [`timer`] | a timer on a thread's processor time, its signal, and the handler's stack |
//! | [`sanitizer`] | faults that `cargo xtask sanitize` plants |

pub(crate) mod clock;
pub(crate) mod containment;
mod emergency_alloc;
pub(crate) mod forks;
pub(crate) mod helper_thread;
pub(crate) mod kernel;
pub(crate) mod loader;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod module_file;
pub(crate) mod panics;
pub(crate) mod perf;
pub(crate) mod protected_fd;
pub(crate) mod sanitizer;
pub(crate) mod stack;
pub(crate) mod system;
pub(crate) mod thread_word;
#[cfg(target_arch = "x86_64")]
pub(crate) mod timer;
pub(crate) mod unwatched;
pub(crate) mod usage;
