//! Four words of the calling thread's, of initial-exec storage: a preloaded library has room there, and needs neither a call nor memory
//! to reach them.

/// What is known of a thread.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Thread {
    /// The stack pointer of the program's call that the thread is in; 0 where it is in none. A call from deeper in the stack is MPI's
    /// own. Where the stack is less deep, the call was left by `longjmp` or an exception, as an error handler does it.
    pub(crate) inside: usize,
    /// How many tests in a row have found nothing complete.
    pub(crate) fruitless: u64,
    /// The function of the last one.
    pub(crate) fruitless_function: u64,
    /// The function of the call that the tracer knows to have begun, and not to have ended; 0 where there is none.
    pub(crate) open: u32,
    /// Its class.
    pub(crate) open_class: u32,
}

interpose::thread_words!("omptmpi_thread", 32, Thread);

const _: () = assert!(size_of::<Thread>() == 32);
