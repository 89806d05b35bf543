//! A few words of each thread's, of initial-exec storage: a preloaded library has room there, and needs neither a call nor memory to
//! reach them. Rust's own thread-locals are of another kind in libraries.

/// Defines the words, which are 0 at first, and a function `words` that gives the address of the calling thread's. `$symbol` is their
/// name for the linker, which no other library sees.
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

        /// The calling thread's.
        #[inline(always)]
        pub(crate) fn words() -> *mut $type {
            let place;
            // SAFETY: computes the address of the thread's own words; the linker fills in their offset.
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
