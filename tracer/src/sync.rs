//! The primitives used by [`crate::lockfree`]. Its models (`tests/models`) have a module with the same name that uses
//! loom's types.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence,
};

pub(crate) use crossbeam_queue::ArrayQueue as Queue;
