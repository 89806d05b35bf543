//! The parts that [`crate::lockfree`] is made of. Its models (`tests/models`) have a module of the same name over loom's
//! types.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence,
};

pub(crate) use crossbeam_queue::ArrayQueue as Queue;
