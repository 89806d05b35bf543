//! A file of ours in a process that is not.
//!
//! Daemons, and programs that want to be tidy, close every descriptor that they do not know. Ours are among them. The next
//! file that the program opens then has the number of one of ours: what we write would be in the program's own data. So each
//! use asks first whether the number still means our file, and opens the file again by its name where it does not. The
//! question, fstat(2), takes 0.2 us; to write a chunk takes 24 us and more.
//!
//! Between question and use another thread may do the same. Our numbers are therefore high ones. The system gives the lowest
//! free number, so no thread that opens a file gets one of ours in that moment. And the program finds the numbers that it
//! has without a tool. The writer may lose its processor for long at any place. It has yet higher numbers
//! ([`ProtectedFd::move_up`]): a test that opens 80 files met it between question and use. What is left is a program that
//! closes everything again while a file is being opened anew, for a moment by the lowest number.

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

/// The lowest number that we ask for: beyond what programs have open that close what they do not know.
pub(crate) const HIGH: RawFd = 1000;
/// The lowest number that we ask for where [`HIGH`] is refused or takes too long. A process begins with room for [`ROOM`].
pub(crate) const LOWEST: RawFd = 48;
/// The descriptors that a process has room for when it begins. To make more room in a process that has threads waits until
/// each processor has been through the scheduler (15 ms).
const ROOM: RawFd = 64;
/// The lowest number that is no standard stream's.
const FIRST: RawFd = 3;

/// Names tried when one is taken.
const MAX_NAMES: u32 = 10_000;

/// A file that is read and written by its user alone.
#[derive(Debug)]
pub(crate) struct ProtectedFd {
    path: PathBuf,
    id: FileId,
    descriptor: AtomicI32,
    /// The number that it had before it moved up; [`NONE`] where it did not.
    low: AtomicI32,
    /// The page that keeps the lock: see [`ProtectedFd::lock`]. Null where there is no lock.
    pin: AtomicPtr<u8>,
}

/// In a descriptor's place.
const NONE: RawFd = -1;

impl ProtectedFd {
    /// Creates the file named `wanted`, or the first free name after it: `.2` and so on before the extension. A link is never
    /// followed.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(wanted: &Path) -> io::Result<ProtectedFd> {
        let mut number = 1;
        loop {
            match ProtectedFd::create_new(numbered(wanted, number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_NAMES => {
                    if is_no_place_for_files(wanted) {
                        let message = "it exists and is not a file but a device, pipe or socket";
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

    /// Locks the file for the process that records into it, so that no other program takes it for a finished trace. `None`
    /// where the system has no such locks.
    ///
    /// A program that closes every descriptor closes those of the lock, and opening the file again brings it not back to
    /// everybody who looked meanwhile. So one page is mapped, which holds on to the lock until the process ends or executes
    /// another program. Nobody touches the page, and a forked child does not get it.
    pub(crate) fn lock(&self) -> Option<Lock> {
        let taken = self.with(|file| {
            if !lock::take(file, Purpose::Recording)? {
                return Err(io::Error::other("another process holds its lock"));
            }
            system::map_pin(file).inspect_err(|_| _ = lock::give_back(file, Purpose::Recording))
        });
        // Relaxed: only its address is shared.
        self.pin.store(taken.ok()?, Ordering::Relaxed);
        let (device, inode) = self.id;
        Some(Lock { device, inode, reach: Reach::of(&self.path) })
    }

    /// Gives the lock back, also for children that were forked without anybody's knowledge.
    pub(crate) fn unlock(&self) {
        // Relaxed: see `lock`.
        let pin = self.pin.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if pin.is_null() {
            return;
        }
        // Relaxed: see `descriptor`. One that the program closed is not opened again: the page has the lock alone then.
        let number = self.descriptor.load(Ordering::Relaxed);
        if number != NONE && self.is_ours(number) {
            // SAFETY: open a moment ago; a number that is closed is an error.
            let file = unsafe { BorrowedFd::borrow_raw(number) };
            system::give_lock_back(file, Purpose::Recording);
        }
        system::unmap_pin(pin);
    }

    /// In a forked child: its parent's lock goes with the parent, whatever the child does.
    pub(crate) fn let_go(&self) {
        // Relaxed: the child has one thread. It did not get the page.
        self.pin.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.close();
    }

    /// Removes the file's name, unless another file has it by now.
    pub(crate) fn remove_name(&self) {
        if system::file_id_of(&self.path).is_ok_and(|id| id == self.id) {
            system::remove(&self.path);
        }
    }

    /// Its name when it was created.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True where somebody will find it: it has a name. That may be out of the program's reach by now (setuid(2), chroot(2)).
    pub(crate) fn can_be_found(&self) -> bool {
        self.with(system::has_a_name).unwrap_or(false)
    }

    /// Calls `call` with a descriptor of the file.
    ///
    /// # Errors
    /// The error of `call`; the system's error where the program closed the descriptor and the file cannot be opened again.
    pub(crate) fn with<T>(&self, call: impl Fn(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        match call(self.descriptor()?) {
            // Closed since it was asked for.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => call(self.descriptor()?),
            result => result,
        }
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        // Relaxed, as below: the number is all that is shared.
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        if descriptor != NONE && self.is_ours(descriptor) {
            // SAFETY: open a moment ago. Where the program closes it meanwhile, calls fail: see the module.
            return Ok(unsafe { BorrowedFd::borrow_raw(descriptor) });
        }
        let file = self.open_again().map_err(|error| {
            let message = format!("the program closed it, and it cannot be opened again: {error}");
            io::Error::new(error.kind(), message)
        })?;
        let (new, ours) = (file.as_raw_fd(), Ordering::Relaxed);
        let kept = match self.descriptor.compare_exchange(descriptor, new, ours, ours) {
            // The old number is no longer ours.
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
        // SAFETY: only asked what it is; a number that is closed is an error.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        system::file_id(descriptor).is_ok_and(|id| id == self.id)
    }

    fn open_again(&self) -> io::Result<OwnedFd> {
        let file = system::open_existing(&self.path)?;
        if system::file_id(file.as_fd())? != self.id {
            return Err(io::Error::other("another file has its name now"));
        }
        Ok(out_of_the_way(file, true))
    }

    /// Gives the file a number beyond the program's, where the process may have that many. Takes milliseconds at times.
    pub(crate) fn move_up(&self) {
        let Ok(old) = self.descriptor() else { return };
        if old.as_raw_fd() < HIGH
            && let Ok(file) = system::duplicate_from(old, HIGH)
        {
            let (old, ours) = (old.as_raw_fd(), Ordering::Relaxed);
            // The old number stays open: another thread may be about to use it.
            let moved = self.descriptor.compare_exchange(old, file.as_raw_fd(), ours, ours);
            if moved.is_ok() {
                let _ = file.into_raw_fd();
                self.low.store(old, ours);
            }
        }
    }

    /// Gives the lock and its descriptors back; no other thread may be using them. Who needs the file all the same opens it
    /// again.
    pub(crate) fn close(&self) {
        self.unlock();
        for descriptor in [&self.descriptor, &self.low] {
            // Relaxed: see `descriptor`.
            let number = descriptor.swap(NONE, Ordering::Relaxed);
            if number != NONE && self.is_ours(number) {
                // SAFETY: our own, which nobody else closes.
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

/// Moves the file to [`HIGH`], if it `may_make_room`, or the next number that is free. Else moves it to the highest number that is free
/// in the room that there is, and within the process's limit.
fn out_of_the_way(file: OwnedFd, may_make_room: bool) -> OwnedFd {
    let end = (ROOM as u64).min(system::descriptor_limit()) as RawFd;
    let at_least = |number| system::duplicate_from(file.as_fd(), number).ok();
    let exactly = |number| {
        // A number beyond those in use may need a larger table, for which all threads wait.
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

/// True of `/dev/null` and its like: who names one does not mean a file beside it.
fn is_no_place_for_files(path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path).map(|found| found.file_type());
    found.is_ok_and(|kind| !kind.is_file() && !kind.is_dir() && !kind.is_symlink())
}

/// `app.omptrace`, `app.2.omptrace`, `app.3.omptrace`, ... What would be too long for a file is cut before the number.
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
    // Bytes that begin no letter of UTF-8.
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
