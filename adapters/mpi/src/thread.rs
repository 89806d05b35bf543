//! Five words of the calling thread's, of initial-exec storage: a preloaded library has room there, and needs neither a call nor memory
//! to reach them.

use crate::frame::Frame;

/// What is known of a thread.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Thread {
    /// The stack pointer of the program's call that the thread is in; 0 where it is in none. A call from deeper in the stack is MPI's
    /// own, while that call's frame is there still. Else the call was left by `longjmp` or an exception, as an error handler does it.
    pub(crate) inside: usize,
    /// Where that call returns to.
    pub(crate) code: usize,
    /// How many tests in a row have found nothing complete.
    pub(crate) fruitless: u64,
    /// The function of the last one.
    pub(crate) fruitless_function: u64,
    /// The function of the call that the tracer knows to have begun, and not to have ended; 0 where there is none.
    pub(crate) open: u32,
    /// Its class.
    pub(crate) open_class: u32,
}

interpose::thread_words!("omptmpi_thread", 40, Thread);

const _: () = assert!(size_of::<Thread>() == 40);

impl Thread {
    /// Whether the call of this frame is made by the one that the thread is in. The program's next call from where the other one was
    /// called puts another address in the place of its return address, or is not deeper in the stack.
    ///
    /// # Safety
    /// The frame is on the thread's stack, where another call of the program's has been.
    pub(crate) unsafe fn is_within(&self, frame: *const Frame) -> bool {
        // SAFETY: deeper frames are there, so this address is on the stack, too.
        self.inside > frame as usize
            && unsafe { (*(self.inside as *const Frame)).return_address } == self.code
    }
}
