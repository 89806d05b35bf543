//! A session's helper threads: the writer, and the thread that waits for a signal.

use std::sync::atomic::{AtomicBool, AtomicU8};

use omptrace_trace_format::codec::Packer;

use crate::lockfree::writer_priority::WriterPriority;
use crate::lockfree::writer_wakeup::WriterWakeup;
use crate::os::threads::helper_thread::HelperThread;

/// The session's writer.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) level: i32,
    /// `NOT_STARTED`, `RUNNING` or `REFUSED`, defined in `writer`.
    pub(super) state: AtomicU8,
    /// Its result is the packer.
    pub(super) thread: HelperThread<Packer>,
    pub(super) pace: WriterPriority,
    pub(super) bell: WriterWakeup,
}

/// The helper thread that waits for the signal.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) thread: HelperThread<()>,
    pub(super) stop: AtomicBool,
}
