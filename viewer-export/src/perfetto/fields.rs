//! Fields put together in a place of their own, where those of nearly all events fit. To append some there takes no look
//! at a vector's capacity, and to copy them a number of bytes that the compiler knows.

use crate::writer::protobuf as pb;

/// Bytes that fit. With what comes in front of them, they make a message whose length takes one byte.
pub(super) const MAX_BYTES: usize = 96;
/// The length of fields that do not fit.
const TOO_LONG: usize = usize::MAX;

/// Fields of messages, one after the other.
pub(super) struct Fields {
    bytes: [u8; MAX_BYTES],
    /// How many of the bytes are used, or [`TOO_LONG`].
    len: usize,
    /// All, where they do not fit.
    long: Vec<u8>,
}

impl Fields {
    pub(super) const fn new() -> Fields {
        Fields { bytes: [0; MAX_BYTES], len: 0, long: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces all by `first`.
    #[inline(always)]
    pub(super) fn begin(&mut self, first: pb::Short) {
        self.bytes[..first.bytes.len()].copy_from_slice(&first.bytes);
        self.len = first.len;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, fields: pb::Short) {
        match self.room() {
            Some(room) => {
                *room = fields.bytes;
                self.len += fields.len;
            }
            None => self.append(|out| fields.append(out)),
        }
    }

    /// Lets `put` store fields and give their length. Where there is no room for all that it may store, `append` does it.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        put: impl FnOnce(&mut [u8; pb::SHORT_BYTES]) -> usize,
        append: impl FnOnce(&mut Vec<u8>),
    ) {
        match self.room() {
            Some(room) => self.len += put(room),
            None => self.append(append),
        }
    }

    #[inline(always)]
    fn room(&mut self) -> Option<&mut [u8; pb::SHORT_BYTES]> {
        self.bytes.get_mut(self.len..)?.first_chunk_mut()
    }

    /// Lets `append` append fields of any length.
    #[cold]
    pub(super) fn append(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        if let Some(fields) = self.bytes.get(..self.len) {
            self.long.clear();
            self.long.extend_from_slice(fields);
            self.len = TOO_LONG;
        }
        append(&mut self.long);
    }

    /// The bytes that they are the first of, and how many; `None` where they do not fit.
    #[inline(always)]
    pub(super) fn short(&self) -> Option<(&[u8; MAX_BYTES], usize)> {
        (self.len != TOO_LONG).then_some((&self.bytes, self.len))
    }

    /// All that were appended where [`Fields::short`] has none.
    pub(super) fn long(&self) -> &[u8] {
        &self.long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_in_their_order_however_many() {
        let short = |byte: u8, len| pb::Short::of(&vec![byte; len]).unwrap();
        let mut fields = Fields::new();
        for count in [0, 1, 6, 7, 12, 13, 40, 3] {
            fields.begin(short(9, 16));
            let mut expected = [9; 16].to_vec();
            for number in 0..count {
                let (byte, len) = (number as u8, 1 + number % 14);
                if number % 2 == 0 {
                    fields.push(short(byte, len));
                } else {
                    let store = |room: &mut [u8; 16]| {
                        room.fill(byte);
                        len
                    };
                    fields.put(store, |out| out.extend(vec![byte; len]));
                }
                expected.extend(vec![byte; len]);
            }
            let all = match fields.short() {
                Some((bytes, len)) => bytes[..len].to_vec(),
                None => fields.long().to_vec(),
            };
            assert_eq!(all, expected);
            fields.clear();
            assert!(fields.is_empty());
        }
    }
}
