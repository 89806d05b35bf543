//! Keeps files of traced programs and libraries while the program runs. Programs that unpack themselves remove such
//! files before they end, and some files have no name at all.
//!
//! The tracer sends each file as a descriptor through a socket in the registry. Keeping a file open is not always
//! harmless: it prevents a file system from being unmounted, and a directory on NFS from being removed. So only files
//! on local file systems that were mounted before the program started are kept open; other files are copied.
//!
//! This file contains all unsafe code for receiving files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use omptrace_symbols::ModuleFiles;
use omptrace_trace_format::lock::Reach;

use crate::system::fd_limit::Limit;

/// The socket's name in the registry.
const SOCKET: &str = "modules";
/// Maximum number of files that are kept, because descriptors are limited. Programs with more libraries usually still
/// have them at the end.
const MAX_FILES: usize = 256;
/// Number of descriptors reserved for `record` itself, which needs them to complete traces.
const OTHERS: u64 = 64;
/// Maximum number of bytes that are copied.
const MAX_COPIED_BYTES: u64 = 256 << 20;
/// Maximum time to wait for a sender. A sender sends everything before its connection is visible.
const PATIENCE: Duration = Duration::from_millis(100);

/// Receives files on a thread of its own.
pub(crate) struct Keeper {
    listener: Arc<UnixListener>,
    thread: JoinHandle<ModuleFiles>,
}

impl Keeper {
    /// Starts to receive files; `None` if no socket or thread can be created, so that names are looked up at the end.
    pub(crate) fn start(registry: &Path) -> Option<Keeper> {
        let folder = File::open(registry).ok()?;
        // A socket address has room for 107 bytes.
        let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
        let listener = Arc::new(UnixListener::bind(path).ok()?);
        let devices = Reach::devices_of_kernel();
        let taking = Arc::clone(&listener);
        let thread = thread::Builder::new().spawn(move || Keeping::new(devices).take_all(&taking)).ok()?;
        Some(Keeper { listener, thread })
    }

    /// All files received so far.
    pub(crate) fn finish(self) -> ModuleFiles {
        // The thread first takes what is in the queue, then sees that no more comes.
        // SAFETY: numbers only.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RD) };
        self.thread.join().unwrap_or_default()
    }
}

struct Keeping {
    kept: ModuleFiles,
    known: BTreeSet<(PathBuf, u64, u64)>,
    copied_bytes: u64,
    devices: BTreeSet<u64>,
    most_files: usize,
}

impl Keeping {
    fn new(devices: BTreeSet<u64>) -> Keeping {
        Keeping {
            kept: ModuleFiles::default(),
            known: BTreeSet::new(),
            copied_bytes: 0,
            devices,
            most_files: most_files(Limit::now()),
        }
    }

    fn take_all(mut self, listener: &UnixListener) -> ModuleFiles {
        loop {
            match listener.accept() {
                Ok((sender, _)) => {
                    let _ = sender.set_read_timeout(Some(PATIENCE));
                    if let Ok((path, Some(file))) = receive(&sender) {
                        // If a file cannot be kept, it is searched at the end.
                        let _ = self.keep(path, file);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket was shut down, or there are no descriptors left.
                Err(_) => return self.kept,
            }
        }
    }

    fn keep(&mut self, path: PathBuf, file: File) -> io::Result<()> {
        let found = file.metadata()?;
        let id = (path.clone(), found.dev(), found.ino());
        if !found.is_file() || self.known.len() >= self.most_files || !self.known.insert(id) {
            return Ok(());
        }
        let file = match self.devices.contains(&found.dev()) {
            true => file,
            false => {
                let bytes = self.copied_bytes.saturating_add(found.len());
                if bytes > MAX_COPIED_BYTES {
                    return Ok(());
                }
                self.copied_bytes = bytes;
                copy(file)?
            }
        };
        self.kept.add(path, file);
        Ok(())
    }
}

/// Maximum number of files for this limit of descriptors.
fn most_files(limit: Option<u64>) -> usize {
    let left = limit.unwrap_or(u64::MAX).saturating_sub(OTHERS);
    usize::try_from(left).map_or(MAX_FILES, |left| left.min(MAX_FILES))
}

/// A copy without a name, with the modification time of the original, which proves that it is the traced file.
fn copy(mut file: File) -> io::Result<File> {
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut file, &mut copy)?;
    copy.set_modified(file.metadata()?.modified()?)?;
    Ok(copy)
}

/// Receives the path and the file that a tracer sends.
fn receive(sender: &UnixStream) -> io::Result<(PathBuf, Option<File>)> {
    /// Longer paths cannot be opened.
    const MAX_PATH: usize = libc::PATH_MAX as usize;
    /// Room for a control message with one descriptor, aligned like its header. The rest of the last word has room for
    /// a second descriptor.
    const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + size_of::<RawFd>();
    const CONTROL_WORDS: usize = CONTROL_BYTES.div_ceil(size_of::<u64>());

    let mut text = vec![0; MAX_PATH];
    let mut room = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    let mut control = [0u64; CONTROL_WORDS];
    let mut message = MaybeUninit::<libc::msghdr>::zeroed();
    // SAFETY: all zeros is a valid message.
    let message = unsafe { message.assume_init_mut() };
    message.msg_iov = &raw mut room;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the kernel writes into `text` and `control`, no more than they have room for.
    let len = unsafe { libc::recvmsg(sender.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    text.truncate(len);
    let mut file = None;
    // SAFETY: the kernel has written whole control messages into `control`; a descriptor in one is ours.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                // There is room for only one descriptor.
                let descriptor = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
                file = Some(File::from_raw_fd(descriptor));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    Ok((OsString::from_vec(text).into(), file))
}
