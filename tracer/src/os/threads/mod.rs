//! Threads without the standard library's: locks, helpers, containment of calls, the word of each thread.

pub(crate) mod alternate_stack;
pub(crate) mod containment;
pub(crate) mod helper_thread;
pub(crate) mod lock;
pub(crate) mod stack;
pub(crate) mod thread_word;
