//! System calls by the processor's instruction, and not through the C library.
//!
//! A library that is preloaded may have a function of its own in the place of the C library's, as libfaketime has for
//! `fstat`. When the process ends, its destructor runs before ours, or while the writer is at work, and its function
//! must not be called any more. The C library's `syscall` may be replaced, too. So whatever the tracer does besides
//! starting goes through here, and the memory of preloaded libraries ([`crate::memory`]). There is no cancellation point in it, and `errno` stays as it is.

use std::ffi::c_long;
use std::io;

/// The largest error number that the kernel returns, negated.
const MAX_ERROR: isize = 4095;

/// Makes the system call `number`.
///
/// # Safety
/// As of the system call.
///
/// # Errors
/// The system's error.
#[inline]
pub unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> io::Result<usize> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's contract.
    let result = unsafe { instruction(number, all) };
    match result {
        error if (-MAX_ERROR..0).contains(&error) => Err(io::Error::from_raw_os_error(-error as i32)),
        result => Ok(result as usize),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn instruction(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel changes the result's register, rcx and r11, and what the caller's contract says.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn instruction(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel changes the result's register, and what the caller's contract says.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack)
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn instruction(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    // SAFETY: the caller's contract.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        // SAFETY: the thread's own.
        -1 => -(unsafe { *libc::__errno_location() } as isize),
        result => result as isize,
    }
}
