//! The system calls that the standard library does not have, each wrapped once.

use std::ffi::{CString, c_int};
use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Creates `path` for the user alone; it must not exist, and a link is never followed.
///
/// # Errors
/// What the system said.
pub(crate) fn create_new(path: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    Ok(file.into())
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A limit of the process; `RLIM_INFINITY` is the largest number.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    match unsafe { libc::getrlimit(resource, &mut limit) } {
        0 => limit.rlim_cur,
        _ => libc::RLIM_INFINITY,
    }
}

/// The most address space that the process may have.
pub(crate) fn address_space_limit() -> u64 {
    limit(libc::RLIMIT_AS)
}

/// Beyond the largest file that the process may write the kernel kills it by SIGXFSZ.
fn check_file_size(end: u64) -> io::Result<()> {
    if end > limit(libc::RLIMIT_FSIZE) {
        Err(io::Error::from_raw_os_error(libc::EFBIG))
    } else {
        Ok(())
    }
}

/// The most parts of [`write_all_at`].
const MOST_PARTS: usize = 4;

/// Writes all of `parts` at `offset`.
///
/// # Errors
/// What the system said; `EFBIG` before the process's limit on file sizes would kill it.
pub(crate) fn write_all_at(
    file: BorrowedFd<'_>,
    parts: &[&[u8]],
    mut offset: u64,
) -> io::Result<()> {
    check_file_size(offset + parts.iter().map(|part| part.len() as u64).sum::<u64>())?;
    // Not on the heap: the program may have used all memory up.
    let mut slices = [IoSlice::new(&[]); MOST_PARTS];
    let mut slices = &mut slices[..parts.len()];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        // SAFETY: `IoSlice` is an `iovec`, each valid for its length; there are a few, far below IOV_MAX.
        let written = unsafe {
            libc::pwritev(
                file.as_raw_fd(),
                slices.as_ptr().cast(),
                slices.len() as i32,
                offset as libc::off_t,
            )
        };
        match usize::try_from(written) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Reserves space on the disk.
///
/// # Errors
/// `ENOSPC`, `EDQUOT`; `EFBIG` before the process's limit on file sizes would kill it.
pub(crate) fn reserve(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    check_file_size(offset + len)?;
    loop {
        // SAFETY: a plain system call on an open file.
        match unsafe {
            libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, len as libc::off_t)
        } {
            0 => return Ok(()),
            // tmpfs stops at a signal, and undoes what it did.
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Reserves space on the disk beyond the file's end.
///
/// # Errors
/// What the system said: not every file system can.
pub(crate) fn reserve_without_growing(
    file: BorrowedFd<'_>,
    offset: u64,
    len: u64,
) -> io::Result<()> {
    check_file_size(offset + len)?;
    let (mode, offset, len) = (
        libc::FALLOC_FL_KEEP_SIZE,
        offset as libc::off_t,
        len as libc::off_t,
    );
    // SAFETY: a plain system call.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) }).map(|_| ())
}

/// True where a page that was written to the file once may find no space the second time, by the kind of its file system:
/// Btrfs and bcachefs copy on write, NILFS refuses on a disk that is nearly full.
///
/// # Errors
/// What the system said.
pub(crate) fn faults_when_full(file: BorrowedFd<'_>) -> io::Result<bool> {
    const BCACHEFS_SUPER_MAGIC: libc::c_long = 0xca45_1a4e;
    // SAFETY: all zeros is a valid structure, which the kernel fills.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is valid for writing.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), &mut found) })?;
    Ok(matches!(
        found.f_type,
        libc::BTRFS_SUPER_MAGIC | BCACHEFS_SUPER_MAGIC | libc::NILFS_SUPER_MAGIC
    ))
}

/// Ends the file at `len`, which gives back what is reserved beyond.
///
/// # Errors
/// What the system said.
pub(crate) fn truncate(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    // SAFETY: a plain system call.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), len as libc::off_t) }).map(|_| ())
}

/// Gives back the space of `len` bytes from `offset` on, which read as zeros from then on.
///
/// # Errors
/// What the system said: not every file system can.
pub(crate) fn give_back(file: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (offset, len) = (offset as libc::off_t, len as libc::off_t);
    // SAFETY: a plain system call.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) }).map(|_| ())
}

/// Maps `len` bytes of the file from `offset` on, also those that it does not have yet, for the life of the process. None
/// may be touched before [`open_memory`].
///
/// # Errors
/// What the system said.
pub(crate) fn map_shared(file: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    let before = offset % page_bytes();
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len + before,
            access,
            flags,
            file.as_raw_fd(),
            (offset - before) as libc::off_t,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A core dump has no use for it. Failure costs disk space, no more.
    // SAFETY: the range was just mapped.
    unsafe { libc::madvise(base, len + before, libc::MADV_DONTDUMP) };
    // SAFETY: within the mapping.
    Ok(unsafe { base.cast::<u8>().add(before) })
}

/// Maps a page of the file, which keeps the file's description open; nobody can touch it, and no child of fork gets it.
///
/// # Errors
/// What the system said.
pub(crate) fn map_pin(file: BorrowedFd<'_>) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_NORESERVE);
    let (address, len) = (std::ptr::null_mut(), page_bytes());
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { libc::mmap(address, len, access, flags, file.as_raw_fd(), 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page was just mapped. Failure gives it to children, no more.
    unsafe { libc::madvise(page, len, libc::MADV_DONTFORK) };
    Ok(page.cast())
}

/// Gives the page of [`map_pin`] back.
pub(crate) fn unmap_pin(page: *mut u8) {
    // SAFETY: made by `map_pin`, and touched by nobody.
    unsafe { libc::munmap(page.cast(), page_bytes()) };
}

/// Maps `len` bytes of zeroed private memory for the life of the process. None may be touched before [`open_memory`].
///
/// # Errors
/// What the system said.
pub(crate) fn map_private(len: usize) -> io::Result<*mut u8> {
    let (access, flags) = (
        libc::PROT_NONE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast())
}

/// Lets a part of a mapping be read and written, and what else is in its pages.
///
/// # Errors
/// What the system said: memory is short.
pub(crate) fn open_memory(base: *mut u8, len: usize) -> io::Result<()> {
    let before = base as usize % page_bytes();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the caller's own mapping, which becomes more accessible; it begins at a page, as this part does now.
    check(unsafe { libc::mprotect(base.sub(before).cast(), len + before, access) }).map(|_| ())
}

/// Not 4 KiB everywhere.
fn page_bytes() -> usize {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Gives the memory of a mapping back; it reads as zeros from then on, and may be written again.
pub(crate) fn forget_memory(base: *mut u8, len: usize) {
    // SAFETY: the caller's own private mapping; nobody relies on its content any more. Failure costs memory only.
    unsafe { libc::madvise(base.cast(), len, libc::MADV_DONTNEED) };
}

/// True of a process that has more rights than the user who started it: a setuid program, or one with capabilities.
pub(crate) fn has_more_rights_than_its_user() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// What tells a file from all others: its file system's device, and its number there.
pub(crate) type FileId = (u64, u64);

/// Which file this is.
///
/// # Errors
/// What the system said: `EBADF` where the descriptor is closed.
pub(crate) fn file_id(file: BorrowedFd<'_>) -> io::Result<FileId> {
    status(file).map(|stat| (stat.st_dev, stat.st_ino))
}

/// True where the file has a name, wherever that is.
///
/// # Errors
/// As of [`file_id`].
pub(crate) fn has_a_name(file: BorrowedFd<'_>) -> io::Result<bool> {
    status(file).map(|stat| stat.st_nlink > 0)
}

fn status(file: BorrowedFd<'_>) -> io::Result<libc::stat> {
    // SAFETY: all zeros is a valid structure, which the kernel fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writing.
    check(unsafe { libc::fstat(file.as_raw_fd(), &mut stat) })?;
    Ok(stat)
}

/// True while the process has this thread alone; false where that cannot be seen.
pub(crate) fn has_one_thread() -> bool {
    // Two links of a folder, and one of each folder in it.
    std::fs::metadata("/proc/self/task").is_ok_and(|found| found.nlink() == 3)
}

/// A second descriptor of the file: the lowest that is free from `lowest` on.
///
/// # Errors
/// What the system said: there is none within the process's limit.
pub(crate) fn duplicate_from(file: BorrowedFd<'_>, lowest: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let new = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) })?;
    // SAFETY: just made, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// Zeroed private memory that a child of fork finds zeroed again.
///
/// # Errors
/// What the system said.
pub(crate) fn map_wiped_on_fork(len: usize) -> io::Result<*mut u8> {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Kernels before 4.14 refuse; then the fork handler alone protects the parent.
    // SAFETY: the range was just mapped.
    unsafe { libc::madvise(base, len, libc::MADV_WIPEONFORK) };
    Ok(base.cast())
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library's own place for this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// The calling thread's id.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// The calling process's id, from the kernel: a cached one would be the parent's after a raw clone.
pub(crate) fn process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::getpid() as u32 }
}

/// The calling thread's name.
pub(crate) fn thread_name() -> Vec<u8> {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// Which CPUs the process may use.
pub(crate) fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: all zeros is a valid set, and the kernel writes no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            &mut set,
        ))
        .ok()?;
        Some(set)
    }
}

/// The unit in which `/proc` tells when processes started; `None` where the system does not say.
pub(crate) fn clock_ticks_per_second() -> Option<u64> {
    // SAFETY: takes and gives numbers only.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)
}

/// How many processors are online; 0 where that is not known.
pub(crate) fn processors() -> u32 {
    // SAFETY: a plain call.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(0)
}

/// Lets the calling thread run on any of `cpus`: it inherited where its parent was bound.
pub(crate) fn spread_over(cpus: &Option<libc::cpu_set_t>) {
    if let Some(cpus) = cpus {
        // SAFETY: a plain system call with a valid set; a refusal costs time only.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) };
    }
}

/// Makes `thread` an ordinary one, or one that takes idle time only.
pub(crate) fn set_ordinary(thread: i32, ordinary: bool) {
    let policy = if ordinary {
        libc::SCHED_OTHER
    } else {
        libc::SCHED_IDLE
    };
    // SAFETY: a plain system call with valid arguments; a thread that is gone, or a refusal, costs time only.
    unsafe { libc::sched_setscheduler(thread, policy, &libc::sched_param { sched_priority: 0 }) };
}

/// Runs `f` with all signals blocked on this thread, so that a thread it starts never gets any.
pub(crate) fn without_signals<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: valid sets; the old mask is put back.
    unsafe {
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        result
    }
}

/// Writes to a descriptor that is not ours, once: a pipe that nobody reads any more, or a file that may not become larger, does
/// not kill the program.
///
/// # Errors
/// What the system said.
pub(crate) fn write_without_signal(descriptor: RawFd, bytes: &[u8]) -> io::Result<()> {
    const DEADLY: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
    without_signals(|| {
        let before = pending();
        // SAFETY: the buffer is valid for its length.
        let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        let result = check(written.signum() as c_int);
        if result.is_err() {
            let after = pending();
            // SAFETY: valid sets.
            let came = |signal: &c_int| unsafe {
                libc::sigismember(&after, *signal) == 1 && libc::sigismember(&before, *signal) == 0
            };
            DEADLY.iter().filter(|signal| came(signal)).for_each(take);
        }
        result.map(|_| ())
    })
}

/// Signals that wait for the calling thread to let them through.
fn pending() -> libc::sigset_t {
    // SAFETY: a set is plain data, which the call fills.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut set);
        set
    }
}

/// Takes a pending signal away.
fn take(signal: &c_int) {
    // SAFETY: valid sets and times; nobody asks for details.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, *signal);
        let now: libc::timespec = std::mem::zeroed();
        libc::sigtimedwait(&set, std::ptr::null_mut(), &now);
    }
}

/// Size and time of last modification (nanoseconds since 1970) of a file; zeros where it is gone.
pub(crate) fn file_stamp(path: &[u8]) -> (u64, u64) {
    let Ok(path) = CString::new(path) else {
        return (0, 0);
    };
    // SAFETY: a valid C string, and a structure that the kernel fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        match libc::stat(path.as_ptr(), &mut stat) {
            0 => (
                stat.st_size as u64,
                stat.st_mtime as u64 * 1_000_000_000 + stat.st_mtime_nsec as u64,
            ),
            _ => (0, 0),
        }
    }
}

/// The host's name.
pub(crate) fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is valid for its length less the final zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// `path` made absolute, without looking at the file system's links.
pub(crate) fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The library that holds `address`, as the loader names it.
pub(crate) fn library_of(address: *const libc::c_void) -> Option<String> {
    // SAFETY: `dladdr` accepts any address; its text belongs to the loader and is copied at once.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = std::ffi::CStr::from_ptr(info.dli_fname).to_bytes();
        Some(
            Path::new(std::ffi::OsStr::from_bytes(name))
                .to_string_lossy()
                .into_owned(),
        )
    }
}
