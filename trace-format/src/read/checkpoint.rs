//! Checkpoints in a sealed trace: what a reader needs that starts at some time, and not at the start of the trace.
//!
//! A checkpoint contains the earlier events whose effect lasts: the begin events of open regions and of existing tasks.
//! It also contains data private to its writer, which this module does not interpret. Checkpoints are located after the
//! chunks and before the [summary](crate::read::summary). [`summary::write`](crate::read::summary::write) writes all of
//! them together with the summary.
//!
//! | bytes of the payload, once unpacked | what |
//! | --- | --- |
//! | 4 | bytes of the writer's words |
//! | that many | the writer's words |
//! | 8 for each event | its stream, and its words |
//! | 8 | its time, in raw ticks |
//! | 8 for each word | the event's words; their own time is 0, and predictions continue from one event to the next |

use crate::event::decode_into;
use crate::event::predict::State;
use crate::layout::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, ClockPair, Codec, u32_at, u64_at};
use crate::layout::codec::{pack_text, unpack_text};
use crate::read::block_index::{Block, INDEX_ENTRY_BYTES, checked_payload, read_block};
use crate::read::reader::{Reader, Record};
use crate::write::blocks::header;

/// Maximum size of a checkpoint's payload in bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// Maximum size of an unpacked checkpoint in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// zstd's level: a checkpoint is written once, and may never be read.
const LEVEL: i32 = 3;
/// Maximum number of words of an event.
const EVENT_WORDS: usize = 1 << 12;

/// A checkpoint, packed as in the file.
#[derive(Clone, Debug)]
pub struct Packed {
    ticks: u64,
    payload: Vec<u8>,
}

/// A checkpoint that was read.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The checkpoint's time in raw ticks: everything that it describes is earlier.
    pub ticks: u64,
    /// Private data of the writer.
    pub words: Vec<u8>,
    /// The events with their stream numbers, in order of time.
    pub events: Vec<(u32, Record)>,
}

impl Checkpoint {
    /// Packs the checkpoint; `None` if it would take more than [`MAX_BYTES`].
    pub fn pack(&self) -> Option<Packed> {
        let mut text = (self.words.len() as u32).to_le_bytes().to_vec();
        text.extend_from_slice(&self.words);
        let mut state = State::new(0);
        let mut room = vec![0; EVENT_WORDS];
        for (stream, Record { ticks, event }) in &self.events {
            let len = event.encode(&mut state, 0, &mut room)?;
            text.extend_from_slice(&stream.to_le_bytes());
            text.extend_from_slice(&(len as u32).to_le_bytes());
            text.extend_from_slice(&ticks.to_le_bytes());
            text.extend(room[..len].iter().flat_map(|word| word.to_le_bytes()));
        }
        let is_short = text.len() as u64 <= MAX_TEXT_BYTES;
        let payload = pack_text(&text, LEVEL).filter(|payload| is_short && payload.len() <= MAX_BYTES)?;
        Some(Packed { ticks: self.ticks, payload })
    }

    /// Decodes an unpacked checkpoint; `None` if it is invalid.
    fn unpack(ticks: u64, text: &[u8]) -> Option<Checkpoint> {
        let (len, rest) = text.split_at_checked(4)?;
        let (words, mut rest) = rest.split_at_checked(u32_at(len, 0) as usize)?;
        let mut state = State::new(0);
        let mut events = Vec::new();
        let mut of_event = Vec::new();
        while !rest.is_empty() {
            let (front, behind) = rest.split_at_checked(16)?;
            let len = u32_at(front, 4) as usize;
            let (bytes, behind) = behind.split_at_checked(len.checked_mul(8)?)?;
            rest = behind;
            of_event.clear();
            of_event.extend(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes));
            let mut record = Record { ticks: u64_at(front, 8), ..Record::default() };
            let decoded = decode_into(&mut record.event, &of_event, &mut state);
            if !decoded.is_ok_and(|decoded| decoded == len) {
                return None;
            }
            events.push((u32_at(front, 0), record));
        }
        Some(Checkpoint { ticks, words: words.to_vec(), events })
    }
}

impl Packed {
    /// The checkpoint's time in raw ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The checkpoint; `None` if it is invalid.
    pub fn unpack(&self) -> Option<Checkpoint> {
        unpack_payload(self.ticks, &self.payload)
    }

    /// Bytes that the checkpoint takes in the file, including its index entry.
    pub(crate) fn bytes(&self) -> usize {
        BLOCK_HEADER_BYTES + self.payload.len() + INDEX_ENTRY_BYTES
    }

    /// The header and payload of its block.
    pub(crate) fn block(&self, session: u64) -> ([u8; BLOCK_HEADER_BYTES], &[u8]) {
        let header = BlockHeader {
            clock: ClockPair { ticks: self.ticks, ..ClockPair::default() },
            ..header(BlockKind::CHECKPOINT, session, &self.payload)
        };
        (header.with_payload(Codec::ZSTD, &self.payload).encode(), &self.payload)
    }
}

/// Drops every other checkpoint until the rest takes at most `bytes` in a file.
pub fn thinned(mut checkpoints: Vec<Packed>, bytes: u64) -> Vec<Packed> {
    let all_bytes = |checkpoints: &[Packed]| -> u64 {
        let each = checkpoints.iter();
        each.map(|packed| packed.bytes() as u64).sum()
    };
    while all_bytes(&checkpoints) > bytes {
        checkpoints = checkpoints.into_iter().skip(1).step_by(2).collect();
    }
    checkpoints
}

impl Reader {
    /// The times of the checkpoints in ascending order, in raw ticks.
    pub fn checkpoint_ticks(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.checkpoint_blocks().iter().map(|block| block.header.clock.ticks)
    }

    /// The checkpoint written last for this time; `None` if there is none, or it is damaged.
    pub fn checkpoint(&self, ticks: u64) -> Option<Checkpoint> {
        let mut blocks = self.checkpoint_blocks().iter().rev();
        let block = blocks.find(|block| block.header.clock.ticks == ticks)?;
        let mut bytes = Vec::new();
        if !is_checkpoint(block) || !read_block(self.file(), block, &mut bytes).ok()? {
            return None;
        }
        unpack_payload(ticks, checked_payload(block, &bytes)?)
    }
}

fn unpack_payload(ticks: u64, payload: &[u8]) -> Option<Checkpoint> {
    let text = unpack_text(payload, MAX_TEXT_BYTES + 1).ok()?;
    Checkpoint::unpack(ticks, &text).filter(|_| text.len() as u64 <= MAX_TEXT_BYTES)
}

fn is_checkpoint(block: &Block) -> bool {
    let header = &block.header;
    header.codec == Codec::ZSTD && header.payload_bytes as usize <= MAX_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::field::{Address, Id, ModuleChange, Text};
    use crate::event::{Event, Flush, Module};

    fn checkpoint() -> Checkpoint {
        let flush = |number| Record {
            ticks: 1000 + number,
            event: Event::from(Flush { thread_data: Id(number), codeptr_ra: Address(0x4000 + number % 3) }),
        };
        let module = Record {
            ticks: 2000,
            event: Event::from(Module {
                change: ModuleChange::seen,
                path: Text::new(b"/usr/lib/libomp.so"),
                build_id: Text::new(b"0123"),
                load_address: Address(1),
                start: Address(2),
                end: Address(3),
                file_size: 4,
                modified_ns: 5,
            }),
        };
        let mut events: Vec<(u32, Record)> =
            (0..50).map(|number| (1 + number as u32 % 4, flush(number))).collect();
        events.push((7, module));
        Checkpoint { ticks: 5000, words: b"{\"version\": 1}".to_vec(), events }
    }

    fn text_of(checkpoint: &Checkpoint) -> Vec<u8> {
        let packed = checkpoint.pack().expect("it is small");
        unpack_text(&packed.payload, MAX_TEXT_BYTES).expect("its text")
    }

    #[test]
    fn what_is_packed_is_read() {
        let packed = checkpoint();
        let read = Checkpoint::unpack(5000, &text_of(&packed)).expect("a checkpoint");
        assert_eq!(read.words, packed.words);
        assert_eq!(read.events, packed.events);
        let read = packed.pack().and_then(|packed| packed.unpack()).expect("a checkpoint");
        assert_eq!((read.ticks, read.events), (packed.ticks, packed.events));
    }

    #[test]
    fn a_text_that_is_cut_or_changed_is_no_panic() {
        let text = text_of(&checkpoint());
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 0x81;
            let _any = Checkpoint::unpack(1, &changed);
            let _any = Checkpoint::unpack(1, &text[..at]);
        }
    }

    #[test]
    fn what_takes_too_much_is_thinned_evenly() {
        let packed: Vec<Packed> =
            (0..10).filter_map(|ticks| Checkpoint { ticks, ..checkpoint() }.pack()).collect();
        let each = packed[0].bytes() as u64;
        let ticks = |bytes| -> Vec<u64> {
            thinned(packed.clone(), bytes).iter().map(|packed| packed.ticks).collect()
        };
        assert_eq!(ticks(10 * each).len(), 10);
        assert_eq!(ticks(9 * each), [1, 3, 5, 7, 9]);
        assert_eq!(ticks(2 * each), [3, 7]);
        assert!(ticks(0).is_empty());
    }
}
