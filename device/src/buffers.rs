//! Trace buffers: memory that devices fill, lent on request, given back by a completion.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr;

use crate::lock::Mutex;

/// Buffers that are kept for the next request.
const MAX_KEPT: usize = 8;
/// Bytes of all buffers at once; a request beyond gets none.
const MAX_BYTES: usize = 64 << 20;
/// No buffer is smaller, unless the user wants that. A record takes up to 112 bytes, and a runtime that finds no room for one
/// may write through a null pointer.
const MIN_BYTES: usize = 4 << 10;
/// A buffer takes at most one of this many parts of the memory left, where that is less than half. A runtime may keep one
/// for each pair of a thread and a device, for good, also of threads that have ended.
const PART: usize = 1024;

/// All buffers of a session. Their memory stays with the process while the session goes on: a runtime that completes a
/// buffer twice must not read memory that is gone.
#[derive(Debug)]
pub struct Buffers {
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The buffers that a device has, by address.
    lent: BTreeMap<usize, Box<[u64]>>,
    /// The buffers that wait for the next request.
    kept: Vec<Box<[u64]>>,
    /// All that were made.
    made: usize,
    /// Their bytes.
    used: usize,
}

/// A buffer for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Where it is; aligned for any record.
    pub address: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// It is one more than are kept.
    pub is_extra: bool,
    /// It is one more than there shall be: the device should be stopped.
    pub is_last: bool,
}

impl Lent {
    /// Writes the answer to a request for a buffer where the request wants it. Without a buffer that is null, of 0 bytes.
    ///
    /// # Safety
    /// Each place is null or valid for writing.
    pub(crate) unsafe fn answer<T>(lent: Option<Lent>, buffer: *mut *mut T, bytes: *mut usize) {
        if buffer.is_null() || bytes.is_null() {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            *buffer = lent.map_or(ptr::null_mut(), |lent| lent.address as *mut T);
            *bytes = lent.map_or(0, |lent| lent.bytes);
        }
    }
}

impl Buffers {
    /// Buffers of `bytes` each.
    pub fn new(bytes: usize) -> Buffers {
        Buffers {
            bytes: bytes.max(8).next_multiple_of(8),
            state: Mutex::default(),
        }
    }

    /// Lends a buffer. Beyond the limit there is none; but where a device cannot do without, one more all the same.
    pub fn lend(&self, must: bool) -> Option<Lent> {
        let mut state = self.state.lock();
        let kept = state.kept.pop();
        let is_new = kept.is_none();
        let new_bytes = self.next_bytes(state.used);
        let is_last = is_new && state.made > 0 && state.used + new_bytes > MAX_BYTES;
        if is_last && !must {
            return None;
        }
        let mut buffer = kept.unwrap_or_else(|| vec![0; new_bytes / 8].into());
        if is_new {
            state.made += 1;
            state.used += new_bytes;
        }
        let address = buffer.as_mut_ptr() as usize;
        let bytes = size_of_val::<[u64]>(&buffer);
        let is_extra = is_new && state.made > MAX_KEPT;
        state.lent.insert(address, buffer);
        Some(Lent {
            address,
            bytes,
            is_extra,
            is_last,
        })
    }

    /// The size of a new buffer beside those of `used` bytes.
    fn next_bytes(&self, used: usize) -> usize {
        let left = MAX_BYTES.saturating_sub(used);
        if left >= MAX_BYTES / 2 {
            return self.bytes;
        }
        let part = (left / PART).next_multiple_of(8);
        self.bytes.min(part.max(MIN_BYTES))
    }

    /// Whether a buffer waits for the next request.
    pub fn has_kept(&self) -> bool {
        !self.state.lock().kept.is_empty()
    }

    /// Where the buffer at `address` lies, if a device has it.
    pub fn range(&self, address: usize) -> Option<Range<usize>> {
        let state = self.state.lock();
        let buffer = state.lent.get(&address)?;
        Some(address..address + size_of_val::<[u64]>(buffer))
    }

    /// A device gives the buffer back; false where it does not have it.
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
        let first = buffers.lend(false).expect("a buffer");
        assert_eq!((first.bytes, first.address % 8), (104, 0));
        assert_eq!(
            buffers.range(first.address),
            Some(first.address..first.address + 104)
        );
        assert!(buffers.take_back(first.address));
        assert!(!buffers.take_back(first.address));
        assert_eq!(buffers.lend(false), Some(first));
    }

    #[test]
    fn has_a_limit_that_only_a_must_passes() {
        let buffers = Buffers::new(MAX_BYTES / 64);
        let lent: Vec<Lent> = std::iter::from_fn(|| buffers.lend(false)).collect();
        // Pairs of a thread and a device, whose buffers get smaller: 32, then 1024 * ln 8, then 1024.
        assert!(lent.len() > 3000, "{}", lent.len());
        assert!(lent[..32].iter().all(|lent| lent.bytes == MAX_BYTES / 64));
        assert!(lent.iter().all(|lent| lent.bytes >= MIN_BYTES));
        let all: usize = lent.iter().map(|lent| lent.bytes).sum();
        assert!(all <= MAX_BYTES && all > MAX_BYTES - MIN_BYTES, "{all}");
        let extra: Vec<bool> = lent.iter().map(|lent| lent.is_extra).collect();
        assert_eq!(extra[6..10], [false, false, true, true]);
        let more = buffers.lend(true).expect("one more");
        assert!(more.is_last && !lent.iter().any(|lent| lent.is_last));
    }

    #[test]
    fn has_one_buffer_at_least_whatever_its_size() {
        let buffers = Buffers::new(2 * MAX_BYTES);
        assert!(buffers.lend(false).is_some_and(|lent| !lent.is_last));
        assert_eq!(buffers.lend(false), None);
    }
}
