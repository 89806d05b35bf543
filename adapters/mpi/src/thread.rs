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

core::arch::global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".p2align 3",
    ".hidden omptmpi_thread",
    ".globl omptmpi_thread",
    ".type omptmpi_thread,%object",
    ".size omptmpi_thread,32",
    "omptmpi_thread: .zero 32",
    ".popsection",
);

const _: () = assert!(size_of::<Thread>() == 32);

/// The calling thread's.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn words() -> *mut Thread {
    let place;
    // SAFETY: computes the address of the thread's own words; the linker fills in their offset.
    unsafe {
        core::arch::asm!(
            "mov {p}, qword ptr [rip + omptmpi_thread@GOTTPOFF]",
            "add {p}, qword ptr fs:[0]",
            p = out(reg) place,
            options(readonly, nostack, pure)
        );
    }
    place
}

/// The calling thread's.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn words() -> *mut Thread {
    let place;
    // SAFETY: computes the address of the thread's own words; the linker fills in their offset.
    unsafe {
        core::arch::asm!(
            "adrp {o}, :gottprel:omptmpi_thread",
            "ldr {o}, [{o}, :gottprel_lo12:omptmpi_thread]",
            "mrs {p}, tpidr_el0",
            "add {p}, {p}, {o}",
            o = out(reg) _, p = out(reg) place,
            options(readonly, nostack, preserves_flags, pure)
        );
    }
    place
}
