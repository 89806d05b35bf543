//! Chunks in file-backed memory, which the kernel keeps when the process is killed.
//!
//! The layout is described in [`omptrace_trace_format::block`]. Address space is reserved in segments as chunks are
//! added, because batch systems that limit it count untouched memory, and so does mlockall(2). Space in the file is
//! reserved chunk by chunk, before any thread writes there. So a full disk is an error when a thread begins, never a
//! fault (SIGBUS) in the middle of the program. The rest of a segment is inaccessible, so that tools that scan all
//! memory (valgrind, for leaks) do not walk through megabytes of unused memory with a fault per page.
//!
//! A copy-on-write file system (Btrfs) allocates new space even for a page that already has space. This could cause a
//! SIGBUS, so the spool is then in shared memory.
//!
//! If files cannot be mapped (in a sandbox, or because of the file system), chunks are in the process's own memory. The
//! trace is then complete after a regular end; a kill loses what was not written yet.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use omptrace_trace_format::block::{BLOCK_HEADER_BYTES, CHUNK_HEADER_WORDS, FILE_HEADER_BYTES, FileHeader};

use crate::config::CHUNK_BYTES;
use crate::lockfree::chunk_header::Header;
use crate::lockfree::queues::Queues;
use crate::os::files::file_system;
use crate::os::files::protected_fd::ProtectedFd;
use crate::os::log::warning;
use crate::os::sanitizer;
use crate::os::system;
use crate::os::threads::lock::Mutex;

/// Number of words for events in a chunk. Together with two block headers, they must not be longer than the chunk: see
/// [`crate::storage::trace_file`].
pub(crate) const EVENT_WORDS: usize = (CHUNK_BYTES - 2 * BLOCK_HEADER_BYTES) / 8;
const _: () = assert!(EVENT_WORDS + CHUNK_HEADER_WORDS <= CHUNK_BYTES / 8);
/// Maximum number of chunks of a process (4 GiB); fewer if address space is limited.
const MAX_CHUNKS: usize = 16 << 10;
/// Number of chunks of a segment (64 MiB).
const SEGMENT_CHUNKS: usize = 256;
const SEGMENTS: usize = MAX_CHUNKS / SEGMENT_CHUNKS;
/// Linux's in-memory file system for POSIX shared memory (shm_overview(7)).
const SHARED_MEMORY: &str = "/dev/shm";
/// Minimum number of chunks.
const MIN_CHUNKS: usize = 16;
/// At most one part in this many of a limited address space is used: the program needs the rest.
const ADDRESS_SPACE_PART: u64 = 16;

/// The limit for adding chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The number of chunks permitted for the existing threads together.
    Allowed,
    /// The maximum number of chunks of the spool.
    Beyond,
}

/// The process's chunks.
#[derive(Debug)]
pub(crate) struct Spool {
    /// `None` if the chunks are in the process's own memory.
    file: Option<ProtectedFd>,
    /// The mapped segments, in the order of their chunks; null if not mapped yet.
    segments: [AtomicPtr<u8>; SEGMENTS],
    capacity: usize,
    /// Number of chunks whose space is reserved.
    reserved: AtomicU32,
    /// Number of chunks permitted for the existing threads together.
    allowed: AtomicU32,
    growing: Mutex<()>,
    /// The queues of free and full chunks.
    pub(crate) queues: Queues,
}

impl Spool {
    /// Creates the spool at `path`, or with the next free name, or in memory (see the module), for the trace at
    /// `trace`.
    ///
    /// # Errors
    /// The system's error: from the directory, the disk, or the address space.
    pub(crate) fn create(path: &Path, session: u64, pid: u32, trace: &Path) -> io::Result<Spool> {
        let mut file = ProtectedFd::create(path)?;
        if file.with(file_system::faults_when_full).unwrap_or(false) {
            file.remove_name();
            let elsewhere = Path::new(SHARED_MEMORY).join(path.file_name().unwrap_or_default());
            file = match ProtectedFd::create(&elsewhere) {
                Ok(file) => file,
                Err(error) => return Spool::in_memory(&elsewhere, &error),
            };
        }
        let trace = trace.as_os_str().as_bytes();
        let header = FileHeader::of_spool(session, pid, CHUNK_BYTES as u32, trace);
        let mapped = file
            .with(|file| system::write_all_at(file, &[&header.encode()], 0))
            .and_then(|()| first_segment(Some(&file)));
        let error = match mapped {
            Ok((first, capacity)) => return Ok(Spool::new(Some(file), first, capacity)),
            Err(error) => error,
        };
        file.remove_name();
        if !may_not_be_mapped(&error) {
            return Err(error);
        }
        Spool::in_memory(path, &error)
    }

    fn in_memory(path: &Path, error: &io::Error) -> io::Result<Spool> {
        warning!(
            "cannot map {}: {error}; events are kept in the program's memory, so the newest events are lost if the program is killed",
            path.display()
        );
        let (first, capacity) = first_segment(None)?;
        Ok(Spool::new(None, first, capacity))
    }

    fn new(file: Option<ProtectedFd>, first: *mut u8, capacity: usize) -> Spool {
        let mut segments = [const { AtomicPtr::new(null_mut()) }; SEGMENTS];
        *segments[0].get_mut() = first;
        Spool {
            file,
            segments,
            capacity,
            reserved: AtomicU32::new(0),
            allowed: AtomicU32::new(0),
            growing: Mutex::new(()),
            queues: Queues::new(capacity),
        }
    }

    /// The spool's path; `None` in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(ProtectedFd::path)
    }

    /// See [`ProtectedFd::close`].
    pub(crate) fn close(&self) {
        self.file.iter().for_each(ProtectedFd::close);
    }

    /// See [`ProtectedFd::let_go`].
    pub(crate) fn let_go(&self) {
        self.file.iter().for_each(ProtectedFd::let_go);
    }

    /// Changes the number of permitted chunks, when a thread begins or ends.
    pub(crate) fn allow(&self, chunks: i32) {
        // Relaxed: only a limit; no data is transferred.
        self.allowed.fetch_add(chunks as u32, Ordering::Relaxed);
    }

    /// The chunk `index`, which must be reserved.
    pub(crate) fn chunk(&self, index: u32) -> Chunk {
        let (segment, place) = place(index);
        // Acquire; pairs with Release in `segment`.
        let base = self.segments[segment].load(Ordering::Acquire);
        assert!(
            (index as usize) < self.capacity && !base.is_null(),
            "the index of a chunk comes from a queue of this spool"
        );
        // SAFETY: within the mapping, by the assertion.
        let header = unsafe { base.add(place * CHUNK_BYTES) };
        Chunk { header: header.cast() }
    }

    /// The chunk `index`, if it is reserved.
    pub(crate) fn reserved_chunk(&self, index: u32) -> Option<Chunk> {
        // Acquire; pairs with Release in `grow`.
        (index < self.reserved.load(Ordering::Acquire)).then(|| self.chunk(index))
    }

    /// Returns the segment `number`, and maps it if necessary; called under the lock.
    fn segment(&self, number: usize) -> io::Result<*mut u8> {
        let segment = &self.segments[number];
        // Relaxed: stored only by this function, under the lock.
        let mut base = segment.load(Ordering::Relaxed);
        if base.is_null() {
            let chunks = (self.capacity - number * SEGMENT_CHUNKS).min(SEGMENT_CHUNKS);
            base = map_segment(self.file.as_ref(), number, chunks)?;
            // Release; pairs with Acquire in `chunk`.
            segment.store(base, Ordering::Release);
        }
        Ok(base)
    }

    /// Takes a free chunk, or adds a new one, within the limit given by `growth`.
    ///
    /// # Errors
    /// The disk is full, or a limit was reached.
    pub(crate) fn take(&self, growth: Growth) -> io::Result<Option<u32>> {
        match self.queues.take_free() {
            Some(index) => Ok(Some(index)),
            None => self.grow(growth),
        }
    }

    fn grow(&self, growth: Growth) -> io::Result<Option<u32>> {
        let _growing = self.growing.lock();
        let most = match growth {
            // Relaxed: only a limit; no data is transferred.
            Growth::Allowed => (self.allowed.load(Ordering::Relaxed) as usize).min(self.capacity),
            Growth::Beyond => self.capacity,
        };
        // Relaxed: stored only by this function, under the lock.
        let index = self.reserved.load(Ordering::Relaxed);
        if index as usize >= most {
            return Ok(None);
        }
        let offset = FILE_HEADER_BYTES + index as usize * CHUNK_BYTES;
        if let Some(file) = &self.file {
            file.with(|file| system::reserve(file, offset as u64, CHUNK_BYTES as u64))?;
        }
        let (segment, place) = place(index);
        let base = self.segment(segment)?;
        // SAFETY: within the mapping: `most` is at most the capacity.
        system::open_memory(unsafe { base.add(place * CHUNK_BYTES) }, CHUNK_BYTES)?;
        self.queues.open(index);
        // Release; pairs with Acquire in `all`.
        self.reserved.store(index + 1, Ordering::Release);
        Ok(Some(index))
    }

    /// All reserved chunks.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, Chunk)> {
        // Acquire; pairs with Release in `grow`.
        (0..self.reserved.load(Ordering::Acquire)).map(|index| (index, self.chunk(index)))
    }

    /// Stores in memory, without needing disk space or a descriptor, the error number that turned tracing off.
    pub(crate) fn report_failure(&self, number: i32) {
        let _ = self.all().any(|(_, chunk)| chunk.header().report_failure(number));
    }

    /// Frees the space, and removes the file's name. The memory stays mapped, because a thread may still be storing an
    /// event.
    ///
    /// To that thread, the chunk may appear empty, so that it overwrites an event that is in the trace; nothing reads
    /// that memory.
    pub(crate) fn remove(&self) {
        // Everything was read before the memory becomes zero; pairs with `acquire` in `Recorder::try_store`.
        self.all().for_each(|(_, chunk)| sanitizer::release(chunk.header()));
        let Some(file) = &self.file else {
            let chunks = self.all();
            chunks.for_each(|(_, chunk)| system::forget_memory(chunk.header.cast(), CHUNK_BYTES));
            return;
        };
        let chunks = self.all().count() * CHUNK_BYTES;
        let removed = file.with(|descriptor| {
            // Not before there is a descriptor, because the file may have to be reopened by its name.
            file.remove_name();
            // Also free the space, which the mapping would hold until the process ends. Chunks then read as zeros, and
            // stores allocate new pages. The header remains: if the name could not be removed, the file is a spool
            // without chunks.
            system::give_back(descriptor, FILE_HEADER_BYTES, chunks)
        });
        if removed.is_err() {
            file.remove_name();
        }
    }
}

/// The first segment, and the maximum number of chunks. If a whole segment cannot be mapped, it is shorter.
fn first_segment(file: Option<&ProtectedFd>) -> io::Result<(*mut u8, usize)> {
    let affordable = system::address_space_limit() / ADDRESS_SPACE_PART / CHUNK_BYTES as u64;
    let mut capacity = usize::try_from(affordable).unwrap_or(MAX_CHUNKS).clamp(MIN_CHUNKS, MAX_CHUNKS);
    loop {
        let chunks = capacity.min(SEGMENT_CHUNKS);
        match map_segment(file, 0, chunks) {
            Ok(first) => return Ok((first, capacity)),
            Err(error) if capacity <= MIN_CHUNKS => return Err(error),
            Err(_) => capacity = (chunks / 2).max(MIN_CHUNKS),
        }
    }
}

fn map_segment(file: Option<&ProtectedFd>, number: usize, chunks: usize) -> io::Result<*mut u8> {
    let offset = FILE_HEADER_BYTES + number * SEGMENT_CHUNKS * CHUNK_BYTES;
    let bytes = chunks * CHUNK_BYTES;
    match file {
        Some(file) => file.with(|file| system::map_shared(file, offset, bytes)),
        None => system::map_private(bytes),
    }
}

/// The segment of a chunk, and the chunk's index in the segment.
fn place(index: u32) -> (usize, usize) {
    let index = index as usize;
    (index / SEGMENT_CHUNKS, index % SEGMENT_CHUNKS)
}

/// Whether the error comes from a sandbox (seccomp, a security module), or from a file system without shared mappings.
fn may_not_be_mapped(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENODEV | libc::ENOSYS | libc::EOPNOTSUPP)
    )
}

/// A chunk of the spool: its header, followed by words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    header: *mut u64,
}

impl Chunk {
    /// The header of the chunk.
    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: `Spool::chunk` returns valid chunks, which stay mapped, and whose headers are accessed only like
        // this.
        unsafe { &*self.header.cast() }
    }

    /// The words published so far.
    ///
    /// # Safety
    /// While the slice exists, the chunk must not be reused, because that writes from the first word on. The chunk's
    /// thread may continue to write, since it writes only after the published length.
    pub(crate) unsafe fn published<'a>(self) -> &'a [u64] {
        let len = self.header().published();
        // SAFETY: within the chunk, which stays mapped; the words below the published length are not written, by the
        // caller's contract.
        unsafe { std::slice::from_raw_parts(self.event_words(), len.min(EVENT_WORDS)) }
    }

    /// The chunk's first word for events.
    pub(crate) fn event_words(&self) -> *mut u64 {
        // SAFETY: within the chunk.
        unsafe { self.header.add(CHUNK_HEADER_WORDS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks follow the file's header, so larger pages may contain parts of two chunks. Both must be in the same
    /// mapping, and the pages that a chunk needs beyond its own end must be in the segment.
    #[test]
    fn chunks_lie_within_their_segment_on_pages_of_each_size() {
        for page in [4 << 10, 16 << 10, 64 << 10_usize] {
            // In the process's own memory, the freed range must start at a page.
            assert!(CHUNK_BYTES.is_multiple_of(page));
            let segment = SEGMENT_CHUNKS * CHUNK_BYTES;
            for number in 0..SEGMENTS {
                let begin = FILE_HEADER_BYTES + number * segment;
                let mapped = begin / page * page..(begin + segment).next_multiple_of(page);
                for chunk in [0, 1, SEGMENT_CHUNKS - 1] {
                    let chunk = begin + chunk * CHUNK_BYTES;
                    let pages = chunk / page * page..(chunk + CHUNK_BYTES).next_multiple_of(page);
                    assert!(mapped.start <= pages.start && pages.end <= mapped.end, "{number} {page}");
                }
            }
        }
    }
}
