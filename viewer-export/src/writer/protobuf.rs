//! The wire format of protocol buffers, as far as exporters need it.
//!
//! A message is a sequence of fields, in any order. A field consists of a key (the field's number and its wire type)
//! and a value (<https://protobuf.dev/programming-guides/encoding>):
//!
//! ```text
//! key = number << 3 | wire type      wire type  0 varint   1 eight bytes   2 a length, then that many bytes
//! varint = seven bits per byte, lowest first; the top bit means that another byte follows
//! ```

use crate::writer::decimal::push;
pub(crate) use crate::writer::decimal::{MAX_VARINT, push_varint as varint, room, varint as varint_bytes};

/// Turns `message { FIELD = number, ... }` into a module of constants.
macro_rules! messages {
    ($($(#[$doc:meta])* $message:ident { $($field:ident = $number:literal,)* })*) => {
        $($(#[$doc])* pub(crate) mod $message { $(pub(crate) const $field: u32 = $number;)* })*
    };
}
pub(crate) use messages;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LEN: u32 = 2;

/// Smaller varints take one byte.
pub(crate) const ONE_BYTE: u64 = 0x80;

/// The one-byte key of a numeric field with a number below 16, for constant parts of messages.
pub(crate) const fn uint_key(field: u32) -> u8 {
    short_key(field, VARINT)
}

/// Like [`uint_key`], for a nested message.
pub(crate) const fn front_key(field: u32) -> u8 {
    short_key(field, LEN)
}

const fn short_key(field: u32, wire_type: u32) -> u8 {
    assert!(field < 16);
    (field << 3 | wire_type) as u8
}

#[inline]
fn key(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

/// Appends a field of type `uint64`, `uint32`, `bool` or an enumeration.
#[inline]
pub(crate) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

/// Appends a field of type `int64` or `int32`.
#[inline]
pub(crate) fn int(out: &mut Vec<u8>, field: u32, value: i64) {
    uint(out, field, value as u64);
}

/// Appends a field of type `bytes`, or a message that has been encoded.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    front(out, field, value.len());
    out.extend_from_slice(value);
}

/// Appends a field of type `string`.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    bytes(out, field, value.as_bytes());
}

/// Appends the key and length of a message of `len` bytes.
#[inline]
pub(crate) fn front(out: &mut Vec<u8>, field: u32, len: usize) {
    key(out, field, LEN);
    varint(out, len as u64);
}

/// Appends a message that `write` writes. Its length precedes it, but is known only afterwards. One byte is reserved,
/// which is enough for nearly all messages; the others are moved.
#[inline]
pub(crate) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    key(out, field, LEN);
    let place = out.len();
    out.push(0);
    write(out);
    let len = out.len() - place - 1;
    match u8::try_from(len) {
        Ok(short @ 0..0x80) => out[place] = short,
        _ => {
            let mut prefix = Vec::new();
            varint(&mut prefix, len as u64);
            out.splice(place..=place, prefix);
        }
    }
}

/// Number of bytes that are copied as one block.
pub(crate) const SHORT_BYTES: usize = 16;

/// Encoded fields of up to [`SHORT_BYTES`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    pub(crate) bytes: [u8; SHORT_BYTES],
    pub(crate) len: usize,
}

impl Short {
    /// `None` if the fields are longer.
    pub(crate) fn of(fields: &[u8]) -> Option<Short> {
        let mut bytes = [0; SHORT_BYTES];
        bytes.get_mut(..fields.len())?.copy_from_slice(fields);
        Some(Short { bytes, len: fields.len() })
    }

    /// A field of type `fixed64`.
    #[inline]
    pub(crate) fn fixed64(field: u32, value: u64) -> Short {
        Short::field(field, FIXED64, value, 8)
    }

    /// Like [`uint`], for a number below [`MAX_VARINT`].
    #[inline]
    pub(crate) fn uint(field: u32, value: u64) -> Short {
        let (value, len) = varint_bytes(value);
        Short::field(field, VARINT, value, len)
    }

    /// A field whose value consists of the first `len` bytes of `value`.
    #[inline(always)]
    fn field(field: u32, wire_type: u32, value: u64, len: usize) -> Short {
        let (key, key_bytes) = varint_bytes(u64::from(field << 3 | wire_type));
        let all = u128::from(key) | u128::from(value) << (8 * key_bytes);
        Short { bytes: all.to_le_bytes(), len: key_bytes + len }
    }

    #[inline]
    pub(crate) fn append(self, out: &mut Vec<u8>) {
        push(out, self.bytes, self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// The first three are examples from the format's description.
    #[test]
    fn fields_are_written_as_described() {
        assert_eq!(written(|out| uint(out, 1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|out| text(out, 2, "testing")), *b"\x12\x07testing");
        assert_eq!(written(|out| message(out, 3, |out| uint(out, 1, 150))), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(written(|out| int(out, 1, -2)), *b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        assert_eq!(written(|out| Short::uint(1, 150).append(out)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|out| Short::fixed64(47, 1).append(out)), *b"\xf9\x02\x01\0\0\0\0\0\0\0");
    }

    #[test]
    fn long_messages_have_long_lengths() {
        for (len, prefix) in [(127, &[0x0a, 0x7f][..]), (128, &[0x0a, 0x80, 0x01])] {
            let out = written(|out| message(out, 1, |out| out.resize(out.len() + len, 7)));
            assert_eq!(out[..prefix.len()], *prefix);
            assert_eq!(out[prefix.len()..], vec![7; len]);
        }
    }
}
