//! Exported functions: each loads its number and jumps to `omptrace_mpi_call`, with all registers and the stack as its
//! caller left them.

/// The instructions that jump to `{call}` with the number `{slot}` in a register that holds no argument.
#[cfg(target_arch = "x86_64")]
macro_rules! go_on {
    () => {
        "mov eax, {slot}\n jmp qword ptr [rip + {call}@GOTPCREL]"
    };
}

/// The instructions that jump to `{call}` with the number `{slot}` in a register that holds no argument.
#[cfg(target_arch = "aarch64")]
macro_rules! go_on {
    () => {
        "mov w9, {slot}\n adrp x16, :got:{call}\n ldr x16, [x16, :got_lo12:{call}]\n br x16"
    };
}

/// Defines the exported function for a slot.
macro_rules! wrapper {
    ($name:ident, $slot:literal) => {
        // SAFETY: an MPI library has a function with this name, which this one replaces.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(go_on!(), slot = const $slot, call = sym omptrace_mpi_call)
        }
    };
}
