//! The sizes of communicators, for arrays that have an element for each rank.
//!
//! `MPI_Comm_size` would do, but where the program passes a wrong communicator, it would call the program's error handler. So sizes are
//! noted when communicators are made, in a small table in which a communicator has one place. One that has lost it to another counts as
//! empty: the sum of such an array is then 0, which says that it is not known.

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

/// Where a communicator is noted. Handles are small numbers with a kind in the high bits, or addresses.
fn entry(communicator: u64) -> &'static Entry {
    let mixed = communicator.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    &SIZES[mixed as usize % PLACES]
}

/// A communicator is there. Those of an intercommunicator's other side are who the arrays are for.
pub(crate) fn note(communicator: u64, size: i32) {
    let entry = entry(communicator);
    // Release: whoever sees the new size sees the 0 at its second look.
    entry.handle.store(0, Ordering::Relaxed);
    entry.size.store(size.max(0).cast_unsigned().into(), Ordering::Release);
    // Release; pairs with Acquire in `of`.
    entry.handle.store(communicator, Ordering::Release);
}

/// A communicator is about to go.
pub(crate) fn forget(communicator: u64) {
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    // Another one's place stays.
    let _ = entry(communicator).handle.compare_exchange(communicator, 0, success, failure);
}

/// The size of a communicator; 0 where it is not known.
pub(crate) fn of(communicator: u64) -> usize {
    let entry = entry(communicator);
    // Acquire; pairs with Release in `note`.
    let is_it = |entry: &Entry| communicator != 0 && entry.handle.load(Ordering::Acquire) == communicator;
    if !is_it(entry) {
        return 0;
    }
    // Acquire: the second look comes behind it.
    let size = entry.size.load(Ordering::Acquire);
    if is_it(entry) { size as usize } else { 0 }
}
