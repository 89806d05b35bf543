//! The system functions that the tracer uses, each wrapped once. After its start, the tracer calls the kernel directly:
//! see [`interpose::system_call`].

use std::ffi::{CStr, CString, c_int};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use interpose::system_call;
use omptrace_trace_format::lock::Purpose;

/// Creates `path` for the user alone. It must not exist; links are not followed.
///
/// # Errors
/// The system's error.
pub(crate) fn create_new(path: &Path) -> io::Result<OwnedFd> {
    open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
}

/// Opens the existing file at `path` without waiting.
///
/// # Errors
/// The system's error.
pub(crate) fn open_existing(path: &Path) -> io::Result<OwnedFd> {
    open(path, libc::O_RDWR | libc::O_NONBLOCK)
}

/// Reads the start of a kernel file, as many bytes as fit into `buffer`.
///
/// # Errors
/// The system's error.
pub(crate) fn read_start<'b>(path: &Path, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let file = open(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let arguments = [file.as_raw_fd() as usize, buffer.as_mut_ptr() as usize, buffer.len()];
    // SAFETY: the buffer is valid for its length.
    let read = unsafe { system_call::call(libc::SYS_read, arguments) };
    close(file);
    Ok(&buffer[..(read? as usize).min(buffer.len())])
}

fn open(path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    loop {
        let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0o600];
        // SAFETY: a valid C string.
        match unsafe { system_call::call(libc::SYS_openat, arguments) } {
            // SAFETY: just opened, and nobody else's.
            Ok(new) => return Ok(unsafe { OwnedFd::from_raw_fd(new as RawFd) }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Closes a descriptor.
pub(crate) fn close(file: OwnedFd) {
    // SAFETY: our own, and no longer used. Linux closes the descriptor even if it returns an error.
    let _ = unsafe { system_call::call(libc::SYS_close, [file.into_raw_fd() as usize]) };
}

/// Removes the file's name. It may already be gone.
pub(crate) fn remove(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, 0];
        // SAFETY: a valid C string.
        let _ = unsafe { system_call::call(libc::SYS_unlinkat, arguments) };
    }
}

fn number(file: BorrowedFd<'_>) -> usize {
    file.as_raw_fd() as usize
}

/// A resource limit of the process; `u64::MAX` if unlimited.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = [0_u64; 2];
    let arguments = [0, resource as usize, 0, limit.as_mut_ptr() as usize];
    // SAFETY: `limit` is valid for writing what the kernel calls `rlimit64`.
    match unsafe { system_call::call(libc::SYS_prlimit64, arguments) } {
        Ok(_) => limit[0],
        Err(_) => u64::MAX,
    }
}

/// The process's limit on address space, in bytes.
pub(crate) fn address_space_limit() -> u64 {
    limit(libc::RLIMIT_AS)
}

/// Fails if a write up to `end` would exceed the process's limit on file sizes, for which the kernel would kill it with
/// SIGXFSZ.
fn check_file_size(end: u64) -> io::Result<()> {
    if end > limit(libc::RLIMIT_FSIZE) { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

/// Maximum number of parts for [`write_all_at`].
const MAX_PARTS: usize = 4;

/// Writes all of `parts` at `offset`.
///
/// # Errors
/// The system's error; `EFBIG` if the process's limit on file sizes would be exceeded.
pub(crate) fn write_all_at(file: BorrowedFd<'_>, parts: &[&[u8]], mut offset: u64) -> io::Result<()> {
    check_file_size(offset + parts.iter().map(|part| part.len() as u64).sum::<u64>())?;
    // Not on the heap: the program may have used up all memory.
    let mut slices = [IoSlice::new(&[]); MAX_PARTS];
    let mut slices = &mut slices[..parts.len()];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let arguments =
            [number(file), slices.as_ptr() as usize, slices.len(), offset as usize, high_half(offset)];
        // SAFETY: `IoSlice` is an `iovec`, each valid for its length; there are a few, far below IOV_MAX.
        match unsafe { system_call::call(libc::SYS_pwritev, arguments) } {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The upper half of a number that the kernel expects in two registers. If one register holds all of it, the kernel
/// ignores the second.
fn high_half(number: u64) -> usize {
    match usize::BITS {
        64 => 0,
        _ => (number >> 32) as usize,
    }
}

/// Reserves space on the disk.
///
/// # Errors
/// `ENOSPC`, `EDQUOT`; `EFBIG` if the process's limit on file sizes would be exceeded.
pub(crate) fn reserve(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    check_file_size(offset + len)?;
    loop {
        match allocate(file, 0, offset, len) {
            // A signal interrupts tmpfs, which then undoes its work.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                return write_zeros(file, offset, len);
            }
            result => return result,
        }
    }
}

/// Reserves space by writing zeros, if the file system has no call for that; there must be no data yet. Not inlined,
/// because the zeros would be on the caller's stack in any case.
#[cold]
#[inline(never)]
fn write_zeros(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let zeros = [0; 4096];
    let end = offset + len;
    let mut begins = (offset..end).step_by(zeros.len());
    begins.try_for_each(|begin| {
        let len = zeros.len().min((end - begin) as usize);
        write_all_at(file, &[&zeros[..len]], begin)
    })
}

/// `fallocate(2)`.
fn allocate(file: BorrowedFd<'_>, mode: c_int, offset: u64, len: u64) -> io::Result<()> {
    let arguments = [number(file), mode as usize, offset as usize, len as usize];
    // SAFETY: a plain system call.
    unsafe { system_call::call(libc::SYS_fallocate, arguments) }.map(drop)
}

/// Reserves disk space after the end of the file.
///
/// # Errors
/// The system's error: not every file system can.
pub(crate) fn reserve_without_growing(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    check_file_size(offset + len)?;
    allocate(file, libc::FALLOC_FL_KEEP_SIZE, offset, len)
}

/// Truncates the file to `len` bytes, which also frees the space reserved after that.
///
/// # Errors
/// The system's error.
pub(crate) fn truncate(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    // SAFETY: a plain system call.
    unsafe { system_call::call(libc::SYS_ftruncate, [number(file), len as usize]) }.map(drop)
}

/// Frees the space of `len` bytes at `offset`, which read as zeros from then on.
///
/// # Errors
/// The system's error: not every file system can.
pub(crate) fn give_back(file: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    allocate(file, mode, offset as u64, len as u64)
}

/// Maps `len` bytes of the file at `offset`, including those after its end, until the process ends. The memory must not
/// be accessed before [`open_memory`].
///
/// # Errors
/// The system's error.
pub(crate) fn map_shared(file: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    let (begin, bytes) = pages_of(offset, len, page_bytes());
    let base = map(bytes, access, flags, Some((file, begin)))?;
    // A core dump does not need it. Failure costs only disk space.
    // SAFETY: the range was just mapped.
    let _ = unsafe { advise(base, bytes, libc::MADV_DONTDUMP) };
    // SAFETY: within the mapping.
    Ok(unsafe { base.add(offset - begin) })
}

/// A new mapping of a part of a file, or of zeros, at an address chosen by the kernel.
fn map(
    len: usize,
    access: c_int,
    flags: c_int,
    file: Option<(BorrowedFd<'_>, usize)>,
) -> io::Result<*mut u8> {
    let (file, offset) = file.map_or((usize::MAX, 0), |(file, offset)| (number(file), offset));
    // ThreadSanitizer must see the mapping.
    #[cfg(any(omptrace_thread_sanitizer, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let none = std::ptr::null_mut();
        // SAFETY: a new mapping.
        let base = unsafe { libc::mmap(none, len, access, flags, file as i32, offset as i64) };
        match base {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            base => Ok(base.cast()),
        }
    }
    #[cfg(all(not(omptrace_thread_sanitizer), any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let arguments = [0, len, access as usize, flags as usize, file, offset];
        // SAFETY: a new mapping.
        let base = unsafe { system_call::call(libc::SYS_mmap, arguments) }?;
        Ok(std::ptr::with_exposed_provenance_mut(base))
    }
}

/// `madvise(2)`.
///
/// # Safety
/// The memory's content that the advice may drop is no longer needed.
unsafe fn advise(base: *mut u8, len: usize, advice: c_int) -> io::Result<()> {
    let arguments = [base.expose_provenance(), len, advice as usize];
    // SAFETY: the caller's contract.
    unsafe { system_call::call(libc::SYS_madvise, arguments) }.map(drop)
}

/// Maps a page of the file, which keeps the open file description alive. The page is not accessible, and a forked child
/// does not inherit it.
///
/// # Errors
/// The system's error.
pub(crate) fn map_pin(file: BorrowedFd<'_>) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_NORESERVE);
    let len = page_bytes();
    let page = map(len, access, flags, Some((file, 0)))?;
    // SAFETY: the page was just mapped. If this fails, children inherit the page, which is harmless.
    let _ = unsafe { advise(page, len, libc::MADV_DONTFORK) };
    Ok(page)
}

/// Releases a lock of the file like [`omptrace_trace_format::lock::give_back`], but without calling library functions.
pub(crate) fn give_lock_back(file: BorrowedFd<'_>, purpose: Purpose) {
    let lock = libc::flock {
        l_type: libc::F_UNLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: purpose as libc::off_t,
        l_len: 1,
        l_pid: 0,
    };
    let place = &raw const lock as usize;
    let arguments = [number(file), libc::F_OFD_SETLK as usize, place];
    // SAFETY: a valid structure.
    let _ = unsafe { system_call::call(libc::SYS_fcntl, arguments) };
}

/// Unmaps the page of [`map_pin`].
pub(crate) fn unmap_pin(page: *mut u8) {
    // SAFETY: made by `map_pin`, and touched by nobody.
    let _ = unsafe { system_call::call(libc::SYS_munmap, [page.addr(), page_bytes()]) };
}

/// Maps `len` bytes of zeroed private memory until the process ends. The memory must not be accessed before
/// [`open_memory`].
///
/// # Errors
/// The system's error.
pub(crate) fn map_private(len: usize) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(len, libc::PROT_NONE, flags, None)
}

/// Makes a part of a mapping readable and writable, extended to whole pages.
///
/// # Errors
/// The system's error: memory is short.
pub(crate) fn open_memory(base: *mut u8, len: usize) -> io::Result<()> {
    let (begin, bytes) = pages_of(base.expose_provenance(), len, page_bytes());
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let arguments = [begin, bytes, access as usize];
    // SAFETY: it becomes more accessible; it begins at a page, as this part does now.
    unsafe { system_call::call(libc::SYS_mprotect, arguments) }.map(drop)
}

/// Extends `len` bytes at `begin` to start at a page boundary. The kernel extends the end itself.
fn pages_of(begin: usize, len: usize, page: usize) -> (usize, usize) {
    let before = begin % page;
    (begin - before, len + before)
}

/// The page size in bytes; aarch64 kernels may have 16 or 64 KiB pages.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }
}

/// Frees the memory of a mapping; it reads as zeros from then on, and may be written again.
pub(crate) fn forget_memory(base: *mut u8, len: usize) {
    // SAFETY: the caller's own private mapping; nobody relies on its content any more. Failure costs memory only.
    let _ = unsafe { advise(base, len, libc::MADV_DONTNEED) };
}

/// Replaces a part of a mapping, extended to whole pages, with zeroed private memory.
pub(crate) fn detach_memory(base: *mut u8, len: usize) {
    let (begin, bytes) = pages_of(base.expose_provenance(), len, page_bytes());
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let arguments = [begin, bytes, access as usize, flags as usize, usize::MAX, 0];
    // SAFETY: nobody relies on its content any more. Failure leaves it as it was.
    let _ = unsafe { system_call::call(libc::SYS_mmap, arguments) };
}

/// Whether the process has more privileges than the user who started it, such as a setuid program or one with
/// capabilities.
pub(crate) fn has_more_rights_than_its_user() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Identifies a file: device and inode number.
pub(crate) type FileId = (u64, u64);

/// The file behind the descriptor.
///
/// # Errors
/// The system's error: `EBADF` where the descriptor is closed.
pub(crate) fn file_id(file: BorrowedFd<'_>) -> io::Result<FileId> {
    status(file).map(|stat| (stat.st_dev, stat.st_ino))
}

/// The file with this name, without following links.
///
/// # Errors
/// The system's error.
pub(crate) fn file_id_of(path: &Path) -> io::Result<FileId> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    let stat = status_of(libc::AT_FDCWD as usize, &path, flags)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Whether the file has a name anywhere.
///
/// # Errors
/// See [`file_id`].
pub(crate) fn has_a_name(file: BorrowedFd<'_>) -> io::Result<bool> {
    status(file).map(|stat| stat.st_nlink > 0)
}

fn status(file: BorrowedFd<'_>) -> io::Result<libc::stat> {
    status_of(number(file), c"", libc::AT_EMPTY_PATH)
}

/// `newfstatat(2)`.
fn status_of(folder: usize, path: &CStr, flags: c_int) -> io::Result<libc::stat> {
    // SAFETY: all zeros is a valid structure, which the kernel fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let (path, place) = (path.as_ptr() as usize, &raw mut stat as usize);
        let arguments = [folder, path, place, flags as usize];
        // SAFETY: a valid C string; the C library's structure is the kernel's here.
        unsafe { system_call::call(libc::SYS_newfstatat, arguments) }?;
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: a valid C string, and a structure that is valid for writing.
    if unsafe { libc::fstatat(folder as c_int, path.as_ptr(), &mut stat, flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat)
}

/// Whether this is the process's only thread; false if unknown.
pub(crate) fn has_one_thread() -> bool {
    // The link count is two for the directory itself, plus one for each directory in it.
    let found = status_of(libc::AT_FDCWD as usize, c"/proc/self/task", 0);
    found.is_ok_and(|found| found.st_nlink == 3)
}

/// Duplicates the descriptor to the lowest free number that is at least `lowest`.
///
/// # Errors
/// The system's error: there is none within the process's limit.
pub(crate) fn duplicate_from(file: BorrowedFd<'_>, lowest: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let arguments = [number(file), libc::F_DUPFD_CLOEXEC as usize, lowest as usize];
    // SAFETY: as above.
    let new = unsafe { system_call::call(libc::SYS_fcntl, arguments) }?;
    // SAFETY: just made, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(new as RawFd) })
}

/// Whether a descriptor with this number is open.
pub(crate) fn is_open(number: RawFd) -> bool {
    // SAFETY: a plain system call, which changes nothing.
    unsafe { system_call::call(libc::SYS_fcntl, [number as usize, libc::F_GETFD as usize]) }.is_ok()
}

/// Maps zeroed private memory that is zeroed again in a forked child.
///
/// # Errors
/// The system's error.
pub(crate) fn map_wiped_on_fork(len: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let base = map(len, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)?;
    // Kernels before 4.14 refuse this; then only the fork handler protects the parent.
    // SAFETY: the range was just mapped.
    let _ = unsafe { advise(base, len, libc::MADV_WIPEONFORK) };
    Ok(base)
}

/// Maps zeroed private memory.
///
/// # Errors
/// The system's error.
pub(crate) fn map_zeroed(len: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    map(len, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)
}

/// Unmaps memory of [`map_zeroed`] or [`map_private`] that is no longer used.
pub(crate) fn unmap(memory: *mut u8, len: usize) {
    // SAFETY: the caller's own mapping.
    let _ = unsafe { system_call::call(libc::SYS_munmap, [memory.addr(), len]) };
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library's own place for this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// The C library's handle of the calling thread, which stays the same in a forked child. Never 0.
pub(crate) fn thread_handle() -> usize {
    // SAFETY: no arguments.
    unsafe { libc::pthread_self() as usize }
}

/// The calling thread's id.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: no arguments.
    unsafe { system_call::call(libc::SYS_gettid, []) }.map_or(0, |id| id as i32)
}

/// Whether the process still has a thread with this id.
pub(crate) fn is_thread_there(id: i32) -> bool {
    // SAFETY: a plain system call: 0 is no signal.
    let asked = unsafe { system_call::call(libc::SYS_tgkill, [process_id() as usize, id as usize, 0]) };
    !asked.is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// The calling process's id, from the kernel: a cached one would be the parent's after a raw clone.
pub(crate) fn process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { system_call::call(libc::SYS_getpid, []) }.map_or(0, |id| id as u32)
}

/// The process's limit on descriptors: all descriptors have lower numbers.
pub(crate) fn descriptor_limit() -> u64 {
    limit(libc::RLIMIT_NOFILE)
}

/// The calling thread's name.
pub(crate) fn thread_name() -> Vec<u8> {
    let mut name = [0u8; 16];
    let arguments = [libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize];
    // SAFETY: the kernel writes at most 16 bytes.
    let _ = unsafe { system_call::call(libc::SYS_prctl, arguments) };
    name.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// Names the calling thread; the kernel keeps 15 bytes.
pub(crate) fn name_thread(name: &CStr) {
    let arguments = [libc::PR_SET_NAME as usize, name.as_ptr() as usize];
    // SAFETY: a C string, of which the kernel reads at most 16 bytes.
    let _ = unsafe { system_call::call(libc::SYS_prctl, arguments) };
}

/// The CPUs that the process may use.
pub(crate) fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: all zeros is a valid set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let arguments = [0, size_of_val(&set), &raw mut set as usize];
    // SAFETY: the kernel writes no more than the set's size.
    unsafe { system_call::call(libc::SYS_sched_getaffinity, arguments) }.ok()?;
    Some(set)
}

/// Clock ticks per second, the unit of process start times in `/proc`; `None` if unknown.
pub(crate) fn clock_ticks_per_second() -> Option<u64> {
    // SAFETY: takes and gives numbers only.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)
}

/// Number of online CPUs; 0 if unknown.
pub(crate) fn processors() -> u32 {
    // SAFETY: a plain call.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(0)
}

/// Lets the calling thread run on any of `cpus`, instead of those that it inherited from its parent.
pub(crate) fn spread_over(cpus: &Option<libc::cpu_set_t>) {
    if let Some(cpus) = cpus {
        let arguments = [0, size_of_val(cpus), &raw const *cpus as usize];
        // SAFETY: a plain system call with a valid set; a refusal costs time only.
        let _ = unsafe { system_call::call(libc::SYS_sched_setaffinity, arguments) };
    }
}

/// Makes `thread` an ordinary one, or one that runs only in idle time.
pub(crate) fn set_ordinary(thread: i32, ordinary: bool) {
    let policy = if ordinary { libc::SCHED_OTHER } else { libc::SCHED_IDLE };
    let parameters = libc::sched_param { sched_priority: 0 };
    let place = &raw const parameters as usize;
    let arguments = [thread as usize, policy as usize, place];
    // SAFETY: a plain system call with valid arguments; a thread that is gone, or a refusal, costs time only.
    let _ = unsafe { system_call::call(libc::SYS_sched_setscheduler, arguments) };
}

/// Yields to other threads.
pub(crate) fn yield_now() {
    // SAFETY: no arguments.
    let _ = unsafe { system_call::call(libc::SYS_sched_yield, []) };
}

/// A duration in the kernel's format.
pub(super) fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos() as _ }
}

/// Sleeps for `time`, or until a signal arrives.
pub(crate) fn sleep(time: Duration) {
    let time = timespec(time);
    // SAFETY: a valid time; nobody asks what is left.
    let _ = unsafe { system_call::call(libc::SYS_nanosleep, [&raw const time as usize, 0]) };
}

/// Sleeps while `word` is `value`, until [`wake`] or for at most `most`; may return early.
pub(crate) fn wait_while(word: &AtomicU32, value: u32, most: Option<Duration>) {
    let most = most.map(timespec);
    let most = most.as_ref().map_or(0, |most| std::ptr::from_ref(most) as usize);
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [word.as_ptr() as usize, operation, value as usize, most];
    // SAFETY: the word is valid, and so is the time.
    let _ = unsafe { system_call::call(libc::SYS_futex, arguments) };
}

/// Wakes up to `threads` threads that are in [`wait_while`].
pub(crate) fn wake(word: &AtomicU32, threads: u32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [word.as_ptr() as usize, operation, threads as usize];
    // SAFETY: the kernel only uses the address.
    let _ = unsafe { system_call::call(libc::SYS_futex, arguments) };
}

/// Size in bytes and modification time (nanoseconds since 1970) of a file; zeros if it does not exist.
pub(crate) fn file_stamp(path: &[u8]) -> (u64, u64) {
    let Ok(path) = CString::new(path) else {
        return (0, 0);
    };
    match status_of(libc::AT_FDCWD as usize, &path, 0) {
        Ok(stat) => (stat.st_size as u64, stat.st_mtime as u64 * 1_000_000_000 + stat.st_mtime_nsec as u64),
        Err(_) => (0, 0),
    }
}

/// Reads a system clock, in nanoseconds.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = timespec(Duration::ZERO);
    let arguments = [clock as usize, &raw mut time as usize];
    // SAFETY: `time` is valid for writing; the clocks asked for exist on every Linux, and an error leaves zeros.
    let _ = unsafe { system_call::call(libc::SYS_clock_gettime, arguments) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The host's name.
pub(crate) fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is valid for its length less the final zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Makes `path` absolute without resolving links.
pub(crate) fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page sizes of Linux on aarch64.
    const PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

    #[test]
    fn a_part_of_a_mapping_is_extended_to_where_its_page_begins() {
        for page in PAGES {
            for (begin, len) in
                [(0, 1), (4096, 256 << 10), (4096 + (256 << 10), 256 << 10), (page, page), (1, 0)]
            {
                let (first, bytes) = pages_of(begin, len, page);
                assert!(
                    first.is_multiple_of(page) && first <= begin && begin - first < page,
                    "{begin} {page}"
                );
                assert_eq!(first + bytes, begin + len);
            }
        }
        assert_eq!(pages_of(4096, 100, 4 << 10), (4096, 100));
        assert_eq!(pages_of(4096, 100, 16 << 10), (0, 4196));
    }

    #[test]
    fn the_page_is_one_of_these() {
        assert!(PAGES.contains(&page_bytes()));
    }
}
