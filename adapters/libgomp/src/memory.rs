//! Memory of this library's own, from the kernel.
//!
//! The program may have functions of its own in the place of `malloc` and `free`, and may use OpenMP in them. What is
//! allocated here would come back as a call of an entry point. A checker of leaks would report what is kept on purpose.

use core::alloc::{GlobalAlloc, Layout};
use core::hint;
use core::ptr::{self, null_mut};
use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// How much memory is asked for at once. What is larger has a mapping of its own.
const CHUNK: usize = 1 << 16;
const LARGEST: usize = CHUNK / 4;
/// Mappings begin at pages. Nothing here needs a larger alignment.
const PAGE: usize = 4096;
/// The smallest piece, in which the list of free pieces has its pointer.
const SMALLEST: usize = 16;
/// Pieces have sizes of powers of two.
const SIZES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// The begin of a chunk: how many of its bytes are in use.
struct Chunk {
    used: AtomicUsize,
}

/// The newest chunk. Older ones are full.
static CHUNK_IN_USE: AtomicPtr<Chunk> = AtomicPtr::new(null_mut());

/// Pieces of each size that were given back. The first word of a piece points to the next one. Any thread adds a piece, and
/// only the one that has [`IS_USED`] takes pieces: all of them at once.
static GIVEN_BACK: [AtomicPtr<u8>; SIZES] = [const { AtomicPtr::new(null_mut()) }; SIZES];
/// Those of them that were taken, and are not in use.
static FREE: [AtomicPtr<u8>; SIZES] = [const { AtomicPtr::new(null_mut()) }; SIZES];
/// A thread uses [`FREE`]. Nobody waits for it for long: a forked child may find it set for good, and then takes new memory only.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// How often a thread tries to get [`IS_USED`], which is used for a few instructions only.
const ATTEMPTS: usize = 256;

struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

/// Sanitizers must see what is allocated and freed.
const IS_WATCHED: bool = cfg!(any(omptrace_memory_is_watched, omptrace_thread_sanitizer));

// SAFETY: pieces are as large as asked for, and aligned to their size, a power of two, or to a page. None is given out twice.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_WATCHED {
            // SAFETY: the caller's own contract.
            return unsafe { System.alloc(layout) };
        }
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

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if IS_WATCHED {
            // SAFETY: the caller's own contract.
            return unsafe { System.dealloc(memory, layout) };
        }
        let Some(size) = piece(layout) else {
            // SAFETY: `alloc` has mapped it.
            unsafe { unmap(memory, layout.size()) };
            return;
        };
        give_back(size, memory);
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if IS_WATCHED {
            // SAFETY: the caller's own contract.
            return unsafe { System.realloc(memory, layout, size) };
        }
        // SAFETY: the caller's own contract: the size is one that this alignment may have.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            let made = self.alloc(new);
            if !made.is_null() {
                copy(memory, made, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            made
        }
    }
}

/// Copies by a loop: `memcpy` may be the program's.
///
/// # Safety
/// As of `copy_nonoverlapping`.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    for place in 0..bytes {
        // SAFETY: by the caller's promise. Volatile, so that it stays a loop.
        unsafe { to.add(place).write_volatile(from.add(place).read()) };
    }
}

/// The size of the piece that holds this; `None` where it needs a mapping.
fn piece(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    (size <= LARGEST).then(|| size.next_power_of_two())
}

/// The place of this size in the lists.
fn place_of(size: usize) -> usize {
    (size / SMALLEST).trailing_zeros() as usize
}

/// Lets the piece be used again.
fn give_back(size: usize, piece: *mut u8) {
    let list = &GIVEN_BACK[place_of(size)];
    let mut next = list.load(Ordering::Relaxed);
    loop {
        // SAFETY: a piece that nobody uses, of at least a pointer's size.
        unsafe { piece.cast::<*mut u8>().write(next) };
        // Release: pairs with the acquire in `take`.
        match list.compare_exchange_weak(next, piece, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => next = other,
        }
    }
}

/// Takes a piece that was given back; NULL where there is none, or another thread is here.
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
        // SAFETY: a free piece, which holds the pointer to the next one.
        let next = unsafe { piece.cast::<*mut u8>().read() };
        FREE[place].store(next, Ordering::Relaxed);
    }
    // Release: pairs with the acquire above.
    IS_USED.store(false, Ordering::Release);
    piece
}

/// Cuts a piece from the newest chunk.
fn cut(size: usize) -> *mut u8 {
    loop {
        // Acquire: pairs with the release below.
        let chunk = CHUNK_IN_USE.load(Ordering::Acquire);
        // SAFETY: NULL, or a chunk, which is never unmapped.
        if let Some(used) = unsafe { chunk.as_ref() }.map(|chunk| &chunk.used) {
            let place = |used: usize| used.next_multiple_of(size);
            let next = |used: usize| Some(place(used) + size).filter(|end| *end <= CHUNK);
            // Relaxed: the number says all.
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
        // SAFETY: new memory, which nobody else knows yet.
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
    // SAFETY: new memory, in the place that the kernel chooses.
    let address = unsafe { system_call(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) };
    // The kernel's errors are small negative numbers.
    if address > -4096_isize as usize {
        return null_mut();
    }
    ptr::with_exposed_provenance_mut(address)
}

/// # Safety
/// [`map`] has mapped as many bytes there, and nothing uses them any more.
unsafe fn unmap(memory: *mut u8, bytes: usize) {
    // SAFETY: by the caller's promise.
    unsafe { system_call(libc::SYS_munmap, [memory as usize, bytes, 0, 0, 0, 0]) };
}

/// Makes a system call by the instruction: the program may replace the C library's functions.
///
/// # Safety
/// As of the system call.
#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: the kernel changes the result's register, rcx and r11, and what the caller's contract says.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as usize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Makes a system call by the instruction: the program may replace the C library's functions.
///
/// # Safety
/// As of the system call.
#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: the kernel changes the result's register, and what the caller's contract says.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack)
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_while_another_thread_takes_is_used_again() {
        // No other test uses pieces of this size.
        let layout = Layout::from_size_align(LARGEST, 8).unwrap();
        // SAFETY: given back once, with the layout that it was allocated with.
        unsafe {
            let piece = MEMORY.alloc(layout);
            IS_USED.store(true, Ordering::Relaxed);
            MEMORY.dealloc(piece, layout);
            let other = MEMORY.alloc(layout);
            IS_USED.store(false, Ordering::Relaxed);
            assert_ne!(other, piece);
            assert_eq!(MEMORY.alloc(layout), piece);
        }
    }
}
