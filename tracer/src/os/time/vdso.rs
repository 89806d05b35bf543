//! The kernel's clock function that is mapped into each process (vdso(7)): makes no system call if the kernel's
//! clocksource allows that.
//!
//! It is called by its address, because the C library's `clock_gettime`, which calls it, may be replaced by a preloaded
//! library.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use interpose::elf::Library;

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// The function's name on this CPU architecture; empty if unknown.
const NAME: &CStr = if cfg!(target_arch = "x86_64") {
    c"__vdso_clock_gettime"
} else if cfg!(target_arch = "aarch64") {
    c"__kernel_clock_gettime"
} else {
    c""
};

/// The function; null if there is none.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Finds the function. Before that, and without the function, clocks are read with a system call.
pub(crate) fn prepare() {
    // SAFETY: only reads what the kernel has passed.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize as *const libc::Elf64_Ehdr;
    // SAFETY: null, or the ELF header of an image that stays mapped as long as the process.
    let Some(header) = (unsafe { start.as_ref() }).filter(|_| !NAME.is_empty()) else {
        return;
    };
    let first = start.wrapping_byte_add(header.e_phoff as usize).cast::<libc::Elf64_Phdr>();
    // SAFETY: the image's program headers.
    let headers = unsafe { slice::from_raw_parts(first, usize::from(header.e_phnum)) };
    let loads = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
    let Some(load) = headers.iter().find(loads) else {
        return;
    };
    // The offset to add to the image's addresses.
    let base = (start as usize).wrapping_add(load.p_offset as usize).wrapping_sub(load.p_vaddr as usize);
    // SAFETY: the image stays mapped.
    let symbols = unsafe { Library::of_headers(base, headers) }.and_then(|library| library.symbols());
    let function = symbols.and_then(|symbols| symbols.function(NAME)).unwrap_or(0);
    // Relaxed: a thread that does not see the function makes a system call.
    FUNCTION.store(function as *mut c_void, Ordering::Relaxed);
}

/// Reads the clock; `None` if there is no function, or it does not know the clock.
#[inline]
pub(super) fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    // Relaxed: see `prepare`.
    let function = FUNCTION.load(Ordering::Relaxed);
    // SAFETY: null, or the kernel's function of this type.
    let function = unsafe { transmute::<*mut c_void, Option<ClockGettime>>(function) }?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    let is_known = unsafe { function(clock, &raw mut time) } == 0;
    is_known.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::system;

    #[test]
    fn the_kernels_function_reads_the_same_clock_as_the_system_call() {
        prepare();
        for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_REALTIME] {
            let before = system::clock_ns(clock);
            let Some(between) = clock_ns(clock) else {
                // The kernels of the processors that are named have it, but qemu's user mode passes it to no program.
                // SAFETY: only reads what the kernel has passed.
                let is_passed = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } != 0;
                assert!(NAME.is_empty() || !is_passed, "{clock}");
                continue;
            };
            assert!((before..=system::clock_ns(clock)).contains(&between), "{clock}");
        }
        assert_eq!(clock_ns(12345), None);
    }
}
