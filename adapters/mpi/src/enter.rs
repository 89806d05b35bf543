//! From the registers of a call to words in memory, and back.

use crate::call;
use crate::next::NEXT;
use crate::tracer::TRACER;

/// Registers that hold arguments.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: usize = 6;
/// Registers that hold arguments.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: usize = 8;

/// What `omptrace_mpi_call` leaves in memory; arguments on the stack follow.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) registers: [u64; REGISTERS],
    /// The number of the symbol, or a saved frame pointer.
    _other: u64,
    /// Where the program goes on.
    pub(crate) return_address: usize,
}

/// Where all wrappers go on, with the number of the symbol in `eax`. Without a tracer, it jumps to the next definition.
///
/// # Safety
/// As of the MPI function that was called.
// SAFETY: no other library has a function of this name.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn omptrace_mpi_call() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "cmp qword ptr [rip + {tracer}], 0",
        "jne 2f",
        "lea r11, [rip + {next}]",
        "mov r11, [r11 + 8 * rax]",
        "test r11, r11",
        "je 2f",
        "xor eax, eax",
        "jmp r11",
        "2:",
        "push rax",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        ".cfi_adjust_cfa_offset 56",
        "mov rdi, rsp",
        "mov esi, eax",
        "call {call}",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        tracer = sym TRACER,
        next = sym NEXT,
        call = sym call::enter,
    )
}

/// Where all wrappers go on, with the number of the symbol in `w9`. Without a tracer, it jumps to the next definition.
///
/// # Safety
/// As of the MPI function that was called.
// SAFETY: no other library has a function of this name.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn omptrace_mpi_call() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "adrp x16, {tracer}",
        "ldr x16, [x16, :lo12:{tracer}]",
        "cbnz x16, 2f",
        "adrp x16, {next}",
        "add x16, x16, :lo12:{next}",
        "ldr x16, [x16, w9, uxtw #3]",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_adjust_cfa_offset 16",
        ".cfi_rel_offset x29, 0",
        ".cfi_rel_offset x30, 8",
        "stp x6, x7, [sp, #-16]!",
        "stp x4, x5, [sp, #-16]!",
        "stp x2, x3, [sp, #-16]!",
        "stp x0, x1, [sp, #-16]!",
        ".cfi_adjust_cfa_offset 64",
        "mov x0, sp",
        "mov w1, w9",
        "bl {call}",
        "add sp, sp, #64",
        ".cfi_adjust_cfa_offset -64",
        "ldp x29, x30, [sp], #16",
        ".cfi_adjust_cfa_offset -16",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_endproc",
        tracer = sym TRACER,
        next = sym NEXT,
        call = sym call::enter,
    )
}

/// Calls `next` with the arguments of a frame: those in registers, and as many as `on_stack` says behind it.
///
/// # Safety
/// There are as many, and `next` is a function that takes them.
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

/// Calls `next` with the arguments of a frame: those in registers, and as many as `on_stack` says behind it.
///
/// # Safety
/// There are as many, and `next` is a function that takes them.
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
