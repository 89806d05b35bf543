//! The arguments of a call in memory, and calls of functions with them.

/// Number of registers for arguments.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: usize = 6;
/// Number of registers for arguments.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: usize = 8;

/// The memory layout that `omptrace_mpi_call` creates; arguments on the stack follow it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) registers: [u64; REGISTERS],
    /// The number of the symbol, or a saved frame pointer.
    _other: u64,
    /// Return address in the program.
    pub(crate) return_address: usize,
}

/// Calls `next` with the arguments of a frame: those in registers, and `on_stack` words that follow the frame.
///
/// # Safety
/// The frame is followed by this number of words, and `next` is a function that takes these arguments.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn invoke(next: usize, frame: *const Frame, on_stack: usize) -> u64 {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov r11, rdi",
        "mov r10, rsi",
        "lea rax, [rdx + 1]",
        "and rax, -2",
        "shl rax, 3",
        "sub rsp, rax",
        "test rdx, rdx",
        "je 3f",
        "2:",
        "mov rax, [r10 + 8 * rdx + 56]",
        "mov [rsp + 8 * rdx - 8], rax",
        "dec rdx",
        "jne 2b",
        "3:",
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "mov r9, [r10 + 40]",
        "xor eax, eax",
        "call r11",
        "leave",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
    )
}

/// Calls `next` with the arguments of a frame: those in registers, and `on_stack` words that follow the frame.
///
/// # Safety
/// The frame is followed by this number of words, and `next` is a function that takes these arguments.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn invoke(next: usize, frame: *const Frame, on_stack: usize) -> u64 {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_adjust_cfa_offset 16",
        ".cfi_rel_offset x29, 0",
        ".cfi_rel_offset x30, 8",
        "mov x29, sp",
        ".cfi_def_cfa_register x29",
        "mov x16, x0",
        "mov x10, x1",
        "add x11, x2, #1",
        "and x11, x11, #-2",
        "sub sp, sp, x11, lsl #3",
        "add x12, x10, #80",
        "2:",
        "cbz x2, 3f",
        "sub x2, x2, #1",
        "ldr x13, [x12, x2, lsl #3]",
        "str x13, [sp, x2, lsl #3]",
        "b 2b",
        "3:",
        "ldp x0, x1, [x10]",
        "ldp x2, x3, [x10, #16]",
        "ldp x4, x5, [x10, #32]",
        "ldp x6, x7, [x10, #48]",
        "blr x16",
        "mov sp, x29",
        ".cfi_def_cfa_register sp",
        "ldp x29, x30, [sp], #16",
        ".cfi_adjust_cfa_offset -16",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_endproc",
    )
}
