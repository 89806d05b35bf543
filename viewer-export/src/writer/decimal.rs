//! Converts numbers to digits, eight at a time in a register. Exports consist largely of numbers, and storing bytes one
//! by one and then copying them as a block stalls the CPU.

/// The decimal digits of `value`, which must be below 10^8: the first digit in the lowest byte, each as 0 to 9, with
/// leading zeros.
///
/// Divides the number into halves, these into halves, and these again; each division is one multiplication for all
/// parts at once.
#[inline]
const fn decimal(value: u32) -> u64 {
    let (high, low) = ((value / 10_000) as u64, (value % 10_000) as u64);
    let fours = high | low << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The smallest number with more than eight decimal digits.
const TEN_TO_8: u64 = 100_000_000;

/// A constant text of up to `N` bytes, which is copied as one block.
#[derive(Clone, Copy)]
pub(crate) struct ShortText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> ShortText<N> {
    /// `None` if the text is longer.
    pub(crate) fn of(text: &[u8]) -> Option<ShortText<N>> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(ShortText { bytes, len: text.len() })
    }
}

impl<const N: usize> Default for ShortText<N> {
    fn default() -> ShortText<N> {
        ShortText { bytes: [0; N], len: 0 }
    }
}

/// Assembles text at its destination from pieces that are stored as blocks. `N` bytes must be enough for the text, and
/// for the unused bytes of the last piece.
pub(crate) struct Pieces<'o, const N: usize> {
    room: &'o mut [u8; N],
    len: usize,
}

/// Appends the text that `put` assembles.
#[inline(always)]
pub(crate) fn put<const N: usize>(out: &mut Vec<u8>, put: impl FnOnce(&mut Pieces<'_, N>)) {
    let start = out.len();
    let mut pieces = Pieces { room: room(out), len: 0 };
    put(&mut pieces);
    let len = pieces.len;
    out.truncate(start + len);
}

impl<const N: usize> Pieces<'_, N> {
    /// Appends the first `len` of `bytes`.
    #[inline(always)]
    fn push<const M: usize>(&mut self, bytes: &[u8; M], len: usize) {
        self.room[self.len..][..M].copy_from_slice(bytes);
        self.len += len;
    }

    /// Appends a text, which needs room for all of its `N` bytes.
    #[inline(always)]
    pub(crate) fn short<const M: usize>(&mut self, text: &ShortText<M>) {
        self.push(&text.bytes, text.len);
    }

    /// Appends a text.
    #[inline(always)]
    pub(crate) fn text<const M: usize>(&mut self, bytes: &[u8; M]) {
        self.push(bytes, M);
    }

    /// Appends a decimal number of up to 20 bytes; needs room for 4 more.
    #[inline(always)]
    pub(crate) fn decimal(&mut self, value: u64) {
        if value < 10 {
            return self.text(&[b'0' + value as u8]);
        }
        if value >= TEN_TO_8 {
            let (text, len) = long_decimal(value);
            return self.push(&text, len);
        }
        let digits = decimal(value as u32);
        let leading_zeros = (digits.trailing_zeros() / 8).min(7);
        let text = (digits | ZEROS) >> (8 * leading_zeros);
        self.push(&text.to_le_bytes(), 8 - leading_zeros as usize);
    }

    /// Appends nanoseconds as microseconds with exactly three decimals; needs the same room as [`Pieces::decimal`], and
    /// 4 bytes.
    #[inline(always)]
    pub(crate) fn micros(&mut self, ns: u64) {
        self.decimal(ns / 1000);
        self.text(&THOUSANDTHS[(ns % 1000) as usize]);
    }

    /// Appends a hexadecimal number without leading zeros; needs room for 16 bytes.
    #[inline(always)]
    pub(crate) fn hex(&mut self, value: u64) {
        let len = ((64 + 3 - value.leading_zeros()) / 4).max(1);
        if len <= 8 {
            let text = hex(value << (32 - 4 * len));
            return self.push(&text.to_be_bytes(), len as usize);
        }
        let first = value << (64 - 4 * len);
        let (high, low) = (hex(first >> 32), hex(first & 0xffff_ffff));
        let text = u128::from(high) << 64 | u128::from(low);
        self.push(&text.to_be_bytes(), len as usize);
    }
}

/// The digits of a number with more than eight, and their number. Not a method of `Pieces`, whose length would then
/// have to be in memory.
#[inline(never)]
fn long_decimal(value: u64) -> ([u8; 24], usize) {
    let mut text = [0; 24];
    let mut pieces = Pieces { room: &mut text, len: 0 };
    pieces.decimal(value / TEN_TO_8);
    let digits = decimal((value % TEN_TO_8) as u32);
    pieces.text(&(digits | ZEROS).to_le_bytes());
    let len = pieces.len;
    (text, len)
}

/// For each number below 1000, a decimal point and the three digits.
static THOUSANDTHS: [[u8; 4]; 1000] = {
    let mut texts = [[b'.'; 4]; 1000];
    let mut value = 0;
    while value < texts.len() {
        let digits = decimal(value as u32).to_le_bytes();
        let mut place = 1;
        while place < 4 {
            texts[value][place] = b'0' + digits[place + 4];
            place += 1;
        }
        value += 1;
    }
    texts
};

/// The eight hexadecimal digits of a 32-bit number as text, the first in the highest byte.
#[inline]
fn hex(value: u64) -> u64 {
    let halves = (value | value << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    digits + ZEROS + is_letter * u64::from(b'a' - b'0' - 10)
}

/// Appends a number in the encoding of protocol buffers: seven bits per byte, lowest first; the top bit means that
/// another byte follows.
#[inline]
pub(crate) fn push_varint(out: &mut Vec<u8>, value: u64) {
    if value < MAX_VARINT {
        let (bytes, len) = varint(value);
        push(out, bytes.to_le_bytes(), len);
    } else {
        push_long_varint(out, value);
    }
}

/// Smaller numbers take at most eight bytes.
pub(crate) const MAX_VARINT: u64 = 1 << 56;

/// Number of bytes of an encoded number.
#[inline]
fn varint_len(value: u64) -> usize {
    // The number of bits divided by seven and rounded up, for up to 64 bits.
    ((64 - (value | 1).leading_zeros()) as usize * 9 + 64) / 64
}

/// The encoding of a number below [`MAX_VARINT`], first byte lowest, and its number of bytes.
#[inline(always)]
pub(crate) fn varint(value: u64) -> (u64, usize) {
    if value < 0x80 {
        return (value, 1);
    }
    let len = varint_len(value);
    let fours = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let twos = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
    let ones = twos & 0x007f_007f_007f_007f | (twos & 0x3f80_3f80_3f80_3f80) << 1;
    let another_follows = 0x0080_8080_8080_8080 >> (8 * (8 - len));
    (ones | another_follows, len)
}

#[cold]
fn push_long_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the first `len` of `bytes`: copies all of them, because their number is known to the compiler, and truncates
/// the rest.
#[inline]
pub(crate) fn push<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N], len: usize) {
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start + len);
}

/// Appends `N` zeros, which the caller overwrites, and truncates what remains. So bytes are stored at their
/// destination, with a single check of the buffer's capacity.
#[inline]
pub(crate) fn room<const N: usize>(out: &mut Vec<u8>) -> &mut [u8; N] {
    out.extend_from_slice(&[0; N]);
    out.last_chunk_mut().expect("it was appended just now")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(push: fn(&mut Vec<u8>, u64), expected: fn(u64) -> Vec<u8>) {
        let powers = (0..64).map(|bit| 1u64 << bit);
        let tens = (0..20).map(|exponent| 10u64.pow(exponent));
        for near in powers.chain(tens) {
            for value in [near - 1, near, near + 1, near.wrapping_mul(3), u64::MAX - near] {
                let mut out = b"x".to_vec();
                push(&mut out, value);
                assert_eq!(out[1..], expected(value), "{value}");
            }
        }
    }

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        check(|out, value| put::<24>(out, |pieces| pieces.decimal(value)), |value| value.to_string().into());
        check(
            |out, value| put::<28>(out, |pieces| pieces.micros(value)),
            |value| format!("{}.{:03}", value / 1000, value % 1000).into(),
        );
    }

    #[test]
    fn hexadecimals_are_those_of_the_standard_library() {
        check(|out, value| put::<16>(out, |pieces| pieces.hex(value)), |value| format!("{value:x}").into());
    }

    #[test]
    fn varints_are_the_same_in_one_piece() {
        check(push_varint, |value| {
            let mut out = Vec::new();
            push_long_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            out
        });
    }
}
