//! Chunks in memory that a file backs: what the kernel keeps when the process is killed.
//!
//! The layout is [`omptrace_trace_format::block`]'s. Address space is reserved in segments, as chunks become more: batch
//! systems that limit it count what nobody touches, and so does mlockall(2). Space in the file is reserved chunk by chunk,
//! before any thread writes there. So a full disk is an error when a thread begins, never a fault (SIGBUS) in the middle of
//! the program. The rest of a segment cannot be touched. So tools that look through all memory (valgrind, for leaks) do not
//! walk through megabytes of nothing, a fault per page.
//!
//! A file system that copies on write (Btrfs) wants new space for a page that has its place already. The program would get
//! its SIGBUS, so there the spool is in shared memory.
//!
//! Where files may not be mapped (a sandbox, a file system that cannot), chunks lie in the process's own memory. The trace
//! is then complete at a regular end; a kill takes what was not written yet.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use omptrace_trace_format::block::{BLOCK_HEADER_BYTES, CHUNK_HEADER_WORDS, FILE_HEADER_BYTES, FileHeader};

use crate::config::CHUNK_BYTES;
use crate::lockfree::chunk_header::Header;
use crate::lockfree::queues::Queues;
use crate::os::files::protected_fd::ProtectedFd;
use crate::os::log::warning;
use crate::os::sanitizer;
use crate::os::system;
use crate::os::threads::lock::Mutex;

/// Words of a chunk that hold events. With two headers of blocks they are no longer than the chunk: see
/// [`crate::storage::trace_file`].
pub(crate) const EVENT_WORDS: usize = (CHUNK_BYTES - 2 * BLOCK_HEADER_BYTES) / 8;
const _: () = assert!(EVENT_WORDS + CHUNK_HEADER_WORDS <= CHUNK_BYTES / 8);
/// The most chunks of a process, 4 GiB. Where there is less address space, fewer.
const MAX_CHUNKS: usize = 16 << 10;
/// Chunks of a segment, 64 MiB.
const SEGMENT_CHUNKS: usize = 256;
const SEGMENTS: usize = MAX_CHUNKS / SEGMENT_CHUNKS;
/// The file system in memory that Linux has for POSIX's shared memory (shm_overview(7)).
const SHARED_MEMORY: &str = "/dev/shm";
/// The fewest chunks worth starting with.
const MIN_CHUNKS: usize = 16;
/// The part of a limited address space that may be taken: the program needs the rest.
const ADDRESS_SPACE_PART: u64 = 16;

/// How many chunks there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The number of chunks that the threads alive may have together.
    Allowed,
    /// The number of chunks that the spool can have.
    Beyond,
}

/// The process's chunks.
#[derive(Debug)]
pub(crate) struct Spool {
    /// None where the chunks lie in the process's own memory.
    file: Option<ProtectedFd>,
    /// Mappings, in the order of their chunks; null before there is one.
    segments: [AtomicPtr<u8>; SEGMENTS],
    capacity: usize,
    /// Chunks whose space is reserved.
    reserved: AtomicU32,
    /// Chunks that the threads alive may have together.
    allowed: AtomicU32,
    growing: Mutex<()>,
    /// Chunks that no thread has.
    pub(crate) queues: Queues,
}

impl Spool {
    /// Makes the spool `path` of the trace at `trace`, or by the next free name, or in memory of its own: see the module.
    ///
    /// # Errors
    /// The system's error: the folder, the disk, the address space.
    pub(crate) fn create(path: &Path, session: u64, pid: u32, trace: &Path) -> io::Result<Spool> {
        let mut file = ProtectedFd::create(path)?;
        if file.with(system::faults_when_full).unwrap_or(false) {
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
            "cannot map {}: {error}; events are kept in the program's memory, so the newest are lost if the program is killed",
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

    /// Where it is; `None` in memory.
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

    /// The process may have `chunks` more, or fewer, as a thread comes or goes.
    pub(crate) fn allow(&self, chunks: i32) {
        // Relaxed: a bound, not a hand-over.
        self.allowed.fetch_add(chunks as u32, Ordering::Relaxed);
    }

    /// The chunk `index`, which is reserved.
    pub(crate) fn chunk(&self, index: u32) -> Chunk {
        let (segment, place) = place(index);
        // Acquire; pairs with Release in `segment`.
        let base = self.segments[segment].load(Ordering::Acquire);
        assert!((index as usize) < self.capacity && !base.is_null(), "chunks come from this spool's queues");
        // SAFETY: within the mapping, by the assertion.
        let header = unsafe { base.add(place * CHUNK_BYTES) };
        Chunk { header: header.cast() }
    }

    /// The chunk `index`, if it is reserved.
    pub(crate) fn reserved_chunk(&self, index: u32) -> Option<Chunk> {
        // Acquire; pairs with Release in `grow`.
        (index < self.reserved.load(Ordering::Acquire)).then(|| self.chunk(index))
    }

    /// The segment `number`, mapped if it was not; called under the lock.
    fn segment(&self, number: usize) -> io::Result<*mut u8> {
        let segment = &self.segments[number];
        // Relaxed: only this function stores it, under the lock.
        let mut base = segment.load(Ordering::Relaxed);
        if base.is_null() {
            let chunks = (self.capacity - number * SEGMENT_CHUNKS).min(SEGMENT_CHUNKS);
            base = map_segment(self.file.as_ref(), number, chunks)?;
            // Release; pairs with Acquire in `chunk`.
            segment.store(base, Ordering::Release);
        }
        Ok(base)
    }

    /// A chunk that nobody uses: from the free ones, or a new one as far as `growth` goes.
    ///
    /// # Errors
    /// The disk is full, a limit reached.
    pub(crate) fn take(&self, growth: Growth) -> io::Result<Option<u32>> {
        match self.queues.take_free() {
            Some(index) => Ok(Some(index)),
            None => self.grow(growth),
        }
    }

    fn grow(&self, growth: Growth) -> io::Result<Option<u32>> {
        let _growing = self.growing.lock();
        let most = match growth {
            // Relaxed: a bound, not a hand-over.
            Growth::Allowed => (self.allowed.load(Ordering::Relaxed) as usize).min(self.capacity),
            Growth::Beyond => self.capacity,
        };
        // Relaxed: only this function stores it, under the lock.
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

    /// All chunks that are reserved.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, Chunk)> {
        // Acquire; pairs with Release in `grow`.
        (0..self.reserved.load(Ordering::Acquire)).map(|index| (index, self.chunk(index)))
    }

    /// Leaves in memory, which needs no disk and no descriptor, which error of the system turned tracing off.
    pub(crate) fn report_failure(&self, number: i32) {
        let _ = self.all().any(|(_, chunk)| chunk.header().report_failure(number));
    }

    /// Gives the space back, and removes the file's name. The memory stays: a thread may still be storing an event.
    ///
    /// To that thread the chunk may be empty, so that the event is stored over one that is in the trace: nobody reads it.
    pub(crate) fn remove(&self) {
        // All that was read was read before the zeros; pairs with `acquire` in `Recorder::try_store`.
        self.all().for_each(|(_, chunk)| sanitizer::release(chunk.header()));
        let Some(file) = &self.file else {
            let chunks = self.all();
            chunks.for_each(|(_, chunk)| system::forget_memory(chunk.header.cast(), CHUNK_BYTES));
            return;
        };
        let chunks = self.all().count() * CHUNK_BYTES;
        let removed = file.with(|descriptor| {
            // Not before there is a descriptor: the file may have to be opened again, by its name.
            file.remove_name();
            // The space too: the mapping would hold it until the process ends. Chunks keep reading as zeros, stores fill
            // new pages. The header stays: where the name could not be removed, the file is a spool without chunks.
            system::give_back(descriptor, FILE_HEADER_BYTES, chunks)
        });
        if removed.is_err() {
            file.remove_name();
        }
    }
}

/// The first segment, and how many chunks there may be. Where not even one segment can be had, there is a shorter one.
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

/// The segment of a chunk, and its place there.
fn place(index: u32) -> (usize, usize) {
    let index = index as usize;
    (index / SEGMENT_CHUNKS, index % SEGMENT_CHUNKS)
}

/// Whether it is the error of a sandbox (seccomp, a security module) or of a file system without shared mappings.
fn may_not_be_mapped(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENODEV | libc::ENOSYS | libc::EOPNOTSUPP)
    )
}

/// A chunk of the spool: its header, and the words behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    header: *mut u64,
}

impl Chunk {
    /// Its header.
    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: `Spool::chunk` gives valid chunks, which stay mapped, and whose headers are only accessed like this.
        unsafe { &*self.header.cast() }
    }

    /// The words published so far.
    ///
    /// # Safety
    /// While the slice lives, no thread may take the chunk anew, since that writes from the first word on. The chunk's
    /// thread may go on writing: it writes behind the published length only.
    pub(crate) unsafe fn published<'a>(self) -> &'a [u64] {
        let len = self.header().published();
        // SAFETY: within the chunk, which stays mapped; nobody writes before the published length, by the caller's contract.
        unsafe { std::slice::from_raw_parts(self.event_words(), len.min(EVENT_WORDS)) }
    }

    /// Its first word for events.
    pub(crate) fn event_words(&self) -> *mut u64 {
        // SAFETY: within the chunk.
        unsafe { self.header.add(CHUNK_HEADER_WORDS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks follow the file's header, so that larger pages hold parts of two. Where that is, both are of one mapping, and the pages that
    /// a chunk needs beyond its own end are of the segment.
    #[test]
    fn chunks_lie_within_their_segment_on_pages_of_each_size() {
        for page in [4 << 10, 16 << 10, 64 << 10_usize] {
            // In the process's own memory, what is given back begins at a page.
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
