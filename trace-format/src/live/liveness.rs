//! Whether the traced process still writes its trace: yes, no, or not visible from here.
//!
//! A process id alone proves nothing: ids are reused, a container has its own, and so has every other host. The answer
//! therefore combines the process, the lock that the tracer holds, and the mapping of the spool.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fmt, io};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::metadata::Metadata;
use crate::write::lock;
use crate::write::lock::{Purpose, Reach, State};

/// Whether the process still writes the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It still writes.
    Running,
    /// It no longer writes.
    Ended,
    /// It may still write.
    Unknown(Doubt),
}

/// Why it cannot be determined whether a process still writes its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The process ran on another host, or before this host was restarted, and no lock tells more.
    OtherHost,
    /// The process ran in another container, and no lock tells more.
    OtherContainer,
    /// The system hides the processes of other users.
    Hidden,
    /// The trace does not say which process wrote it.
    Unrecorded,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::OtherHost => {
                "the process ran on another host, or on this host before a restart, and the file system does not show locks of other hosts"
            }
            Doubt::OtherContainer => {
                "the process ran in another container, whose processes and locks cannot be seen here"
            }
            Doubt::Hidden => "the system hides the processes of other users",
            Doubt::Unrecorded => "the trace does not identify the process that wrote it",
        })
    }
}

/// Where the process ran, as seen from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Where the process id has the same meaning as here.
    Here,
    /// On this kernel, in another PID namespace.
    Container,
    /// On another kernel, or on this host before it was restarted.
    Elsewhere,
    /// The trace does not say.
    Unrecorded,
}

/// The state of the process, as far as its id shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The process exists.
    Present,
    /// The process is gone, or is a zombie.
    Gone,
    /// A process with this id exists, but nothing else of it is visible.
    Hidden,
}

/// The state of the tracer's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    /// A process holds the lock.
    Held,
    /// The lock was taken before and is free now; a holder would be visible here.
    Free,
    /// The lock's state tells nothing about the process.
    Silent,
}

/// The evidence that is available at once. More expensive evidence is collected only if this is not sufficient.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    place: Place,
    process: Seen,
    lock: Lock,
}

impl Evidence {
    /// The only place where liveness is decided; the first matching line counts. `is_mapped`: a visible process has the
    /// spool mapped. `is_local`: no other kernel writes to the file system.
    fn decide(self, is_mapped: impl FnOnce() -> bool, is_local: impl FnOnce() -> bool) -> Liveness {
        match (self.place, self.process, self.lock) {
            // A forked child may have inherited the lock.
            (Place::Here, Seen::Gone, _) => Liveness::Ended,
            (_, _, Lock::Held) => Liveness::Running,
            // Even if the process exists: it has executed another program.
            (_, _, Lock::Free) => Liveness::Ended,
            (Place::Here, Seen::Present, Lock::Silent) => Liveness::Running,
            (Place::Elsewhere, ..) => Liveness::Unknown(Doubt::OtherHost),
            _ if is_mapped() => Liveness::Running,
            (Place::Here, Seen::Hidden, _) => Liveness::Unknown(Doubt::Hidden),
            (Place::Container, ..) => Liveness::Unknown(Doubt::OtherContainer),
            (Place::Unrecorded, ..) if is_local() => Liveness::Ended,
            (Place::Unrecorded, ..) => Liveness::Unknown(Doubt::Unrecorded),
        }
    }

    fn of(file: &File, path: &Path, pid: u32, metadata: &Metadata) -> Evidence {
        let process = metadata.process.as_ref();
        let place = place(metadata);
        Evidence {
            place,
            process: match (place, process) {
                (Place::Here, Some(process)) => see(pid, process.started),
                _ => Seen::Hidden,
            },
            lock: see_lock(file, path, place, metadata),
        }
    }
}

/// Whether the process `pid` still writes the trace `file`, which was opened at `path`.
pub(crate) fn of(file: &File, path: &Path, pid: u32, metadata: &Metadata, spool: Option<&Path>) -> Liveness {
    let evidence = Evidence::of(file, path, pid, metadata);
    let is_mapped = |spool: &Path| match evidence.place {
        // Without metadata, only the header's process id is known.
        Place::Unrecorded => started(pid).is_some() && has_mapped(pid, spool),
        _ => is_mapped(spool),
    };
    evidence.decide(|| spool.is_some_and(is_mapped), || Reach::of(path) == Reach::Kernel)
}

/// Whether the tracer, which may have written the session's end, is still running. Removing the spool is its last step.
pub(crate) fn is_finishing(file: &File, path: &Path, pid: u32, metadata: &Metadata) -> bool {
    let evidence = Evidence::of(file, path, pid, metadata);
    evidence.lock == Lock::Held && evidence.decide(|| false, || false) == Liveness::Running
}

/// The id of the kernel's boot, which containers share and no other host has; empty if the system does not provide it.
pub fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.map_or_else(|_| String::new(), |boot| boot.trim_end().to_owned())
}

fn place(metadata: &Metadata) -> Place {
    let process = metadata.process.as_ref();
    let Some(process) = process.filter(|process| process.started != 0) else {
        return Place::Unrecorded;
    };
    let is_this_kernel = metadata.machine.as_ref().is_none_or(|machine| {
        // Older tracers recorded only the host's name.
        if machine.boot.is_empty() {
            fs::read_to_string("/proc/sys/kernel/hostname")
                .map_or(true, |host| host.trim_end() == machine.host)
        } else {
            machine.boot == boot()
        }
    });
    match is_this_kernel {
        false => Place::Elsewhere,
        true if is_our_namespace(process.pid_namespace) => Place::Here,
        true => Place::Container,
    }
}

fn is_our_namespace(number: u64) -> bool {
    number == 0 || number == pid_namespace()
}

/// The inode number of this process's PID namespace; 0 if the system does not provide it.
pub fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// A lock taken elsewhere and not visible here proves nothing: a file system may keep locks per mount.
fn see_lock(file: &File, path: &Path, place: Place, metadata: &Metadata) -> Lock {
    match (lock::state(file, Purpose::Recording), &metadata.lock) {
        (State::Held, _) => Lock::Held,
        (State::Free, Some(taken)) => {
            let is_the_file = || {
                let found = file.metadata();
                found.is_ok_and(|found| (found.dev(), found.ino()) == (taken.device, taken.inode))
            };
            let would_be_seen = match place {
                Place::Here | Place::Container => is_the_file(),
                Place::Elsewhere => taken.reach != Reach::Unknown && Reach::of(path) != Reach::Unknown,
                Place::Unrecorded => false,
            };
            if would_be_seen { Lock::Free } else { Lock::Silent }
        }
        (State::Free, None) | (State::Unsupported, _) => Lock::Silent,
    }
}

/// Process ids are reused, so the process's start time must equal the one in the metadata.
fn see(pid: u32, started_then: u64) -> Seen {
    let is_there = || {
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH))
    };
    match started(pid) {
        Some(now) if now == started_then => Seen::Present,
        // Start times are shown in the reader's time namespace, so they cannot be compared with a process of another
        // one.
        Some(_) if has_other_clock(pid) => Seen::Hidden,
        Some(_) => Seen::Gone,
        None if cannot_be_asked(pid) => Seen::Hidden,
        None if fs::exists(format!("/proc/{pid}")).unwrap_or(false) => Seen::Gone,
        None if is_there() => Seen::Hidden,
        None => Seen::Gone,
    }
}

/// Whether the process is in another time namespace.
fn has_other_clock(pid: u32) -> bool {
    let clock = |process: &str| fs::metadata(format!("/proc/{process}/ns/time")).map(|it| it.ino());
    matches!(
        (clock(&pid.to_string()), clock("self")),
        (Ok(its), Ok(own)) if its != own
    )
}

/// Whether `/proc` could not be read for a process that may exist: no file descriptor is left, or access is denied.
fn cannot_be_asked(pid: u32) -> bool {
    let asked = File::open(format!("/proc/{pid}/stat"));
    asked.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
}

/// How far `CLOCK_MONOTONIC_RAW` of process `pid` is ahead of this process's, in nanoseconds; `None` if not visible.
pub(crate) fn clock_ahead(pid: u32, metadata: &Metadata) -> Option<i64> {
    if place(metadata) != Place::Here {
        return None;
    }
    let offset = |process: &str| -> Option<i64> {
        let offsets = fs::read_to_string(format!("/proc/{process}/timens_offsets")).ok()?;
        let mut offsets = offsets.lines().map(str::split_ascii_whitespace);
        let mut of_clock =
            offsets.find_map(|mut words| (words.next() == Some("monotonic")).then_some(words))?;
        let seconds: i64 = of_clock.next()?.parse().ok()?;
        let ns: i64 = of_clock.next()?.parse().ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(ns)
    };
    if has_other_clock(pid) { offset(&pid.to_string())?.checked_sub(offset("self")?) } else { Some(0) }
}

/// The start time of process `pid` (field 22 of `/proc/PID/stat`, in clock ticks since boot); `None` for a zombie.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let process = format!("/proc/{pid}");
    let (state, started) = state_and_start(&process)?;
    // The main thread may have ended while others run.
    let has_others = || {
        let threads = fs::read_dir(format!("{process}/task")).into_iter().flatten();
        threads
            .flatten()
            .filter_map(|thread| state_and_start(thread.path().to_str()?))
            .any(|(state, _)| !has_ended(state))
    };
    (!has_ended(state) || has_others()).then_some(started)
}

fn has_ended(state: char) -> bool {
    matches!(state, 'Z' | 'X')
}

/// State and start time of a process or thread, given its directory in `/proc`.
fn state_and_start(folder: &str) -> Option<(char, u64)> {
    let fields = stat(folder)?;
    Some((fields.first()?.chars().next()?, start_in(&fields)?))
}

/// The fields of `stat` after the name, of a process or thread given its directory in `/proc`. The first is field 3 of
/// proc(5), the state.
pub fn stat(folder: &str) -> Option<Vec<String>> {
    // The second field, the program's name in parentheses, may contain blanks and parentheses, in any encoding.
    let stat = fs::read(format!("{folder}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The start time in clock ticks since boot: field 22 of proc(5).
pub fn start_in(stat: &[String]) -> Option<u64> {
    stat.get(19)?.parse().ok()
}

/// Whether a visible process has `spool` mapped, possibly under another path.
fn is_mapped(spool: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .any(|pid| started(pid).is_some() && has_mapped(pid, spool))
}

/// Compares name and inode; the system may show another device number.
fn has_mapped(pid: u32, spool: &Path) -> bool {
    let (Ok(found), Some(name)) = (fs::metadata(spool), spool.file_name()) else {
        return false;
    };
    let (inode, name) = (found.ino().to_string(), format!("/{}", name.to_string_lossy()));
    // Addresses, access, offset, device, inode, path.
    let is_spool = |line: &str| line.ends_with(&name) && line.split_ascii_whitespace().nth(4) == Some(&inode);
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.lines().any(is_spool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;
    use crate::metadata::{Machine, Process};

    /// A trace that claims to be written by this process, with these facts.
    fn liveness(
        started: u64,
        pid_namespace: u64,
        lock: Option<metadata::Lock>,
        spool: Option<&Path>,
    ) -> Liveness {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = Metadata {
            process: Some(Process { started, pid_namespace, ..Process::default() }),
            lock,
            ..Metadata::default()
        };
        of(file.as_file(), file.path(), std::process::id(), &metadata, spool)
    }

    #[test]
    fn knows_itself_and_no_namesake() {
        let now = started(std::process::id()).expect("this process runs");
        assert_eq!(liveness(now, 0, None, None), Liveness::Running);
        assert_eq!(liveness(now + 1, 0, None, None), Liveness::Ended);
    }

    #[test]
    fn a_program_is_known_whose_name_is_in_no_known_encoding() {
        let before = started(std::process::id());
        let name = fs::read("/proc/self/comm").unwrap();
        fs::write("/proc/self/comm", b"a) \xff b").unwrap();
        let after = started(std::process::id());
        fs::write("/proc/self/comm", name).unwrap();
        assert_eq!((after, after.is_some()), (before, true));
    }

    #[test]
    fn in_another_namespace_a_process_that_has_the_spool_shows_it() {
        let now = started(std::process::id()).expect("this process runs");
        let program = std::env::current_exe().unwrap();
        let unknown = Liveness::Unknown(Doubt::OtherContainer);
        assert_eq!(liveness(now, 1, None, None), unknown);
        assert_eq!(liveness(now + 1, 1, None, Some(&program)), Liveness::Running);
        let folder = tempfile::tempdir().unwrap();
        let namesake = folder.path().join(program.file_name().unwrap());
        fs::write(&namesake, "").unwrap();
        assert_eq!(liveness(now, 1, None, Some(&namesake)), unknown);
    }

    #[test]
    fn without_metadata_a_mapped_spool_shows_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = |spool: &Path, liveness| {
            let found =
                of(file.as_file(), file.path(), std::process::id(), &Metadata::default(), Some(spool));
            assert_eq!(found, liveness);
        };
        check(&std::env::current_exe().unwrap(), Liveness::Running);
        let local = Reach::of(file.path()) == Reach::Kernel;
        let unrecorded = Liveness::Unknown(Doubt::Unrecorded);
        check(Path::new("/no/such/spool"), if local { Liveness::Ended } else { unrecorded });
    }

    #[test]
    fn a_lock_of_another_host_counts_where_it_would_be_seen() {
        let (file, now) = (tempfile::NamedTempFile::new().unwrap(), 5);
        let found = file.as_file().metadata().unwrap();
        let check = |reach, liveness| {
            let metadata = Metadata {
                process: Some(Process { started: now, ..Process::default() }),
                machine: Some(Machine { boot: "another".to_owned(), ..Machine::default() }),
                lock: Some(metadata::Lock { device: found.dev(), inode: found.ino(), reach }),
                ..Metadata::default()
            };
            let reader = File::open(file.path()).unwrap();
            assert_eq!(of(&reader, file.path(), 1, &metadata, None), liveness);
        };
        let unknown = Liveness::Unknown(Doubt::OtherHost);
        let here = Reach::of(file.path()) != Reach::Unknown;
        check(Reach::Unknown, unknown);
        check(Reach::Hosts, if here { Liveness::Ended } else { unknown });
        assert!(lock::take(file.as_file(), Purpose::Recording).unwrap());
        check(Reach::Unknown, Liveness::Running);
        check(Reach::Hosts, Liveness::Running);
    }

    /// All rows of the decision table.
    #[test]
    fn decides_by_process_then_lock_then_mapping() {
        use Liveness::{Ended, Running, Unknown};

        let check = |place, process, lock, is_mapped: bool, is_local: bool, liveness| {
            let evidence = Evidence { place, process, lock };
            assert_eq!(evidence.decide(|| is_mapped, || is_local), liveness, "{evidence:?}");
        };
        for lock in [Lock::Held, Lock::Free, Lock::Silent] {
            check(Place::Here, Seen::Gone, lock, true, true, Ended);
        }
        for place in [Place::Here, Place::Container, Place::Elsewhere] {
            check(place, Seen::Hidden, Lock::Held, false, true, Running);
            check(place, Seen::Hidden, Lock::Free, true, true, Ended);
        }
        check(Place::Here, Seen::Present, Lock::Free, true, true, Ended);
        check(Place::Here, Seen::Present, Lock::Silent, false, true, Running);
        for (place, is_mapped, is_local, liveness) in [
            (Place::Here, true, true, Running),
            (Place::Here, false, true, Unknown(Doubt::Hidden)),
            (Place::Container, true, true, Running),
            (Place::Container, false, true, Unknown(Doubt::OtherContainer)),
            (Place::Elsewhere, true, true, Unknown(Doubt::OtherHost)),
            (Place::Unrecorded, true, false, Running),
            (Place::Unrecorded, false, true, Ended),
            (Place::Unrecorded, false, false, Unknown(Doubt::Unrecorded)),
        ] {
            check(place, Seen::Hidden, Lock::Silent, is_mapped, is_local, liveness);
        }
    }

    #[test]
    fn a_process_whose_first_thread_is_gone_still_runs() {
        // The main thread ends alone; the other thread sleeps.
        let program = "import ctypes, threading, time\n\
            threading.Thread(target=time.sleep, args=(100,)).start()\n\
            ctypes.CDLL(None).syscall(60, 0)";
        let mut child = std::process::Command::new("python3").args(["-c", program]).spawn().unwrap();
        let folder = format!("/proc/{}", child.id());
        while state_and_start(&folder).is_some_and(|(state, _)| !has_ended(state)) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let is_there = started(child.id()).is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_there);
        assert_eq!(started(child.id()), None);
    }
}
