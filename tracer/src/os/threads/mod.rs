//! Thread support that does not use the standard library: locks, helper threads, containment of calls, a word per
//! thread.

pub(crate) mod alternate_stack;
pub(crate) mod containment;
pub(crate) mod helper_thread;
pub(crate) mod lock;
pub(crate) mod stack;
pub(crate) mod thread_word;
