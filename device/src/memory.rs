//! Reads memory to which a runtime points, and which may not exist.

use std::ffi::c_char;
use std::io;

/// Copies the memory at `address` into `bytes`; false if it cannot be read. The kernel copies, so a bad pointer results
/// in an error instead of a fault.
pub fn copy(address: usize, bytes: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `local` is valid for writing; `remote` is checked by the kernel.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    let refused = || matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
    usize::try_from(copied) == Ok(bytes.len()) || copied < 0 && refused() && copy_by_pipe(address, bytes)
}

/// Copies through a pipe, if the system call is unknown, as in qemu, or forbidden, as in some containers: `write`
/// checks its pointer, too. The C library's functions are avoided, because they are cancellation points.
#[cold]
fn copy_by_pipe(address: usize, bytes: &mut [u8]) -> bool {
    /// Written as a whole, or not at all.
    const PART: usize = libc::PIPE_BUF;
    let call = |number, arguments: [usize; 3]| {
        // SAFETY: the calls below write only to local variables of this function; the kernel checks the memory that
        // they read.
        unsafe { libc::syscall(number, arguments[0], arguments[1], arguments[2]) }
    };
    let mut ends: [i32; 2] = [-1; 2];
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    if call(libc::SYS_pipe2, [ends.as_mut_ptr() as usize, flags as usize, 0]) != 0 {
        return false;
    }
    let [read_end, write_end] = ends.map(|end| end as usize);
    let is_copied = bytes.chunks_mut(PART).enumerate().all(|(number, part)| {
        let (from, length) = (address.wrapping_add(number * PART), part.len());
        call(libc::SYS_write, [write_end, from, length]) == length as i64
            && call(libc::SYS_read, [read_end, part.as_mut_ptr() as usize, length]) == length as i64
    });
    for end in [read_end, write_end] {
        call(libc::SYS_close, [end, 0, 0]);
    }
    is_copied
}

/// A text at an address that may be invalid, up to `most` bytes; `None` if it cannot be read.
pub fn text(address: *const c_char, most: usize) -> Option<Vec<u8>> {
    /// Less than any page size: the stack may have little room.
    const PART: usize = 256;
    let mut text = Vec::new();
    let mut at = address as usize;
    while at != 0 && text.len() < most {
        // Not across a page boundary: the next page may not exist, and the text may end before it.
        let mut part = [0; PART];
        let part = &mut part[..(PART - at % PART).min(most - text.len())];
        if !copy(at, part) {
            return None;
        }
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&part[..end]);
                return Some(text);
            }
            None => text.extend_from_slice(part),
        }
        at += part.len();
    }
    (at != 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_pointer_is_no_fault() {
        let number = 0x0123_4567_89ab_cdef_u64;
        for copy in [copy, copy_by_pipe] {
            let mut bytes = [0; 8];
            assert!(copy(&raw const number as usize, &mut bytes));
            assert_eq!(u64::from_ne_bytes(bytes), number);
            assert!(!copy(0, &mut bytes));
            assert!(!copy(usize::MAX - 3, &mut bytes));
        }
    }

    #[test]
    fn more_than_a_pipe_takes_at_a_time_is_copied() {
        let original: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        let mut bytes = vec![0; original.len()];
        assert!(copy_by_pipe(original.as_ptr() as usize, &mut bytes));
        assert_eq!(bytes, original);
    }
}
