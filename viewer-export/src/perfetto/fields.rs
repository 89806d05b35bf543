//! A buffer of fixed size for the fields of an event, which is large enough for nearly all events. Appending needs no
//! check of a vector's capacity, and the number of bytes to copy is known to the compiler.

use crate::writer::protobuf as pb;

/// Capacity in bytes. Including the bytes in front, such a message is so short that its length takes one byte.
pub(super) const MAX_BYTES: usize = 96;
/// Marks fields that do not fit.
const TOO_LONG: usize = usize::MAX;

/// Consecutive fields of messages.
pub(super) struct Fields {
    bytes: [u8; MAX_BYTES],
    /// Number of bytes used, or [`TOO_LONG`].
    len: usize,
    /// All fields, if they do not fit.
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

    /// Replaces the contents by `first`.
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

    /// Lets `put` store fields and return their length. If there may not be enough room, `append` is used instead.
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

    /// The buffer and the number of bytes used; `None` if the fields do not fit.
    #[inline(always)]
    pub(super) fn short(&self) -> Option<(&[u8; MAX_BYTES], usize)> {
        (self.len != TOO_LONG).then_some((&self.bytes, self.len))
    }

    /// All fields, if [`Fields::short`] returns `None`.
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
