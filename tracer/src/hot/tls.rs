//! The thread's recorder: one pointer of thread-local storage, without destructor, in the initial-exec model.
//!
//! `thread_local!` in a shared library goes through `__tls_get_addr` (measured: 22 instructions per event more).
//! Eight bytes of initial-exec storage fit the surplus that the C library keeps for libraries loaded at run time.

use crate::hot::recorder::{IDLE, OURS, Recorder};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod place {
    use super::{IDLE, Recorder};

    core::arch::global_asm!(
        ".pushsection .tdata,\"awT\",%progbits",
        ".p2align 3",
        ".hidden omptrace_recorder",
        ".globl omptrace_recorder",
        ".type omptrace_recorder,%object",
        ".size omptrace_recorder,8",
        "omptrace_recorder: .quad {idle}",
        ".popsection",
        idle = sym IDLE,
    );

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn get() -> *const Recorder {
        let recorder;
        // SAFETY: reads the thread's own eight bytes, declared above; the linker fills in their offset.
        unsafe {
            core::arch::asm!(
                "mov {r}, qword ptr [rip + omptrace_recorder@GOTTPOFF]",
                "mov {r}, qword ptr fs:[{r}]",
                r = out(reg) recorder,
                options(readonly, nostack, preserves_flags, pure)
            );
        }
        recorder
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn set(recorder: *const Recorder) {
        // SAFETY: as in `get`; nothing else refers to these bytes.
        unsafe {
            core::arch::asm!(
                "mov {t}, qword ptr [rip + omptrace_recorder@GOTTPOFF]",
                "mov qword ptr fs:[{t}], {r}",
                t = out(reg) _, r = in(reg) recorder,
                options(nostack, preserves_flags)
            );
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn address() -> *mut *const Recorder {
        let place;
        // SAFETY: computes the address of the thread's own eight bytes; the linker fills in their offset.
        unsafe {
            core::arch::asm!(
                "adrp {o}, :gottprel:omptrace_recorder",
                "ldr {o}, [{o}, :gottprel_lo12:omptrace_recorder]",
                "mrs {p}, tpidr_el0",
                "add {p}, {p}, {o}",
                o = out(reg) _, p = out(reg) place,
                options(readonly, nostack, preserves_flags, pure)
            );
        }
        place
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(super) fn get() -> *const Recorder {
        // SAFETY: `address` is valid for as long as the thread runs, and only this thread uses it.
        unsafe { *address() }
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn set(recorder: *const Recorder) {
        // SAFETY: as in `get`.
        unsafe { *address() = recorder }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod place {
    use std::cell::Cell;

    use super::{IDLE, Recorder};

    thread_local! { static RECORDER: Cell<*const Recorder> = const { Cell::new(&raw const IDLE) } }

    pub(super) fn get() -> *const Recorder {
        RECORDER.get()
    }

    pub(super) fn set(recorder: *const Recorder) {
        RECORDER.set(recorder);
    }
}

/// The thread's recorder; [`IDLE`], which is always full, on a thread that has none.
#[inline(always)]
pub(crate) fn recorder() -> &'static Recorder {
    // SAFETY: the pointer is `IDLE`, `OURS` or a recorder that stays mapped until its own thread sets another one.
    unsafe { &*place::get() }
}

/// Makes `recorder` the thread's; `None` takes the thread's recorder away.
pub(crate) fn set_recorder(recorder: Option<&'static Recorder>) {
    place::set(recorder.map_or(&raw const IDLE, |recorder| recorder));
}

/// What the thread does from now on is the tracer's own work, until [`set_recorder`].
pub(crate) fn begin_own_work() {
    place::set(&raw const OURS);
}
