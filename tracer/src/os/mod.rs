//! Operating system interfaces used by the tracer. These modules use no other part of the crate.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`system`] | system calls that no other library can replace |
//! | [`signals`] | blocks signals on the calling thread |
//! | [`threads::lock`] | mutex and semaphore over futex(2) |
//! | [`time::clock`] | the time of an event; it is on the hot path |
//! | [`threads::thread_word`] | a word for each thread; it is on the hot path |
//! | [`threads::containment`] | keeps panics, cancellation and changes of `errno` from the program |
//! | [`panics`] | reports a panic in one line |
//! | [`unwatched`] | keeps sanitizers of the program from checking the tracer |
//! | [`log`] | one line on stderr |
//! | [`files::protected_fd`] | files whose descriptors the program may close |
//! | [`threads::helper_thread`] | the tracer's own threads, which may have to start and end while the loader's lock is held |
//! | [`loader`] | finds the library at an address, without the loader's lock |
//! | [`forks`] | keeps the tracer's threads out of the loader while another thread forks |
//! | [`threads::stack`] | a separate stack, for threads that have a small one |
//! | [`files::module_file`] | sends the files of modules to `omptrace record` |
//! | [`emergency_alloc`] | memory for when the program has none left |
//! | [`time::usage`], [`perf`] | per-thread counts of the kernel and the CPU |
//! | [`time::timer`] | a timer on a thread's CPU time, its signal, and the handler's stack |
//! | [`sanitizer`] | faults that `cargo xtask sanitize` plants |

mod emergency_alloc;
pub(crate) mod files;
pub(crate) mod forks;
pub(crate) mod loader;
pub(crate) mod log;
pub(crate) mod panics;
pub(crate) mod perf;
pub(crate) mod sanitizer;
pub(crate) mod signals;
pub(crate) mod system;
pub(crate) mod threads;
pub(crate) mod time;
pub(crate) mod unwatched;
