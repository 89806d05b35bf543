//! Properties of file systems, by statfs(2).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use interpose::system_call;

/// Whether overwriting a page of the file may fail for lack of space, which depends on the file system: Btrfs and
/// bcachefs copy on write, NILFS refuses if the disk is almost full.
///
/// # Errors
/// The system's error.
pub(crate) fn faults_when_full(file: BorrowedFd<'_>) -> io::Result<bool> {
    const BCACHEFS_SUPER_MAGIC: libc::c_long = 0xca45_1a4e;
    let kind = kind(libc::SYS_fstatfs, file.as_raw_fd() as usize)?;
    Ok(matches!(kind, libc::BTRFS_SUPER_MAGIC | BCACHEFS_SUPER_MAGIC | libc::NILFS_SUPER_MAGIC))
}

/// Whether the file or directory is on a file system that several hosts share.
///
/// # Errors
/// The system's error.
pub(crate) fn is_shared_by_hosts(path: &Path) -> io::Result<bool> {
    Ok(is_network(kind_of_path(path)?))
}

/// Whether the directory is on a disk of this host: neither on a network file system nor in memory.
///
/// # Errors
/// The system's error.
pub(crate) fn is_local_disk(path: &Path) -> io::Result<bool> {
    const RAMFS_MAGIC: libc::c_long = 0x8584_58f6;
    let kind = kind_of_path(path)?;
    Ok(!is_network(kind) && !matches!(kind, libc::TMPFS_MAGIC | RAMFS_MAGIC))
}

/// The types of statfs(2), and of file systems that are not part of the kernel.
fn is_network(kind: libc::c_long) -> bool {
    const LUSTRE: libc::c_long = 0x0bd0_0bd0;
    const GPFS: libc::c_long = 0x4750_4653;
    const BEEGFS: libc::c_long = 0x1983_0326;
    const CEPH: libc::c_long = 0x00c3_6400;
    const CIFS: libc::c_long = 0xff53_4d42;
    const SMB2: libc::c_long = 0xfe53_4d42;
    const PANFS: libc::c_long = 0xaad7_aaea;
    const ORANGEFS: libc::c_long = 0x2003_0528;
    const GFS2: libc::c_long = 0x0116_1970;
    const OCFS2: libc::c_long = 0x7461_636f;
    matches!(
        kind,
        libc::NFS_SUPER_MAGIC
            | libc::SMB_SUPER_MAGIC
            | libc::AFS_SUPER_MAGIC
            | LUSTRE
            | GPFS
            | BEEGFS
            | CEPH
            | CIFS
            | SMB2
            | PANFS
            | ORANGEFS
            | GFS2
            | OCFS2
    )
}

fn kind_of_path(path: &Path) -> io::Result<libc::c_long> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    kind(libc::SYS_statfs, path.as_ptr() as usize)
}

/// The type of a file system, by `call` with a path or a descriptor.
fn kind(call: libc::c_long, of: usize) -> io::Result<libc::c_long> {
    // SAFETY: all zeros is a valid structure, which the kernel fills.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `of` is a path or a descriptor, and `found` is valid for writing.
    unsafe { system_call::call(call, [of, &raw mut found as usize]) }?;
    Ok(found.f_type)
}
