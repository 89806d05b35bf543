//! The protocols for data that threads share without a lock, each separated from the data it protects. One such
//! protocol is elsewhere, without a model: the one of forks and the loader (`session/fork.rs`).
//!
//! | module | participants |
//! | --- | --- |
//! | [`chunk_header`] | a chunk's thread, and readers of the chunk |
//! | [`queues`] | threads and the writer, which own chunks in turn |
//! | [`writer_wakeup`] | threads that have work, and the sleeping writer |
//! | [`writer_priority`] | threads that wait for the writer, and the writer that runs in idle time |
//! | [`gate`] | threads that record, and the thread that ends the session |
//! | [`list`] | threads that start and end, and their recorders |
//! | [`ring`] | a thread's signal handler, and the reader of its samples |
//!
//! These modules use nothing of the crate except [`crate::sync`]. `tests/models` compiles the same files with loom's
//! types and runs them in every order that the memory model allows. It also shows, for each ordering, that a weaker one
//! would be detected.

pub(crate) mod chunk_header;
pub(crate) mod gate;
pub(crate) mod list;
pub(crate) mod queues;
pub(crate) mod ring;
pub(crate) mod writer_priority;
pub(crate) mod writer_wakeup;
