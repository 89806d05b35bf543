//! The calls of a rank in chronological order. Most of them are in a temporary file, because jobs have many.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::model::Ns;

/// Calls that are written together.
const BLOCK: usize = 1 << 13;

/// Bytes of a call in the file: the begin, then the duration with a bit that says whether the call communicates.
const CALL_BYTES: usize = 16;

/// A call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankCall {
    /// When it began.
    pub begin: Ns,
    /// When it ended.
    pub end: Ns,
    /// Whether it communicates. Others initialize the library, make communicators or use files, for example.
    pub communicates: bool,
}

impl RankCall {
    fn words(&self) -> [u64; 2] {
        let ns = self.begin.abs_diff(self.end).min(u64::MAX >> 1);
        [self.begin.cast_unsigned(), ns << 1 | u64::from(self.communicates)]
    }

    fn of_words([begin, rest]: [u64; 2]) -> RankCall {
        let begin = begin.cast_signed();
        RankCall { begin, end: begin.saturating_add_unsigned(rest >> 1), communicates: rest & 1 == 1 }
    }
}

/// A file without a name, for the calls of all ranks. Nothing is in it before it is needed.
#[derive(Debug, Default)]
pub(super) struct CallFile {
    /// `None` if it cannot be made.
    file: OnceLock<Option<File>>,
    end: AtomicU64,
    has_failed: AtomicBool,
}

impl CallFile {
    /// Writes calls and returns where they are.
    fn append(&self, calls: &[RankCall]) -> Option<u64> {
        let file = self.file.get_or_init(|| tempfile::tempfile().ok()).as_ref()?;
        let words = calls.iter().flat_map(RankCall::words);
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        // Relaxed: an independent number.
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        file.write_all_at(&bytes, at).ok()?;
        Some(at)
    }

    fn read(&self, at: u64, calls: &mut Vec<RankCall>) -> Option<()> {
        let file = self.file.get()?.as_ref()?;
        let mut bytes = vec![0; BLOCK * CALL_BYTES];
        file.read_exact_at(&mut bytes, at).ok()?;
        calls.clear();
        let words = bytes.as_chunks::<8>().0.as_chunks::<2>().0;
        calls.extend(words.iter().map(|words| RankCall::of_words(words.map(u64::from_ne_bytes))));
        Some(())
    }
}

/// The calls of one rank.
#[derive(Debug, Default)]
pub(super) struct CallStore {
    file: Arc<CallFile>,
    /// Of each block in the file, when its first call began and where it is.
    blocks: Vec<(Ns, u64)>,
    /// The calls after those in the file.
    recent: Vec<RankCall>,
}

/// A block of calls that was read last.
#[derive(Debug, Default)]
pub struct CallBlock {
    number: Option<usize>,
    calls: Vec<RankCall>,
}

impl CallStore {
    pub(super) fn of(file: Arc<CallFile>) -> CallStore {
        CallStore { file, ..CallStore::default() }
    }

    pub(super) fn push(&mut self, call: RankCall) {
        // If nothing can be written, the calls stay in memory.
        if self.recent.len() >= BLOCK
            && self.recent.len().is_multiple_of(BLOCK)
            && let Some(at) = self.file.append(&self.recent[..BLOCK])
        {
            self.blocks.push((self.recent[0].begin, at));
            self.recent.drain(..BLOCK);
        }
        self.recent.push(call);
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.recent.shrink_to_fit();
    }

    /// The call that was added last.
    pub(super) fn last(&self) -> Option<&RankCall> {
        self.recent.last()
    }

    /// The number of calls.
    pub(super) fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.recent.len()
    }

    /// Whether there are no calls.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A call by its number. `block`: what was read last.
    pub(super) fn get(&self, number: usize, block: &mut CallBlock) -> Option<RankCall> {
        match number.checked_sub(self.blocks.len() * BLOCK) {
            Some(number) => self.recent.get(number).copied(),
            None => self.block(number / BLOCK, block)?.get(number % BLOCK).copied(),
        }
    }

    /// The number of calls that began at this time or before.
    pub(super) fn begun_until(&self, time: Ns, block: &mut CallBlock) -> usize {
        let begun = |calls: &[RankCall]| calls.partition_point(|call| call.begin <= time);
        let is_recent = self.recent.first().is_some_and(|first| first.begin <= time);
        let blocks = self.blocks.partition_point(|(begin, _)| *begin <= time);
        match blocks.checked_sub(1) {
            _ if is_recent => self.blocks.len() * BLOCK + begun(&self.recent),
            Some(last) => last * BLOCK + self.block(last, block).map_or(0, begun),
            None => 0,
        }
    }

    /// Whether calls could not be read from the file.
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: threads that read have ended.
        self.file.has_failed.load(Ordering::Relaxed)
    }

    fn block<'b>(&self, number: usize, block: &'b mut CallBlock) -> Option<&'b [RankCall]> {
        if block.number != Some(number) {
            block.number = None;
            if self.file.read(self.blocks.get(number)?.1, &mut block.calls).is_none() {
                self.file.has_failed.store(true, Ordering::Relaxed);
                return None;
            }
            block.number = Some(number);
        }
        Some(&block.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize) -> RankCall {
        let begin = 10 * number as Ns - 7;
        RankCall { begin, end: begin + number as Ns % 9, communicates: number.is_multiple_of(3) }
    }

    #[test]
    fn calls_come_back_from_the_file() {
        let file = Arc::new(CallFile::default());
        let mut stores = [CallStore::of(Arc::clone(&file)), CallStore::of(file)];
        let counts = [2 * BLOCK + 5, 3 * BLOCK];
        for number in 0..3 * BLOCK {
            for (store, count) in stores.iter_mut().zip(counts) {
                if number < count {
                    store.push(call(number));
                }
            }
        }
        for (store, count) in stores.iter().zip(counts) {
            let mut block = CallBlock::default();
            assert_eq!((store.len(), store.recent.len() <= BLOCK), (count, true));
            for number in (0..count).step_by(601).chain([0, BLOCK - 1, BLOCK, count - 1]) {
                assert_eq!(store.get(number, &mut block), Some(call(number)), "{number}");
                let begin = call(number).begin;
                assert_eq!(store.begun_until(begin, &mut block), number + 1);
                assert_eq!(store.begun_until(begin - 1, &mut block), number);
            }
            assert_eq!(store.get(count, &mut block), None);
            assert_eq!(store.begun_until(Ns::MAX, &mut block), count);
            assert!(!store.has_failed());
        }
    }

    #[test]
    fn calls_stay_in_memory_if_there_is_no_file() {
        let file = CallFile::default();
        file.file.set(None).expect("a new file");
        let mut store = CallStore::of(Arc::new(file));
        (0..3 * BLOCK).for_each(|number| store.push(call(number)));
        let mut block = CallBlock::default();
        assert_eq!(store.get(BLOCK, &mut block), Some(call(BLOCK)));
        assert_eq!(store.begun_until(call(7).begin, &mut block), 8);
        assert_eq!((store.len(), store.has_failed()), (3 * BLOCK, false));
    }
}
