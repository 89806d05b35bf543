//! Trace buffers: memory that devices fill, lent on request and returned by a completion.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::lock::Mutex;

/// Maximum number of buffers kept for later requests.
const MAX_KEPT: usize = 8;
/// Maximum size of all buffers together in bytes; further requests are refused.
const MAX_BYTES: usize = 64 << 20;
/// Minimum size of a buffer in bytes, unless the user wants less. A record takes up to 112 bytes, and a runtime without
/// room for one may write through a null pointer.
const MIN_BYTES: usize = 512;
/// A buffer takes at most one part in this many of the remaining memory, so that no size chosen by a user leaves none
/// for others.
const PART: usize = 8;
/// The part if less than half of the limit remains. A runtime may keep a buffer for each pair of a thread and a device
/// forever, even for threads that have ended.
const SMALL_PART: usize = 2048;

/// All buffers of a session. Their memory is not freed during the session, because a runtime that completes a buffer
/// twice must not read freed memory.
#[derive(Debug)]
pub struct Buffers {
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The buffers in use by devices, by address.
    lent: BTreeMap<usize, Box<[u64]>>,
    /// The buffers kept for later requests.
    kept: Vec<Box<[u64]>>,
    /// Number of buffers made.
    made: usize,
    /// Size of the buffers made, in bytes.
    used: usize,
}

/// A buffer for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The buffer's address, aligned for any record.
    pub address: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// The buffer exceeds the number of buffers that are kept.
    pub is_extra: bool,
}

impl Buffers {
    /// Buffers of `bytes` bytes each.
    pub fn new(bytes: usize) -> Buffers {
        Buffers { bytes: bytes.max(8).next_multiple_of(8), state: Mutex::default() }
    }

    /// Lends a buffer; `None` if the limit is reached.
    pub fn lend(&self) -> Option<Lent> {
        let mut state = self.state.lock();
        let kept = state.kept.pop();
        let is_new = kept.is_none();
        let mut buffer = match kept {
            Some(kept) => kept,
            None => {
                let bytes = self.next_bytes(state.used)?;
                state.made += 1;
                state.used += bytes;
                vec![0; bytes / 8].into()
            }
        };
        let address = buffer.as_mut_ptr() as usize;
        let bytes = size_of_val::<[u64]>(&buffer);
        let is_extra = is_new && state.made > MAX_KEPT;
        state.lent.insert(address, buffer);
        Some(Lent { address, bytes, is_extra })
    }

    /// The size of a new buffer if existing ones have `used` bytes; `None` if there is no room.
    fn next_bytes(&self, used: usize) -> Option<usize> {
        let left = MAX_BYTES - used;
        let part = match left < MAX_BYTES / 2 {
            true => SMALL_PART,
            false => PART,
        };
        let part = (left / part).next_multiple_of(8);
        let bytes = self.bytes.min(part.max(MIN_BYTES));
        (bytes <= left).then_some(bytes)
    }

    /// Whether a buffer is kept for later requests.
    pub fn has_kept(&self) -> bool {
        !self.state.lock().kept.is_empty()
    }

    /// The address range of the buffer at `address`, if a device has it.
    pub fn range(&self, address: usize) -> Option<Range<usize>> {
        let state = self.state.lock();
        let buffer = state.lent.get(&address)?;
        Some(address..address + size_of_val::<[u64]>(buffer))
    }

    /// Takes a buffer back; false if no device has it.
    pub fn take_back(&self, address: usize) -> bool {
        let mut state = self.state.lock();
        let Some(buffer) = state.lent.remove(&address) else {
            return false;
        };
        state.kept.push(buffer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lends_the_same_memory_again() {
        let buffers = Buffers::new(100);
        let first = buffers.lend().expect("a buffer");
        assert_eq!((first.bytes, first.address % 8), (104, 0));
        assert_eq!(buffers.range(first.address), Some(first.address..first.address + 104));
        assert!(buffers.take_back(first.address));
        assert!(!buffers.take_back(first.address));
        assert_eq!(buffers.lend(), Some(first));
    }

    /// Each pair of a thread and a device may keep a buffer forever.
    #[test]
    fn there_is_room_for_thousands_of_buffers_whatever_their_size() {
        let sizes = [4 << 10, 64 << 10, 1 << 20, MAX_BYTES / 2, MAX_BYTES, 2 * MAX_BYTES];
        for bytes in sizes {
            let buffers = Buffers::new(bytes);
            let lent: Vec<Lent> = std::iter::from_fn(|| buffers.lend()).collect();
            assert!(lent.len() > 8000, "{bytes}: {}", lent.len());
            // Half of the memory is for buffers of the user's size, or for a few large ones.
            assert!(lent[..4].iter().all(|lent| lent.bytes >= bytes.min(4 << 20)));
            assert!(lent.iter().all(|lent| lent.bytes >= MIN_BYTES));
            let all: usize = lent.iter().map(|lent| lent.bytes).sum();
            assert!(all <= MAX_BYTES && all > MAX_BYTES - MIN_BYTES, "{all}");
            let extra: Vec<bool> = lent.iter().map(|lent| lent.is_extra).collect();
            assert_eq!(extra[6..10], [false, false, true, true]);
        }
    }

    #[test]
    fn a_buffer_that_comes_back_is_lent_when_memory_is_used_up() {
        let buffers = Buffers::new(MAX_BYTES);
        let lent: Vec<Lent> = std::iter::from_fn(|| buffers.lend()).collect();
        assert!(buffers.take_back(lent[0].address));
        let again = buffers.lend().expect("the one that came back");
        assert_eq!((again.address, again.bytes), (lent[0].address, lent[0].bytes));
        assert_eq!(buffers.lend(), None);
    }
}
