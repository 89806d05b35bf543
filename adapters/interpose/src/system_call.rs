//! System calls by the CPU's instruction, not through the C library.
//!
//! A preloaded library may replace functions of the C library, as libfaketime replaces `fstat`. When the process ends,
//! that library's destructor may run before ours or while the writer is still working; its functions must not be called
//! after that. The C library's `syscall` may be replaced, too. So all system calls of the tracer after its start go
//! through this module, and so does the memory of preloaded libraries ([`crate::memory`]). The calls are no
//! cancellation points and leave `errno` unchanged.

use std::ffi::c_long;
use std::io;

/// The largest error number that the kernel returns, negated.
const MAX_ERROR: isize = 4095;

/// Makes the system call `number`.
///
/// # Safety
/// The requirements of the system call.
///
/// # Errors
/// The error that the kernel returns.
#[inline]
pub unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> io::Result<usize> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: by the caller's promise.
    let result = unsafe { instruction(number, all) };
    match result {
        error if (-MAX_ERROR..0).contains(&error) => Err(io::Error::from_raw_os_error(-error as i32)),
        result => Ok(result as usize),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn instruction(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel changes the result's register, rcx, r11 and the memory that the system call writes by the
    // caller's promise.
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
    // SAFETY: the kernel changes the result's register and the memory that the system call writes by the caller's
    // promise.
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
    // SAFETY: by the caller's promise.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        // SAFETY: the thread's own `errno`.
        -1 => -(unsafe { *libc::__errno_location() } as isize),
        result => result as isize,
    }
}
