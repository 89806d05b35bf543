//! The stack on which a thread's signal handlers may run (`sigaltstack`).

use std::ffi::c_int;

use interpose::system_call;

/// Gives the calling thread the memory at `base` as its alternate stack, if it has none; whether it has.
pub(crate) fn lend(base: *mut u8, len: usize) -> bool {
    let has_none = current().is_some_and(|stack| stack.ss_flags & libc::SS_DISABLE != 0);
    has_none && set(base, len, 0)
}

/// Takes it back; false where the thread runs on it. Another one that the program has given the thread stays.
pub(crate) fn take_back(base: *mut u8) -> bool {
    match current() {
        Some(stack) if stack.ss_sp.cast() == base => set(std::ptr::null_mut(), 0, libc::SS_DISABLE),
        Some(_) => true,
        None => false,
    }
}

/// Whether the calling thread runs on its alternate stack: in a signal handler that wants that.
pub(crate) fn is_in_use() -> bool {
    current().is_some_and(|stack| stack.ss_flags & libc::SS_ONSTACK != 0)
}

fn set(base: *mut u8, len: usize, flags: c_int) -> bool {
    let stack = libc::stack_t { ss_sp: base.cast(), ss_flags: flags, ss_size: len };
    let arguments = [&raw const stack as usize, 0];
    // SAFETY: a valid structure; the caller lends memory that stays.
    unsafe { system_call::call(libc::SYS_sigaltstack, arguments) }.is_ok()
}

fn current() -> Option<libc::stack_t> {
    // SAFETY: all zeros is a valid structure of C, which the call fills.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    let arguments = [0, &raw mut stack as usize];
    // SAFETY: valid for writing.
    unsafe { system_call::call(libc::SYS_sigaltstack, arguments) }.ok()?;
    Some(stack)
}
