//! The tracer's memory: from the kernel ([`interpose::memory`]), with a reserve in case the program has used up all
//! memory.
//!
//! Rust aborts a program that is out of memory, but a C program may continue. The tracer then needs only small,
//! short-lived allocations, which come from a reserve inside the library.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

// Sanitizers must see allocations.
#[cfg(not(any(omptrace_memory_is_watched, omptrace_thread_sanitizer)))]
use interpose::memory::KernelMemory as Memory;
#[cfg(any(omptrace_memory_is_watched, omptrace_thread_sanitizer))]
use std::alloc::System as Memory;

/// Size of the reserve in bytes. Unused pages take no memory.
const BYTES: usize = 64 << 10;

/// Allocates from the kernel, and from the reserve if that fails.
pub(crate) struct WithReserve {
    reserve: UnsafeCell<Reserve>,
    /// The number of allocations in the reserve (upper half), and the offset of its free part (lower half). The whole
    /// reserve is free again when it has no allocation.
    taken: AtomicU64,
}

#[repr(align(16))]
struct Reserve {
    _bytes: [u8; BYTES],
}

#[global_allocator]
static MEMORY: WithReserve = WithReserve::new();

// SAFETY: bytes of the reserve belong to the caller to which `take` returned them.
unsafe impl Sync for WithReserve {}

impl WithReserve {
    const fn new() -> WithReserve {
        WithReserve { reserve: UnsafeCell::new(Reserve { _bytes: [0; BYTES] }), taken: AtomicU64::new(0) }
    }

    /// Allocates from the reserve; null if it is too small.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let base = self.reserve.get().cast::<u8>();
        let piece = |taken: u64| {
            let begin = (taken as u32 as usize).next_multiple_of(layout.align());
            let end = begin.checked_add(layout.size())?;
            (end <= BYTES && layout.align() <= align_of::<Reserve>()).then_some((begin, end))
        };
        let after = |taken: u64| Some(((taken >> 32) + 1) << 32 | piece(taken)?.1 as u64);
        // Acquire; pairs with Release in `give_back`: the bytes' previous owner is done with them.
        match self.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, after) {
            // SAFETY: within the reserve, by `piece`.
            Ok(before) => piece(before).map_or(null_mut(), |(begin, _)| unsafe { base.add(begin) }),
            Err(_) => null_mut(),
        }
    }

    /// Whether the allocation is in the reserve.
    fn has(&self, piece: *mut u8) -> bool {
        let base = self.reserve.get() as usize;
        (base..base + BYTES).contains(&(piece as usize))
    }

    fn give_back(&self) {
        let after = |taken: u64| match taken >> 32 {
            0 | 1 => Some(0),
            pieces => Some((pieces - 1) << 32 | taken & u64::from(u32::MAX)),
        };
        // Release; pairs with Acquire in `take`.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.taken.fetch_update(success, failure, after);
    }
}

// SAFETY: each allocation is from the kernel, or a part of the reserve that is not otherwise used.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        match unsafe { Memory.alloc(layout) } {
            none if none.is_null() => self.take(layout),
            piece => piece,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let piece = unsafe { Memory.alloc_zeroed(layout) };
        if !piece.is_null() {
            return piece;
        }
        let piece = self.take(layout);
        if !piece.is_null() {
            // SAFETY: the allocation has the layout's size.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.has(piece) {
            // SAFETY: the caller's contract; not from the reserve, so from the kernel.
            let new = unsafe { Memory.realloc(piece, layout, size) };
            if !new.is_null() {
                return new;
            }
        }
        // SAFETY: the caller's contract: the size is valid for this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both are at least as long as the copied bytes, and the new one is not otherwise used.
            unsafe {
                new.copy_from_nonoverlapping(piece, layout.size().min(size));
                self.dealloc(piece, layout);
            }
        }
        new
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if self.has(piece) {
            self.give_back();
        } else {
            // SAFETY: the caller's contract; not from the reserve, so from the kernel.
            unsafe { Memory.dealloc(piece, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_come_back_when_all_are_free() {
        let memory = WithReserve::new();
        let layout = Layout::from_size_align(40, 16).unwrap();
        let take = || memory.take(layout) as usize;
        let pieces = [take(), take(), take()];
        assert!(pieces.iter().all(|piece| piece.is_multiple_of(16) && memory.has(*piece as *mut u8)));
        assert!(pieces.is_sorted_by(|a, b| a + 40 <= *b));
        memory.give_back();
        assert!(take() > pieces[2]);
        (0..3).for_each(|_| memory.give_back());
        assert_eq!(take(), pieces[0]);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let memory = WithReserve::new();
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        assert!(memory.take(layout(BYTES + 1, 1)).is_null());
        assert!(memory.take(layout(1, 4096)).is_null());
        assert!(!memory.take(layout(BYTES, 16)).is_null());
        assert!(memory.take(layout(1, 1)).is_null());
    }
}
