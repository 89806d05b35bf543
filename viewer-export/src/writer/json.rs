//! The parts of JSON that are written by hand into a byte buffer, because exports contain millions of them.

use omptrace_symbols::printable::{is_printable, printable};
use omptrace_timeline::model::CountValue;

use crate::writer::decimal::put;

/// Appends the value of a counter.
pub(crate) fn count(out: &mut Vec<u8>, value: CountValue) {
    match value {
        CountValue::Whole(value) => int(out, value),
        // The number is finite, and printed as in JSON.
        real @ CountValue::Real(_) => out.extend_from_slice(real.to_string().as_bytes()),
    }
}

/// Appends a decimal number.
#[inline]
pub(crate) fn int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    uint(out, value.unsigned_abs());
}

/// Appends a decimal number.
#[inline]
pub(crate) fn uint(out: &mut Vec<u8>, value: impl Into<u64>) {
    put::<24>(out, |pieces| pieces.decimal(value.into()));
}

/// Appends `0x` and a hexadecimal number without leading zeros.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, value: u64) {
    put::<24>(out, |pieces| {
        pieces.text(b"0x");
        pieces.hex(value);
    });
}

/// Appends a hexadecimal number as a string, because viewers store numbers as doubles, which have 53 bits.
#[inline]
pub(crate) fn hex_string(out: &mut Vec<u8>, value: u64) {
    put::<24>(out, |pieces| {
        pieces.text(b"\"0x");
        pieces.hex(value);
        pieces.text(b"\"");
    });
}

/// Appends a string in quotes, as raw UTF-8 except for characters that JSON forbids. Perfetto rejects a file that
/// contains an escaped surrogate pair, so non-ASCII characters are never escaped.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// Appends a string in quotes, with unprintable characters as escapes.
pub(crate) fn printable_string(out: &mut Vec<u8>, text: &str) {
    if is_printable(text) {
        return string(out, text);
    }
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    out.push(b'"');
    out.extend_from_slice(printable(&quoted).as_bytes());
    out.push(b'"');
}

/// Appends the inside of a string.
pub(crate) fn escape(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f);
    if text.bytes().all(is_plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

/// Appends nanoseconds as microseconds with exactly three decimals.
#[inline]
pub(crate) fn micros(out: &mut Vec<u8>, ns: u64) {
    put::<28>(out, |pieces| pieces.micros(ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(written(|out| micros(out, 1_234_567)), "1234.567");
        assert_eq!(written(|out| micros(out, 5)), "0.005");
        assert_eq!(written(|out| hex(out, 0)), "0x0");
        assert_eq!(written(|out| hex(out, u64::MAX)), "0xffffffffffffffff");
        assert_eq!(written(|out| hex(out, 0x10)), "0x10");
    }

    #[test]
    fn strings_escape_only_what_json_forbids() {
        assert_eq!(written(|out| string(out, "a\"b\\c\u{1}\n😀")), "\"a\\\"b\\\\c\\u0001\\n😀\"");
    }
}
