//! The free space of a file system.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that this user can still write below `folder`.
///
/// # Errors
/// The directory does not exist, or its file system does not report free space.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mut room = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends with NUL and outlives the call; the kernel writes a `statvfs` to the place given.
    if unsafe { libc::statvfs(path.as_ptr(), room.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero bytes are a valid `statvfs`, and the call has filled it in.
    let room = unsafe { room.assume_init() };
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}
