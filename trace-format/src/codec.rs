//! How payloads are packed: a chunk's words as three columns, each compressed by zstd on its own; a text as one frame.
//!
//! Words of one kind stand together, so that what repeats is near its copy:
//!
//! | bytes of a packed payload | what |
//! | --- | --- |
//! | 0..4 | events |
//! | 4..8 | words |
//! | 8..12 | bytes of the second column before compression |
//! | 12..24 | bytes of each column as stored |
//! | 24.. | the columns, without padding between them; zeros up to a multiple of 8 |
//!
//! | column | of each event |
//! | --- | --- |
//! | heads | bits 0..26 of its first word, in 4 bytes |
//! | times | ticks since the event before, zigzag, as a varint (LEB128) |
//! | further words | its other words: the lowest bytes of all of them, then the second lowest, and so on |
//!
//! Most further words are addresses and ids, whose upper bytes hardly change: apart from the lower ones they take next
//! to nothing (0.09 bytes per event instead of 0.36 for a program of parallel loops and tasks).
//!
//! Only the structure of events is looked at, never their meaning: events that this version does not know are packed
//! as well.

use std::io::{self, Read};

use zstd::bulk::{self, Compressor, Decompressor};
use zstd::stream::read::Decoder;

use crate::block::u32_at;
use crate::event::{TICK_BITS, TICK_SHIFT, extra_words};

/// Bytes in front of the columns.
const HEADER_BYTES: usize = 24;
const COLUMNS: usize = 3;
const HEAD_MASK: u64 = (1 << TICK_SHIFT) - 1;
const TICK_MASK: u64 = (1 << TICK_BITS) - 1;
/// The longest varint: 39 bits of a difference with its sign, seven to a byte.
const MAX_VARINT: usize = (TICK_BITS as usize + 1).div_ceil(7);

/// Packs chunks; its buffers grow to the largest chunk once and are used again.
pub struct Packer {
    compressor: Compressor<'static>,
    heads: Vec<u8>,
    times: Vec<u8>,
    further: Vec<u64>,
    planes: Vec<u8>,
    payload: Vec<u8>,
}

/// A chunk's words, packed.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'p> {
    /// Payload of a block with [`crate::block::Codec::COLUMNS`]; its length is a multiple of 8.
    pub payload: &'p [u8],
    /// Events that it holds.
    pub events: u32,
}

impl Packer {
    /// Packs with zstd's `level`, chunks of up to `max_words` words without further allocation of columns.
    ///
    /// # Errors
    /// zstd has no memory, or no such level.
    pub fn new(level: i32, max_words: usize) -> io::Result<Packer> {
        Ok(Packer {
            compressor: Compressor::new(level)?,
            heads: Vec::with_capacity(max_words * 4),
            times: Vec::with_capacity(max_words * MAX_VARINT),
            further: Vec::with_capacity(max_words),
            planes: Vec::with_capacity(max_words * 8),
            payload: Vec::with_capacity(HEADER_BYTES + max_words * 8),
        })
    }

    /// The words of whole events, packed. `None` where the last event is cut off (or zstd fails): such a chunk is
    /// stored raw.
    pub fn pack(&mut self, words: &[u64]) -> Option<Packed<'_>> {
        let events = self.split(words)?;
        let header = [events, words.len() as u32, self.times.len() as u32];
        self.payload.clear();
        self.payload
            .extend(header.iter().flat_map(|number| number.to_le_bytes()));
        self.payload.resize(HEADER_BYTES, 0);
        let columns: [&[u8]; COLUMNS] = [&self.heads, &self.times, &self.planes];
        for (index, column) in columns.into_iter().enumerate() {
            let stored = append_compressed(&mut self.compressor, column, &mut self.payload)?;
            let at = 12 + 4 * index;
            self.payload[at..at + 4].copy_from_slice(&stored.to_le_bytes());
        }
        self.payload
            .resize(self.payload.len().next_multiple_of(8), 0);
        Some(Packed {
            payload: &self.payload,
            events,
        })
    }

    /// Fills the columns and returns the number of events.
    fn split(&mut self, mut words: &[u64]) -> Option<u32> {
        self.heads.clear();
        self.times.clear();
        self.further.clear();
        u32::try_from(words.len()).ok()?;
        let (mut events, mut before) = (0, 0);
        while let Some((&head, rest)) = words.split_first() {
            let (further, rest) = rest.split_at_checked(extra_words(head))?;
            let ticks = head >> TICK_SHIFT;
            self.heads
                .extend_from_slice(&(head as u32 & HEAD_MASK as u32).to_le_bytes());
            push_varint(&mut self.times, zigzag(ticks as i64 - before));
            self.further.extend_from_slice(further);
            before = ticks as i64;
            words = rest;
            events += 1;
        }
        to_planes(&self.further, &mut self.planes);
        Some(events)
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// Appends `column`, compressed, and returns its length.
fn append_compressed(
    compressor: &mut Compressor<'_>,
    column: &[u8],
    out: &mut Vec<u8>,
) -> Option<u32> {
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(column.len()), 0);
    let stored = compressor
        .compress_to_buffer(column, &mut out[start..])
        .ok()?;
    out.truncate(start + stored);
    u32::try_from(stored).ok()
}

/// The payload of a block with [`crate::block::Codec::ZSTD`]: one frame of zstd's format, and zeros up to a multiple of
/// 8. `None` where it would take no less than `text` (or zstd fails): such a text is stored raw.
pub fn pack_text(text: &[u8], level: i32) -> Option<Vec<u8>> {
    let mut payload = bulk::compress(text, level).ok()?;
    payload.resize(payload.len().next_multiple_of(8), 0);
    (payload.len() < text.len()).then_some(payload)
}

/// The text of [`pack_text`]'s `payload`, at most `max_bytes` of it, whatever the payload says.
///
/// # Errors
/// There is no such frame, or it is damaged.
pub fn unpack_text(payload: &[u8], max_bytes: u64) -> Result<Vec<u8>, UnpackError> {
    let frame = Decoder::with_buffer(payload).map_err(|_| UnpackError)?;
    let mut text = Vec::new();
    frame
        .single_frame()
        .take(max_bytes)
        .read_to_end(&mut text)
        .map_err(|_| UnpackError)?;
    Ok(text)
}

/// Unpacks chunks; its buffers are used again.
pub struct Unpacker {
    decompressor: Decompressor<'static>,
    columns: [Vec<u8>; COLUMNS],
    further: Vec<u64>,
}

/// A payload that was not packed so, or exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackError;

impl Unpacker {
    /// An unpacker without buffers yet.
    ///
    /// # Errors
    /// zstd has no memory.
    pub fn new() -> io::Result<Unpacker> {
        Ok(Unpacker {
            decompressor: Decompressor::new()?,
            columns: [const { Vec::new() }; COLUMNS],
            further: Vec::new(),
        })
    }

    /// Puts the words of `payload` into `words`, replacing what it held, and returns the number of events.
    ///
    /// # Errors
    /// The payload is not what [`Packer::pack`] makes, or holds more than `max_words` words. No more memory is taken
    /// than `max_words` calls for, whatever the payload says.
    pub fn unpack(
        &mut self,
        payload: &[u8],
        max_words: usize,
        words: &mut Vec<u64>,
    ) -> Result<u32, UnpackError> {
        words.clear();
        let mut stored = payload.get(HEADER_BYTES..).ok_or(UnpackError)?;
        let [events, count, times_bytes] = [0, 4, 8].map(|at| u32_at(payload, at) as usize);
        let further = count.checked_sub(events).ok_or(UnpackError)?;
        if count > max_words || times_bytes > events * MAX_VARINT {
            return Err(UnpackError);
        }
        let sizes = [events * 4, times_bytes, further * 8];
        for (index, size) in sizes.into_iter().enumerate() {
            let len = u32_at(payload, 12 + 4 * index) as usize;
            let (column, rest) = stored.split_at_checked(len).ok_or(UnpackError)?;
            decompress(
                &mut self.decompressor,
                column,
                size,
                &mut self.columns[index],
            )?;
            stored = rest;
        }
        from_planes(&self.columns[2], &mut self.further);
        words.reserve(count);
        self.join(words)
            .filter(|()| words.len() == count)
            .ok_or(UnpackError)?;
        Ok(events as u32)
    }

    /// Puts the columns together; `None` where they do not fit each other.
    fn join(&self, words: &mut Vec<u64>) -> Option<()> {
        let [heads, times, _] = &self.columns;
        let (mut times, mut further) = (&times[..], &self.further[..]);
        let mut ticks = 0u64;
        for head in heads.as_chunks::<4>().0 {
            let head = u64::from(u32::from_le_bytes(*head)) & HEAD_MASK;
            ticks = ticks.wrapping_add(unzigzag(pop_varint(&mut times)?)) & TICK_MASK;
            words.push(head | ticks << TICK_SHIFT);
            let (these, rest) = further.split_at_checked(extra_words(head))?;
            // Mostly one or none: a call to copy them costs more than they do.
            for word in these {
                words.push(*word);
            }
            further = rest;
        }
        (times.is_empty() && further.is_empty()).then_some(())
    }
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

/// Replaces `out` by the `size` bytes that `column` must give.
fn decompress(
    decompressor: &mut Decompressor<'_>,
    column: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    out.clear();
    out.reserve(size);
    match decompressor.decompress_to_buffer(column, out) {
        Ok(len) if len == size => Ok(()),
        _ => Err(UnpackError),
    }
}

/// Replaces `planes` by the lowest bytes of all words, the second lowest, and so on.
fn to_planes(words: &[u64], planes: &mut Vec<u8>) {
    planes.clear();
    for byte in 0..8 {
        planes.extend(words.iter().map(|word| (word >> (8 * byte)) as u8));
    }
}

/// Replaces `words` by those of `planes`, whose length is a multiple of 8.
fn from_planes(planes: &[u8], words: &mut Vec<u64>) {
    let count = planes.len() / 8;
    words.clear();
    words.resize(count, 0);
    for (byte, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (word, part) in words.iter_mut().zip(plane) {
            *word |= u64::from(*part) << (8 * byte);
        }
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
fn pop_varint(input: &mut &[u8]) -> Option<u64> {
    // Nearly all times take a byte or two.
    let (number, rest) = match **input {
        [first @ 0..0x80, ref rest @ ..] => (u64::from(first), rest),
        [first, second @ 0..0x80, ref rest @ ..] => {
            (u64::from(first & 0x7f) | u64::from(second) << 7, rest)
        }
        _ => return pop_long_varint(input),
    };
    *input = rest;
    Some(number)
}

fn pop_long_varint(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (index, byte) in input.iter().take(MAX_VARINT).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[u64], events: u32) {
        let mut packer = Packer::new(1, words.len()).unwrap();
        let packed = packer.pack(words).expect("whole events");
        assert_eq!((packed.events, packed.payload.len() % 8), (events, 0));
        let mut back = vec![1, 2, 3];
        let mut unpacker = Unpacker::new().unwrap();
        assert_eq!(
            unpacker.unpack(packed.payload, words.len(), &mut back),
            Ok(events)
        );
        assert_eq!(back, words);
        if let Some(less) = words.len().checked_sub(1) {
            let refused = unpacker.unpack(packed.payload, less, &mut back);
            assert_eq!(refused, Err(UnpackError));
        }
    }

    #[test]
    fn packs_any_events() {
        let late = TICK_MASK << TICK_SHIFT;
        check(&[], 0);
        check(&[23], 1);
        // Time goes there and back; one flag, two flags; an unknown kind.
        check(&[late | 1 << 19 | 23, 7, 3 << 19 | 50, 8, 9, late | 1], 3);
        // A wide event with two words behind its tag.
        check(&[2 << 6 | 63, 261, u64::MAX, 0, 23], 2);
    }

    #[test]
    fn leaves_cut_events_alone() {
        let mut packer = Packer::new(1, 0).unwrap();
        assert!(packer.pack(&[23, 63]).is_none());
        assert!(packer.pack(&[1 << 19 | 23]).is_none());
    }

    #[test]
    fn varints_carry_every_difference() {
        for number in [
            0,
            1,
            -1,
            63,
            -64,
            64,
            1 << 37,
            -(1 << 38) + 1,
            (1 << 38) - 1,
        ] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, zigzag(number));
            assert!(bytes.len() <= MAX_VARINT);
            let back = pop_varint(&mut &bytes[..]).map(unzigzag);
            assert_eq!(back, Some(number as u64));
        }
    }
}
