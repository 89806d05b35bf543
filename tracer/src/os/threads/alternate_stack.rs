//! The alternate stack of a thread's signal handlers (`sigaltstack`).

use std::ffi::c_int;

use interpose::system_call;

/// Sets the memory at `base` as the calling thread's alternate stack, if the thread has none, and if the memory has
/// `room` bytes for a handler besides the kernel's signal frame. Returns whether it was set.
pub(crate) fn lend(base: *mut u8, len: usize, room: usize) -> bool {
    let has_none = current().is_some_and(|stack| stack.ss_flags & libc::SS_DISABLE != 0);
    has_none && suffices(len, room, frame_bytes()) && set(base, len, 0)
}

/// Maximum size of the kernel's signal frame. It depends on the size of the CPU's registers: with Arm's matrix
/// extension, it is 64 KiB or more.
fn frame_bytes() -> usize {
    /// <linux/auxvec.h>
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: no pointers.
    let told = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    // Older kernels do not provide the size.
    told.max(libc::MINSIGSTKSZ)
}

fn suffices(len: usize, room: usize, frame: usize) -> bool {
    frame.checked_add(room).is_some_and(|needed| needed <= len)
}

/// Removes the alternate stack; false if the thread is running on it. An alternate stack set by the program is kept.
pub(crate) fn take_back(base: *mut u8) -> bool {
    match current() {
        Some(stack) if stack.ss_sp.cast() == base => set(std::ptr::null_mut(), 0, libc::SS_DISABLE),
        Some(_) => true,
        None => false,
    }
}

/// Whether the calling thread runs on its alternate stack, in a signal handler.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_room_beside_what_the_kernel_stores() {
        const LEN: usize = 64 << 10;
        const ROOM: usize = 24 << 10;
        assert!(suffices(LEN, ROOM, frame_bytes()));
        assert!(suffices(LEN, ROOM, 40 << 10) && !suffices(LEN, ROOM, (40 << 10) + 1));
        // The frame size with Arm's widest matrix registers.
        assert!(!suffices(LEN, ROOM, 70 << 10) && !suffices(LEN, ROOM, usize::MAX));
    }
}
