//! An allocator for preloaded libraries that gets its memory from the kernel instead of `malloc`. There are three
//! reasons:
//!
//! * The program may replace `malloc` and `free` by functions of its own and use OpenMP in them: an allocation of this library
//!   would then call an entry point or a callback of this library again.
//! * Leak checkers would report memory that is retained on purpose. LeakSanitizer scans memory from `malloc` for pointers; old
//!   content or a number that looks like a pointer would hide a leak of the program.
//! * `malloc` adapts itself to the requests that it gets (`mallopt(3)`, `M_MMAP_THRESHOLD`).

use core::alloc::{GlobalAlloc, Layout};
use core::hint;
use core::ptr::{self, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::system_call;

/// Bytes that are requested from the kernel at once. A larger block has a mapping of its own.
const CHUNK: usize = 1 << 16;
const LARGEST: usize = CHUNK / 4;
/// Mappings are aligned to pages. No block here needs a larger alignment.
const PAGE: usize = 4096;
/// The smallest block, which has room for the pointer of the free list.
const SMALLEST: usize = 16;
/// Number of block sizes, which are powers of two.
const SIZES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// The header of a chunk: the number of its bytes in use.
struct Chunk {
    used: AtomicUsize,
}

/// The newest chunk. Older chunks are full.
static CHUNK_IN_USE: AtomicPtr<Chunk> = AtomicPtr::new(null_mut());

/// Freed blocks of each size, as lists. The first word of a block points to the next one. Any thread adds blocks; only
/// the thread that has set [`IS_USED`] takes blocks: the whole list at once.
static GIVEN_BACK: [AtomicPtr<u8>; SIZES] = [const { AtomicPtr::new(null_mut()) }; SIZES];
/// Blocks taken from [`GIVEN_BACK`] that are still free.
static FREE: [AtomicPtr<u8>; SIZES] = [const { AtomicPtr::new(null_mut()) }; SIZES];
/// A thread uses [`FREE`]. No thread waits long for it: in a forked child it may stay set for good, and then only new
/// memory is used.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// How often a thread tries to set [`IS_USED`], which is set for a few instructions only.
const ATTEMPTS: usize = 256;

/// The allocator. It may be used by all threads, in forked children and in signal handlers.
#[derive(Clone, Copy, Debug)]
pub struct KernelMemory;

// SAFETY: a block has the requested size and is aligned to its size, a power of two, or to a page. No block is given
// out twice.
unsafe impl GlobalAlloc for KernelMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > PAGE {
            return null_mut();
        }
        let Some(size) = piece(layout) else {
            return map(layout.size());
        };
        match take(size) {
            free if free.is_null() => cut(size),
            free => free,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's promise.
        let made = unsafe { self.alloc(layout) };
        // A mapping of its own is new and therefore zero; its pages are allocated only when they are used.
        if !made.is_null() && piece(layout).is_some() {
            // SAFETY: a new block with the layout's size.
            unsafe { made.write_bytes(0, layout.size()) };
        }
        made
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(size) = piece(layout) else {
            // SAFETY: `alloc` mapped it.
            unsafe { unmap(memory, layout.size()) };
            return;
        };
        give_back(size, memory);
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the caller's promise, the size is valid for this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (piece(layout), piece(new)) {
            (Some(before), Some(after)) if before == after => return memory,
            // SAFETY: `alloc` mapped it.
            (None, None) => return unsafe { map_again(memory, layout.size(), size) },
            _ => {}
        }
        // SAFETY: by the caller's promise; both blocks have at least as many bytes as are copied.
        unsafe {
            let made = self.alloc(new);
            if !made.is_null() {
                copy(memory, made, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            made
        }
    }
}

/// Copies in a loop: the program may replace `memcpy`.
///
/// # Safety
/// See `copy_nonoverlapping`.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    for place in 0..bytes {
        // SAFETY: by the caller's promise. Volatile, so that the compiler does not make `memcpy` of the loop.
        unsafe { to.add(place).write_volatile(from.add(place).read()) };
    }
}

/// Size of the block for this layout; `None` if it needs a mapping of its own.
fn piece(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    (size <= LARGEST).then(|| size.next_power_of_two())
}

/// Index of this size in the lists.
fn place_of(size: usize) -> usize {
    (size / SMALLEST).trailing_zeros() as usize
}

/// Adds a block to the freed ones.
fn give_back(size: usize, piece: *mut u8) {
    let list = &GIVEN_BACK[place_of(size)];
    let mut next = list.load(Ordering::Relaxed);
    loop {
        // SAFETY: a free block with room for a pointer.
        unsafe { piece.cast::<*mut u8>().write(next) };
        // Release: pairs with the acquire in `take`.
        match list.compare_exchange_weak(next, piece, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => next = other,
        }
    }
}

/// Takes a freed block; NULL if there is none, or if another thread is taking one.
fn take(size: usize) -> *mut u8 {
    // Acquire: pairs with the release below.
    let is_ours = |_| !IS_USED.swap(true, Ordering::Acquire);
    if !(0..ATTEMPTS).inspect(|_| hint::spin_loop()).any(is_ours) {
        return null_mut();
    }
    let place = place_of(size);
    let mut piece = FREE[place].load(Ordering::Relaxed);
    if piece.is_null() {
        // Acquire: pairs with the release in `give_back`.
        piece = GIVEN_BACK[place].swap(null_mut(), Ordering::Acquire);
    }
    if !piece.is_null() {
        // SAFETY: a free block, whose first word points to the next one.
        let next = unsafe { piece.cast::<*mut u8>().read() };
        FREE[place].store(next, Ordering::Relaxed);
    }
    // Release: pairs with the acquire above.
    IS_USED.store(false, Ordering::Release);
    piece
}

/// Cuts a block off the newest chunk.
fn cut(size: usize) -> *mut u8 {
    loop {
        // Acquire: pairs with the release below.
        let chunk = CHUNK_IN_USE.load(Ordering::Acquire);
        // SAFETY: NULL, or a chunk, which is never unmapped.
        if let Some(used) = unsafe { chunk.as_ref() }.map(|chunk| &chunk.used) {
            let place = |used: usize| used.next_multiple_of(size);
            let next = |used: usize| Some(place(used) + size).filter(|end| *end <= CHUNK);
            // Relaxed: only the number is shared.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if let Ok(before) = used.fetch_update(success, failure, next) {
                // SAFETY: within the chunk.
                return unsafe { chunk.cast::<u8>().add(place(before)) };
            }
        }
        let new = map(CHUNK).cast::<Chunk>();
        if new.is_null() {
            return null_mut();
        }
        // SAFETY: new memory that no other thread knows yet.
        unsafe { (*new).used.store(size_of::<Chunk>(), Ordering::Relaxed) };
        // Release: pairs with the acquire above.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        if CHUNK_IN_USE.compare_exchange(chunk, new, success, failure).is_err() {
            // SAFETY: mapped above, and never used.
            unsafe { unmap(new.cast(), CHUNK) };
        }
    }
}

fn map(bytes: usize) -> *mut u8 {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: new memory at an address that the kernel chooses.
    let mapped = unsafe { system_call::call(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) };
    mapped.map_or(null_mut(), ptr::with_exposed_provenance_mut)
}

/// Resizes a mapping with its content, and returns its new address; NULL if there is no memory, and then the mapping
/// stays as it is.
///
/// # Safety
/// See [`unmap`]: from now on only the returned address is used, unless it is NULL.
unsafe fn map_again(memory: *mut u8, before: usize, bytes: usize) -> *mut u8 {
    let arguments = [memory.expose_provenance(), before, bytes, libc::MREMAP_MAYMOVE as usize];
    // SAFETY: by the caller's promise.
    let mapped = unsafe { system_call::call(libc::SYS_mremap, arguments) };
    mapped.map_or(null_mut(), ptr::with_exposed_provenance_mut)
}

/// # Safety
/// [`map`] mapped this number of bytes at this address, and nothing uses them any more.
unsafe fn unmap(memory: *mut u8, bytes: usize) {
    // SAFETY: by the caller's promise. The kernel does not refuse to unmap what it mapped.
    let _ = unsafe { system_call::call(libc::SYS_munmap, [memory.expose_provenance(), bytes]) };
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The tests look at the lists, which all of them change.
    static ONE_TEST: Mutex<()> = Mutex::new(());

    #[test]
    fn what_is_given_back_while_another_thread_takes_is_used_again() {
        let _alone = ONE_TEST.lock();
        let layout = Layout::from_size_align(LARGEST, 8).unwrap();
        // SAFETY: freed once, with the layout of the allocation.
        unsafe {
            let piece = KernelMemory.alloc(layout);
            IS_USED.store(true, Ordering::Relaxed);
            KernelMemory.dealloc(piece, layout);
            let other = KernelMemory.alloc(layout);
            IS_USED.store(false, Ordering::Relaxed);
            assert_ne!(other, piece);
            assert_eq!(KernelMemory.alloc(layout), piece);
        }
    }

    #[test]
    fn what_grows_keeps_its_content() {
        let _alone = ONE_TEST.lock();
        let mut bytes: Vec<u8> = Vec::new();
        let pattern = |place: usize| (place % 251) as u8;
        // SAFETY: each block is used with its own layout.
        unsafe {
            let layout = |size| Layout::from_size_align(size, 1).unwrap();
            let mut piece = KernelMemory.alloc(layout(1));
            piece.write(pattern(0));
            for size in 2..3 * LARGEST {
                piece = KernelMemory.realloc(piece, layout(size - 1), size);
                piece.add(size - 1).write(pattern(size - 1));
            }
            let size = 3 * LARGEST - 1;
            bytes.extend_from_slice(std::slice::from_raw_parts(piece, size));
            piece = KernelMemory.realloc(piece, layout(size), 100);
            assert_eq!(std::slice::from_raw_parts(piece, 100), &bytes[..100]);
            KernelMemory.dealloc(piece, layout(100));
        }
        assert!(bytes.iter().enumerate().all(|(place, byte)| *byte == pattern(place)));
    }

    #[test]
    fn zeros_are_zeros_in_pieces_that_were_used() {
        let _alone = ONE_TEST.lock();
        let layout = Layout::from_size_align(LARGEST / 2, 8).unwrap();
        // SAFETY: as above.
        unsafe {
            let piece = KernelMemory.alloc(layout);
            piece.write_bytes(7, layout.size());
            KernelMemory.dealloc(piece, layout);
            let again = KernelMemory.alloc_zeroed(layout);
            assert_eq!(again, piece);
            assert!(std::slice::from_raw_parts(again, layout.size()).iter().all(|byte| *byte == 0));
        }
    }
}
