//! Seven thread-local words of the initial-exec model, for which a preloaded library has room and which are accessed
//! without calls and allocations.

use crate::frame::Frame;

/// The state of a thread.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Thread {
    /// Stack pointer of the program's call that the thread is in; 0 if it is in none. A call from deeper in the stack
    /// is one by MPI itself, as long as the outer call's frame still exists. Otherwise the outer call was left by
    /// `longjmp` or an exception, as error handlers do.
    pub(crate) inside: usize,
    /// Return address of that call.
    pub(crate) code: usize,
    /// Number of consecutive tests that completed nothing.
    pub(crate) fruitless: u64,
    /// The function of the last such test.
    pub(crate) fruitless_function: u64,
    /// The number of these tests whose duration was measured, and the sum of their durations in nanoseconds.
    pub(crate) measured: u64,
    pub(crate) measured_ns: u64,
    /// The function of the call whose begin was reported and whose end was not; 0 if there is none.
    pub(crate) open: u32,
    /// The class of that function.
    pub(crate) open_class: u32,
}

interpose::thread_words!("omptmpi_thread", 56, Thread);

const _: () = assert!(size_of::<Thread>() == 56);

impl Thread {
    /// Whether the call with this frame is made within the call that the thread is in. If that call was abandoned, the
    /// program's next call either writes another return address to this position, or is not deeper in the stack.
    ///
    /// # Safety
    /// The frame is on the thread's stack, on which the outer call has been.
    pub(crate) unsafe fn is_within(&self, frame: *const Frame) -> bool {
        // SAFETY: deeper frames exist, so this address is on the stack, too.
        self.inside > frame as usize
            && unsafe { (*(self.inside as *const Frame)).return_address } == self.code
    }
}
