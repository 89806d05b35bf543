//! Sends the files of modules to `omptrace record`, which looks up function names after the run. By then, the file of a
//! self-extracting program may have been removed, and a file without a name is inaccessible. So `record` receives each
//! file when its module is first recorded.
//!
//! The file is sent as a descriptor through a socket in the registry. When [`send`] returns, it is in the socket's
//! queue, even if `record` has not read it yet. If it cannot be sent at once, it is not sent: the program never waits
//! for `record`.

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use interpose::system_call;

use crate::os::system;

/// The socket's file name in the registry.
const SOCKET: &str = "modules";

/// Sends the file if possible without waiting; `path` is the module's path in the trace.
pub(crate) fn send(registry: &Path, path: &[u8], file: &[u8]) {
    let _ = try_send(registry, path, file);
}

fn try_send(registry: &Path, path: &[u8], file: &[u8]) -> io::Result<()> {
    // Do not wait on files of other kinds, such as pipes.
    let file = open(file, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY)?;
    let folder = open(registry.as_os_str().as_bytes(), libc::O_PATH | libc::O_DIRECTORY);
    let socket = folder.and_then(|folder| {
        let socket = connected(folder.as_raw_fd());
        system::close(folder);
        socket
    });
    let sent = socket.and_then(|socket| {
        let sent = send_descriptor(socket.as_raw_fd(), path, file.as_raw_fd());
        system::close(socket);
        sent
    });
    system::close(file);
    sent
}

fn open(path: &[u8], flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = flags | libc::O_CLOEXEC;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize];
    // SAFETY: a valid C string.
    let new = unsafe { system_call::call(libc::SYS_openat, arguments) }?;
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(new as RawFd) })
}

/// A socket connected to that of `omptrace record`. The path goes through `/proc`, because an address has room for only
/// 107 bytes.
fn connected(folder: RawFd) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let arguments = [libc::AF_UNIX as usize, kind as usize, 0];
    // SAFETY: numbers only.
    let new = unsafe { system_call::call(libc::SYS_socket, arguments) }?;
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(new as RawFd) };
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = format!("/proc/self/fd/{folder}/{SOCKET}");
    for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
        *place = byte as libc::c_char;
    }
    let arguments =
        [socket.as_raw_fd() as usize, &raw const address as usize, size_of::<libc::sockaddr_un>()];
    // SAFETY: a valid address, whose path is shorter than its room.
    match unsafe { system_call::call(libc::SYS_connect, arguments) } {
        Ok(_) => Ok(socket),
        Err(error) => {
            system::close(socket);
            Err(error)
        }
    }
}

/// Room for a control message with one descriptor, aligned like its header.
const CONTROL_WORDS: usize = 4;

fn send_descriptor(socket: RawFd, text: &[u8], descriptor: RawFd) -> io::Result<()> {
    let mut text = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: numbers only.
    let (space, len) = unsafe {
        let bytes = size_of::<RawFd>() as u32;
        (libc::CMSG_SPACE(bytes) as usize, libc::CMSG_LEN(bytes) as usize)
    };
    debug_assert!(space <= size_of_val(&control));
    let mut message = MaybeUninit::<libc::msghdr>::zeroed();
    // SAFETY: all zeros is a valid message.
    let message = unsafe { message.assume_init_mut() };
    message.msg_iov = &raw mut text;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = space as _;
    // SAFETY: the control message's header and its descriptor are within `control`, which is aligned and long enough.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = len as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    let arguments = [socket as usize, &raw const *message as usize, flags as usize];
    // SAFETY: a valid message, which the kernel reads only.
    unsafe { system_call::call(libc::SYS_sendmsg, arguments) }.map(drop)
}
