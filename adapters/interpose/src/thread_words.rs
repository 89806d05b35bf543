//! A few thread-local words of the initial-exec model, for which a preloaded library has room and which are accessed
//! without calls and allocations. Rust's own thread-locals use another model in libraries.

/// Defines the words, which are initially 0, and a function `words` that returns the address of the calling thread's
/// words. `$symbol` is their symbol for the linker, which other libraries do not see.
#[macro_export]
macro_rules! thread_words {
    ($symbol:literal, $bytes:literal, $type:ty) => {
        core::arch::global_asm!(
            ".pushsection .tbss,\"awT\",%nobits",
            ".p2align 3",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",%object"),
            concat!(".size ", $symbol, ",", $bytes),
            concat!($symbol, ": .zero ", $bytes),
            ".popsection",
        );

        /// The words of the calling thread.
        #[inline(always)]
        pub(crate) fn words() -> *mut $type {
            let place;
            // SAFETY: only computes the address of the thread's own words; the linker fills in their offset.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                core::arch::asm!(
                    concat!("mov {p}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "add {p}, qword ptr fs:[0]",
                    p = out(reg) place,
                    options(readonly, nostack, pure)
                );
            }
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                core::arch::asm!(
                    concat!("adrp {o}, :gottprel:", $symbol),
                    concat!("ldr {o}, [{o}, :gottprel_lo12:", $symbol, "]"),
                    "mrs {p}, tpidr_el0",
                    "add {p}, {p}, {o}",
                    o = out(reg) _, p = out(reg) place,
                    options(readonly, nostack, preserves_flags, pure)
                );
            }
            place
        }
    };
}
