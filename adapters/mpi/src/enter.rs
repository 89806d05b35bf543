//! Stores the registers of a call in memory, and restores them.

use crate::next::NEXT;
use crate::report;
use crate::tracer::TRACER;

/// The function to which all wrappers jump, with the symbol's number in `eax`. Without a tracer, it jumps to the next
/// definition.
///
/// # Safety
/// See the MPI function that was called.
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
        call = sym report::enter,
    )
}

/// The function to which all wrappers jump, with the symbol's number in `w9`. Without a tracer, it jumps to the next
/// definition.
///
/// # Safety
/// See the MPI function that was called.
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
        call = sym report::enter,
    )
}
