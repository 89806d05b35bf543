//! The protocols of what threads share without a lock, each apart from what it protects. One is elsewhere: that of forks and
//! the loader (`session/fork.rs`), which has no model.
//!
//! | module | between whom |
//! | --- | --- |
//! | [`chunk_header`] | a chunk's thread and whoever reads the chunk |
//! | [`queues`] | threads and the writer, which take turns at chunks |
//! | [`writer_wakeup`] | threads that have work, and the writer that sleeps |
//! | [`writer_priority`] | threads that wait for the writer, and the writer that takes idle time |
//! | [`gate`] | threads that record, and the one that ends the session |
//! | [`list`] | threads that come and go, over their recorders |
//! | [`ring`] | a thread's signal handler, and who reads its samples |
//!
//! Nothing in here knows of anything else in the crate but [`crate::sync`]. `tests/models` compiles the same files over
//! loom's types and runs them in every order that the memory model allows. It also shows of each ordering that a weaker one
//! would be found.

pub(crate) mod chunk_header;
pub(crate) mod gate;
pub(crate) mod list;
pub(crate) mod queues;
pub(crate) mod ring;
pub(crate) mod writer_priority;
pub(crate) mod writer_wakeup;
