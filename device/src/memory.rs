//! Memory that a runtime points to, which may not be there.

use std::ffi::c_char;

/// Copies what lies at `address` into `bytes`; false where it cannot be read. The kernel copies, so that a bad pointer
/// is an error and no fault.
pub fn copy(address: usize, bytes: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `local` is valid for writing; `remote` is checked by the kernel.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    usize::try_from(copied) == Ok(bytes.len())
}

/// A text at an address that may be wrong, up to `most` bytes; `None` where it cannot be read.
pub fn text(address: *const c_char, most: usize) -> Option<Vec<u8>> {
    /// A part of a page, of any size: the stack may have little room.
    const PART: usize = 256;
    let mut text = Vec::new();
    let mut at = address as usize;
    while at != 0 && text.len() < most {
        // Not beyond the page: the next one may not be there, and the text may end before.
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
        let (number, mut bytes) = (0x0123_4567_89ab_cdef_u64, [0; 8]);
        assert!(copy(&raw const number as usize, &mut bytes));
        assert_eq!(u64::from_ne_bytes(bytes), number);
        assert!(!copy(0, &mut bytes));
        assert!(!copy(usize::MAX - 3, &mut bytes));
    }
}
