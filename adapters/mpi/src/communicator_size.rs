//! Sizes of communicators, for arrays that have an element for each rank.
//!
//! `MPI_Comm_size` would call the program's error handler if the program passes an invalid communicator. So sizes are
//! stored when communicators are created, in a small hash table without collision handling. If another communicator has
//! replaced the entry, the size counts as 0: the sum of such an array is then 0, which means that it is unknown.

use core::sync::atomic::{AtomicU64, Ordering};

/// A communicator and its size. The handle is 0 while the size changes.
#[derive(Debug)]
struct Entry {
    handle: AtomicU64,
    size: AtomicU64,
}

const PLACES: usize = 256;

static SIZES: [Entry; PLACES] =
    [const { Entry { handle: AtomicU64::new(0), size: AtomicU64::new(0) } }; PLACES];

/// The entry for a communicator. Handles are small numbers with a kind in the high bits, or addresses.
fn entry(communicator: u64) -> &'static Entry {
    let mixed = communicator.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    &SIZES[mixed as usize % PLACES]
}

/// Stores the size of a new communicator. For an intercommunicator, this is the size of the remote group, to which the
/// arrays refer.
pub(crate) fn note(communicator: u64, size: i32) {
    let entry = entry(communicator);
    // Release: a thread that sees the new size sees the 0 at its second check.
    entry.handle.store(0, Ordering::Relaxed);
    entry.size.store(size.max(0).cast_unsigned().into(), Ordering::Release);
    // Release; pairs with Acquire in `of`.
    entry.handle.store(communicator, Ordering::Release);
}

/// Removes a communicator that will be freed.
pub(crate) fn forget(communicator: u64) {
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    // The entry of another communicator stays.
    let _ = entry(communicator).handle.compare_exchange(communicator, 0, success, failure);
}

/// Size of a communicator; 0 if it is unknown.
pub(crate) fn of(communicator: u64) -> usize {
    let entry = entry(communicator);
    // Acquire; pairs with Release in `note`.
    let is_it = |entry: &Entry| communicator != 0 && entry.handle.load(Ordering::Acquire) == communicator;
    if !is_it(entry) {
        return 0;
    }
    // Acquire: the second check comes after it.
    let size = entry.size.load(Ordering::Acquire);
    if is_it(entry) { size as usize } else { 0 }
}
