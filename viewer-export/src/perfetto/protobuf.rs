//! The wire format of protocol buffers, as far as an exporter needs it.
//!
//! A message is a row of fields, in any order. A field is a key, the field's number and how its value is written, then
//! the value (<https://protobuf.dev/programming-guides/encoding>):
//!
//! ```text
//! key = number << 3 | wire type      wire type  0 varint   1 eight bytes   2 a length, then that many bytes
//! varint = seven bits per byte, the lowest first; the top bit says that another byte follows
//! ```

use crate::digits::{MOST_VARINT, push, push_varint as varint, varint as varint_bytes, varint_len};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LEN: u32 = 2;

#[inline]
fn key(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

/// Appends a field of type `uint64`, `uint32`, `bool` or an enumeration.
#[inline]
pub(super) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

/// Appends a field of type `int64` or `int32`.
#[inline]
pub(super) fn int(out: &mut Vec<u8>, field: u32, value: i64) {
    uint(out, field, value as u64);
}

/// Appends a field of type `fixed64`.
#[inline]
pub(super) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field of type `bytes`, or a message that was written before.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    front(out, field, value.len());
    out.extend_from_slice(value);
}

/// Appends a field of type `string`.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    bytes(out, field, value.as_bytes());
}

/// Appends the front of a message of `len` bytes.
#[inline]
pub(super) fn front(out: &mut Vec<u8>, field: u32, len: usize) {
    key(out, field, LEN);
    varint(out, len as u64);
}

/// Appends a message, which `write` writes. Its length comes first but is known last: nearly all fit one byte, which is
/// kept free; the others are moved.
#[inline]
pub(super) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
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

/// Fields of up to sixteen bytes that are put together in a register and appended at once.
#[derive(Clone, Copy, Default)]
pub(super) struct Short {
    bytes: u128,
    len: usize,
}

impl Short {
    /// The most bytes.
    const BYTES: usize = 16;

    #[inline]
    fn with(self, bytes: u64, len: usize) -> Short {
        Short {
            bytes: self.bytes | u128::from(bytes) << (8 * self.len),
            len: self.len + len,
        }
    }

    /// The largest value of a field.
    pub(super) const MOST: u64 = MOST_VARINT - 1;

    /// Adds a field whose number is below 16, with a value up to [`Short::MOST`].
    #[inline]
    pub(super) fn uint(self, field: u32, value: u64) -> Short {
        let key = u64::from(field << 3 | VARINT);
        self.with(key, 1)
            .with(varint_bytes(value), varint_len(value))
    }

    /// Adds the front of a message of `len` bytes, whose number is below 16.
    #[inline]
    pub(super) fn front(self, field: u32, len: usize) -> Short {
        let key = u64::from(field << 3 | LEN);
        let len = len as u64;
        self.with(key, 1).with(varint_bytes(len), varint_len(len))
    }

    /// Adds fields that were put together apart.
    #[inline]
    pub(super) fn then(self, other: Short) -> Short {
        Short {
            bytes: self.bytes | other.bytes << (8 * self.len),
            len: self.len + other.len,
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn append(self, out: &mut Vec<u8>) {
        debug_assert!(self.len <= Short::BYTES);
        push(out, self.bytes.to_le_bytes(), self.len);
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

    /// The first three are examples of the format's own description.
    #[test]
    fn fields_are_written_as_described() {
        assert_eq!(written(|out| uint(out, 1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|out| text(out, 2, "testing")), *b"\x12\x07testing");
        assert_eq!(
            written(|out| message(out, 3, |out| uint(out, 1, 150))),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
        assert_eq!(
            written(|out| int(out, 1, -2)),
            *b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
        );
        assert_eq!(
            written(|out| fixed64(out, 47, 1)),
            *b"\xf9\x02\x01\0\0\0\0\0\0\0"
        );
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
