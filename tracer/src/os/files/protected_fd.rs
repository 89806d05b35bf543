//! The tracer's files, protected from a program that closes their descriptors.
//!
//! Daemons, and programs that want to be tidy, close every descriptor that they do not know, including the tracer's.
//! The next file that the program opens may get the same number, and the tracer would write into the program's own
//! data. So each use first checks whether the number still refers to our file, and reopens the file by name if not. The
//! check, fstat(2), takes 0.2 us; writing a chunk takes 24 us or more.
//!
//! Between the check and the use, another thread may close the descriptor and open a file. Our descriptors therefore
//! have high numbers: the system assigns the lowest free number, so a thread that opens a file does not get one of ours
//! at that moment, and the program gets the same numbers as without a tool. The writer may be preempted for long at any
//! point, so it has even higher numbers ([`ProtectedFd::move_up`]): a test that opens 80 files hit it between the check
//! and the use. The remaining risk is a program that closes all descriptors again while a file is being reopened, which
//! briefly has the lowest free number.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use omptrace_trace_format::lock::{self, Purpose, Reach};
use omptrace_trace_format::metadata::Lock;

use crate::os::system;
use crate::os::system::FileId;

/// Lowest number for descriptors: above those of programs that close all descriptors.
pub(crate) const HIGH: RawFd = 1000;
/// Lowest number if [`HIGH`] is refused or would take too long. A process starts with room for [`ROOM`] descriptors.
pub(crate) const LOWEST: RawFd = 48;
/// Number of descriptors for which a new process has room. Extending the table in a process with several threads waits
/// until each CPU has been through the scheduler (15 ms).
const ROOM: RawFd = 64;
/// Lowest number that is not a standard stream's.
const FIRST: RawFd = 3;

/// Maximum number of names tried if the name is taken.
const MAX_NAMES: u32 = 10_000;

/// A file that only its user can read and write.
#[derive(Debug)]
pub(crate) struct ProtectedFd {
    path: PathBuf,
    id: FileId,
    descriptor: AtomicI32,
    /// The descriptor's number before the file moved up; [`NONE`] if it did not.
    low: AtomicI32,
    /// The page that keeps the lock: see [`ProtectedFd::lock`]. Null if there is no lock.
    pin: AtomicPtr<u8>,
}

/// Marks the absence of a descriptor.
const NONE: RawFd = -1;

impl ProtectedFd {
    /// Creates the file with the name `wanted` or, if it exists, the first free name of those with `.2`, `.3` and so on
    /// before the extension. Does not follow links.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(wanted: &Path) -> io::Result<ProtectedFd> {
        let mut number = 1;
        loop {
            match ProtectedFd::create_new(numbered(wanted, number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_NAMES => {
                    if is_no_place_for_files(wanted) {
                        let message = "the path exists and is not a file, but a device, pipe or socket";
                        return Err(io::Error::other(message));
                    }
                    number += 1;
                }
                result => return result,
            }
        }
    }

    fn create_new(path: PathBuf) -> io::Result<ProtectedFd> {
        let file = out_of_the_way(system::create_new(&path)?, system::has_one_thread());
        Ok(ProtectedFd {
            path,
            id: system::file_id(file.as_fd())?,
            descriptor: AtomicI32::new(file.into_raw_fd()),
            low: AtomicI32::new(NONE),
            pin: AtomicPtr::default(),
        })
    }

    /// Locks the file for the process that records into it, so that no other program takes the file for a finished
    /// trace. `None` if the system has no such locks.
    ///
    /// A program that closes all descriptors releases the lock; reopening the file would restore it, but other programs
    /// may have checked in between. So one page is mapped, which keeps the lock until the process ends or executes
    /// another program. The page is never accessed, and a forked child does not inherit it.
    pub(crate) fn lock(&self) -> Option<Lock> {
        let taken = self.with(|file| {
            if !lock::take(file, Purpose::Recording)? {
                return Err(io::Error::other("another process holds the lock on this file"));
            }
            system::map_pin(file).inspect_err(|_| _ = lock::give_back(file, Purpose::Recording))
        });
        // Relaxed: only the address is shared.
        self.pin.store(taken.ok()?, Ordering::Relaxed);
        let (device, inode) = self.id;
        Some(Lock { device, inode, reach: Reach::of(&self.path) })
    }

    /// Releases the lock, even if children that were forked without a handler share it.
    pub(crate) fn unlock(&self) {
        // Relaxed: see `lock`.
        let pin = self.pin.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if pin.is_null() {
            return;
        }
        // Relaxed: see `descriptor`. A descriptor that the program closed is not reopened: then only the page keeps the
        // lock.
        let number = self.descriptor.load(Ordering::Relaxed);
        if number != NONE && self.is_ours(number) {
            // SAFETY: checked just now; a closed number results in an error.
            let file = unsafe { BorrowedFd::borrow_raw(number) };
            system::give_lock_back(file, Purpose::Recording);
        }
        system::unmap_pin(pin);
    }

    /// In a forked child: drops the file without releasing the parent's lock.
    pub(crate) fn let_go(&self) {
        // Relaxed: the child has one thread. The child did not inherit the page.
        self.pin.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.close();
    }

    /// Removes the file's name, unless another file has it by now.
    pub(crate) fn remove_name(&self) {
        if system::file_id_of(&self.path).is_ok_and(|id| id == self.id) {
            system::remove(&self.path);
        }
    }

    /// The path with which the file was created.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file still has a name somewhere. The program itself may be unable to reach it now (setuid(2),
    /// chroot(2)).
    pub(crate) fn can_be_found(&self) -> bool {
        self.with(system::has_a_name).unwrap_or(false)
    }

    /// Calls `call` with a descriptor of the file.
    ///
    /// # Errors
    /// The error of `call`; the system's error if the program closed the descriptor and the file cannot be reopened.
    pub(crate) fn with<T>(&self, call: impl Fn(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        match call(self.descriptor()?) {
            // Closed after the check.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => call(self.descriptor()?),
            result => result,
        }
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        // Relaxed, also below: only the number is shared.
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        if descriptor != NONE && self.is_ours(descriptor) {
            // SAFETY: checked just now. If the program closes it in the meantime, calls fail: see the module.
            return Ok(unsafe { BorrowedFd::borrow_raw(descriptor) });
        }
        let file = self.open_again().map_err(|error| {
            let message = format!("the program closed this file, and it cannot be opened again: {error}");
            io::Error::new(error.kind(), message)
        })?;
        let (new, ours) = (file.as_raw_fd(), Ordering::Relaxed);
        let kept = match self.descriptor.compare_exchange(descriptor, new, ours, ours) {
            // The old number no longer refers to our file.
            Ok(_) => file.into_raw_fd(),
            Err(faster) => {
                system::close(file);
                faster
            }
        };
        // SAFETY: as above.
        Ok(unsafe { BorrowedFd::borrow_raw(kept) })
    }

    fn is_ours(&self, descriptor: RawFd) -> bool {
        // SAFETY: used only for fstat; a closed number results in an error.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        system::file_id(descriptor).is_ok_and(|id| id == self.id)
    }

    fn open_again(&self) -> io::Result<OwnedFd> {
        let file = system::open_existing(&self.path)?;
        if system::file_id(file.as_fd())? != self.id {
            return Err(io::Error::other("another file now has this name"));
        }
        Ok(out_of_the_way(file, true))
    }

    /// Moves the descriptor to a number beyond the program's, if the process's limit allows it. May take milliseconds.
    pub(crate) fn move_up(&self) {
        let Ok(old) = self.descriptor() else { return };
        if old.as_raw_fd() < HIGH
            && let Ok(file) = system::duplicate_from(old, HIGH)
        {
            let (old, ours) = (old.as_raw_fd(), Ordering::Relaxed);
            // The old number stays open, because another thread may be about to use it.
            let moved = self.descriptor.compare_exchange(old, file.as_raw_fd(), ours, ours);
            if moved.is_ok() {
                let _ = file.into_raw_fd();
                self.low.store(old, ours);
            }
        }
    }

    /// Releases the lock and closes its descriptors; no other thread may be using them. A later use of the file reopens
    /// it.
    pub(crate) fn close(&self) {
        self.unlock();
        for descriptor in [&self.descriptor, &self.low] {
            // Relaxed: see `descriptor`.
            let number = descriptor.swap(NONE, Ordering::Relaxed);
            if number != NONE && self.is_ours(number) {
                // SAFETY: our own descriptor, closed only here.
                system::close(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }
}

impl Drop for ProtectedFd {
    fn drop(&mut self) {
        self.close();
    }
}

/// Moves the file's descriptor to [`HIGH`] or the next free number, if it `may_make_room`. Otherwise moves it to the
/// highest free number within the existing table and the process's limit.
fn out_of_the_way(file: OwnedFd, may_make_room: bool) -> OwnedFd {
    let end = (ROOM as u64).min(system::descriptor_limit()) as RawFd;
    let at_least = |number| system::duplicate_from(file.as_fd(), number).ok();
    let exactly = |number| {
        // A number above those in use may need a larger table, for which all threads have to wait.
        let moved = (!system::is_open(number)).then(|| at_least(number)).flatten()?;
        if moved.as_raw_fd() == number {
            return Some(moved);
        }
        system::close(moved);
        None
    };
    let moved = may_make_room
        .then(|| at_least(HIGH))
        .flatten()
        .or_else(|| (FIRST..end).rev().find_map(exactly))
        .filter(|moved| moved.as_raw_fd() > file.as_raw_fd());
    match moved {
        Some(moved) => {
            system::close(file);
            moved
        }
        None => file,
    }
}

/// Whether `path` names something like `/dev/null`: the user does not expect files next to it.
fn is_no_place_for_files(path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path).map(|found| found.file_type());
    found.is_ok_and(|kind| !kind.is_file() && !kind.is_dir() && !kind.is_symlink())
}

/// `app.omptrace`, `app.2.omptrace`, `app.3.omptrace`, ... A name that is too long is cut before the number.
fn numbered(path: &Path, number: u32) -> PathBuf {
    const MAX_NAME: usize = 255;

    if number == 1 {
        return path.to_path_buf();
    }
    let mut end = OsString::from(format!(".{number}"));
    if let Some(extension) = path.extension() {
        end.push(".");
        end.push(extension);
    }
    let stem = path.file_stem().unwrap_or_default().as_bytes();
    let mut most = MAX_NAME.saturating_sub(end.len()).min(stem.len());
    // Do not cut within a UTF-8 character.
    while most > 0 && most < stem.len() && stem[most] & 0xc0 == 0x80 {
        most -= 1;
    }
    let mut name = OsStr::from_bytes(&stem[..most]).to_os_string();
    name.push(end);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_gets_a_number_before_its_extension() {
        let folder = std::env::temp_dir().join(format!("omptrace-own-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names: Vec<_> = (0..3)
            .map(|_| {
                ProtectedFd::create(&folder.join("a.b.omptrace"))
                    .unwrap()
                    .path()
                    .file_name()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(names, ["a.b.omptrace", "a.b.2.omptrace", "a.b.3.omptrace"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_long_name_has_room_for_its_number() {
        let name = |path: &str| numbered(Path::new(path), 10).display().to_string();
        let long = format!("{}.omptrace", "ä".repeat(123));
        assert_eq!(long.len(), 255);
        assert_eq!(name(&long), format!("{}.10.omptrace", "ä".repeat(121)));
        assert_eq!(name("a.omptrace"), "a.10.omptrace");
    }
}
