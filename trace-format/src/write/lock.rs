//! Locks on a trace: the tracer holds one while it records, a program that seals the trace holds another.
//!
//! They are open file description locks (`F_OFD_SETLK`, fcntl(2)). The kernel releases such a lock when the last
//! descriptor and the last mapping of that description are gone, however the process ended. On NFS and other file
//! systems shared by several hosts, each host sees the locks. They are located far after the data, so that file systems
//! whose locks prevent reading (SMB) still let everybody read.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use serde::{Deserialize, Serialize};

/// The purpose of a lock on a trace; the value is the offset of the locked byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Purpose {
    /// A process records into the file.
    Recording = 1 << 62,
    /// A program seals the file.
    Sealing = (1 << 62) + 1,
}

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Another open file description holds the lock.
    Held,
    /// Nobody holds the lock.
    Free,
    /// The file system, or a sandbox, does not support such locks.
    Unsupported,
}

fn argument(purpose: Purpose, kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: purpose as libc::off_t,
        l_len: 1,
        l_pid: 0,
    }
}

/// Takes the lock for `file`'s open file description; false if another description holds it.
///
/// # Errors
/// Such locks are not supported here, or the file is not open for writing.
pub fn take(file: impl AsFd, purpose: Purpose) -> io::Result<bool> {
    let lock = argument(purpose, libc::F_WRLCK);
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Releases the lock of `file`'s open file description, even if several processes share that description.
pub fn give_back(file: impl AsFd, purpose: Purpose) -> io::Result<()> {
    let lock = argument(purpose, libc::F_UNLCK);
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock))?;
    Ok(())
}

/// The state of the lock, determined without taking it, so that a tracer can take it at any time.
pub(crate) fn state(file: impl AsFd, purpose: Purpose) -> State {
    let mut lock = argument(purpose, libc::F_WRLCK);
    match fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)) {
        Ok(_) if i32::from(lock.l_type) == libc::F_UNLCK => State::Free,
        Ok(_) => State::Held,
        Err(_) => State::Unsupported,
    }
}

/// The processes that see each other's locks on a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Processes of every host that has the file system mounted.
    Hosts,
    /// Processes of the one kernel that can have the file system mounted.
    Kernel,
    /// Possibly only processes that use the same mount.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A kind of file system whose locks are known: its name in mountinfo (proc_pid_mountinfo(5)), the reach of its locks,
/// an option that must be present, and an option that must not.
type Known = (&'static str, Reach, Option<&'static str>, Option<&'static str>);

/// Other file systems, including FUSE and those of virtual machines, may keep locks per mount.
#[rustfmt::skip]
const KNOWN: &[Known] = &[
    ("bcachefs", Reach::Kernel, None,                    None),
    ("btrfs",    Reach::Kernel, None,                    None),
    ("ext2",     Reach::Kernel, None,                    None),
    ("ext3",     Reach::Kernel, None,                    None),
    ("ext4",     Reach::Kernel, None,                    None),
    ("f2fs",     Reach::Kernel, None,                    None),
    ("jfs",      Reach::Kernel, None,                    None),
    ("nilfs2",   Reach::Kernel, None,                    None),
    ("overlay",  Reach::Kernel, None,                    None),
    ("ramfs",    Reach::Kernel, None,                    None),
    ("tmpfs",    Reach::Kernel, None,                    None),
    ("xfs",      Reach::Kernel, None,                    None),
    ("zfs",      Reach::Kernel, None,                    None),
    ("ceph",     Reach::Hosts,  None,                    None),
    ("gfs2",     Reach::Hosts,  None,                    Some("localflocks")),
    ("gpfs",     Reach::Hosts,  None,                    None),
    ("lustre",   Reach::Hosts,  Some("flock"),           Some("localflock")),
    ("nfs",      Reach::Hosts,  Some("local_lock=none"), Some("nolock")),
    ("nfs4",     Reach::Hosts,  Some("local_lock=none"), Some("nolock")),
];

impl Reach {
    /// The reach of locks on the file system that holds `path`.
    pub fn of(path: &Path) -> Reach {
        let Ok(path) = fs::canonicalize(path) else {
            return Reach::Unknown;
        };
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        Reach::in_mounts(&mounts, &path)
    }

    /// The device numbers (as returned by `stat`) of the mounted file systems that no other kernel uses.
    pub fn devices_of_kernel() -> BTreeSet<u64> {
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let lines = mounts.split(|byte| *byte == b'\n');
        lines
            .filter(|line| Mount::read(line).is_some_and(|mount| mount.reach() == Reach::Kernel))
            .filter_map(|line| {
                let number = line.split(|byte| *byte == b' ').nth(2)?;
                let (major, minor) = std::str::from_utf8(number).ok()?.split_once(':')?;
                Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
            })
            .collect()
    }

    /// Like [`Reach::of`], given the text of mountinfo. The mount with the longest path counts, and among several of
    /// them the last.
    fn in_mounts(mounts: &[u8], path: &Path) -> Reach {
        let mounts = mounts.split(|byte| *byte == b'\n').filter_map(Mount::read);
        let mount = mounts
            .filter(|mount| path.starts_with(&mount.place))
            .max_by_key(|mount| mount.place.as_os_str().len());
        mount.map_or(Reach::Unknown, |mount| mount.reach())
    }
}

/// A line of mountinfo.
struct Mount<'t> {
    place: PathBuf,
    kind: &'t [u8],
    options: &'t [u8],
}

impl<'t> Mount<'t> {
    fn read(line: &'t [u8]) -> Option<Mount<'t>> {
        let mut fields = line.split(|byte| *byte == b' ');
        let place = fields.nth(4)?;
        // Optional fields end with a hyphen; the file system's type, source and options follow.
        fields.find(|field| *field == b"-")?;
        Some(Mount {
            place: PathBuf::from(std::ffi::OsString::from_vec(unescaped(place))),
            kind: fields.next()?,
            options: fields.nth(1).unwrap_or_default(),
        })
    }

    fn reach(&self) -> Reach {
        let has = |wanted: &str| {
            let mut options = self.options.split(|byte| *byte == b',');
            options.any(|option| option == wanted.as_bytes())
        };
        let known = KNOWN.iter().find(|known| known.0.as_bytes() == self.kind);
        match known {
            Some((_, reach, needed, forbidden)) if needed.is_none_or(has) && !forbidden.is_some_and(has) => {
                *reach
            }
            _ => Reach::Unknown,
        }
    }
}

/// Decodes mountinfo's octal escapes of blanks and backslashes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| *first == b'\\');
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = &behind[if number.is_some() { 3 } else { 0 }..];
    }
    bytes
}

/// Whether both paths name the same entry of the same directory, possibly through different mounts and links.
pub(crate) fn is_same_entry(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let folder = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = fs::metadata(folder.unwrap_or(Path::new("."))).ok()?;
        Some((found.dev(), found.ino()))
    };
    let names = (one.file_name(), other.file_name());
    matches!(names, (Some(one), Some(other)) if one.as_bytes() == other.as_bytes())
        && folder(one).is_some_and(|id| Some(id) == folder(other))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_lock_is_seen_by_others_and_ends_with_its_description() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let owner = File::create(&path).unwrap();
        let other = File::open(&path).unwrap();
        assert_eq!(state(&other, Purpose::Recording), State::Free);
        assert!(take(&owner, Purpose::Recording).unwrap());
        assert_eq!(state(&owner, Purpose::Recording), State::Free);
        assert_eq!(state(&other, Purpose::Recording), State::Held);
        assert_eq!(state(&other, Purpose::Sealing), State::Free);
        let second = File::options().write(true).open(&path).unwrap();
        assert!(!take(&second, Purpose::Recording).unwrap());
        let shared = owner.try_clone().unwrap();
        drop(owner);
        assert_eq!(state(&other, Purpose::Recording), State::Held);
        give_back(&shared, Purpose::Recording).unwrap();
        assert_eq!(state(&other, Purpose::Recording), State::Free);
    }

    #[test]
    fn knows_who_sees_the_locks_of_a_mount() {
        let mounts = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            30 22 0:30 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none,addr=10.0.0.1\n\
            31 22 0:31 / /old rw - nfs server:/old rw,vers=3,nolock,local_lock=all\n\
            32 22 0:32 / /work\\040space rw master:2 shared:3 - lustre mgs:/w rw,flock,lazystatfs\n\
            33 22 0:33 / /scratch rw - lustre mgs:/s rw,localflock\n\
            34 22 0:34 / /share rw - fuse.bindfs /real rw,user_id=0\n\
            35 30 0:35 / /home/local rw - tmpfs tmpfs rw\n\
            torn line\n";
        for (path, reach) in [
            ("/tmp/a", Reach::Kernel),
            ("/home/a", Reach::Hosts),
            ("/homes/a", Reach::Kernel),
            ("/home/local/a", Reach::Kernel),
            ("/old/a", Reach::Unknown),
            ("/work space/a", Reach::Hosts),
            ("/scratch/a", Reach::Unknown),
            ("/share/a", Reach::Unknown),
        ] {
            assert_eq!(Reach::in_mounts(mounts, Path::new(path)), reach, "{path}");
        }
        assert_eq!(Reach::in_mounts(b"", Path::new("/a")), Reach::Unknown);
    }

    #[test]
    fn entries_are_the_same_by_folder_and_name() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir_all(&one).unwrap();
        std::os::unix::fs::symlink(&one, &other).unwrap();
        assert!(is_same_entry(&one.join("x"), &other.join("x")));
        assert!(!is_same_entry(&one.join("x"), &other.join("y")));
        assert!(!is_same_entry(&one.join("x"), &folder.path().join("x")));
        assert!(!is_same_entry(&one.join("x"), Path::new("/no/such/x")));
    }
}
