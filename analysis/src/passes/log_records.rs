//! Records of a log in memory and in a temporary file.
//!
//! | bytes of a record | what |
//! | --- | --- |
//! | 2 | kind in bits 0 to 4; bit 5: another location; in three bits each, how many bytes the next three fields take, minus 1 |
//! | 0 or 2 | the location, if it is not that of the record before |
//! | 1 to 8 | nanoseconds since the record before |
//! | 1 to 8 each | up to two numbers |
//! | 2 to 9 | a third number, after the number of its bytes, minus 1 |
//!
//! Memory must not grow with the number of events, so a full buffer is moved to a file that has no name.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use omptrace_timeline::model::{LocationId, Ns, Point};

/// Maximum number of bytes in the file.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// Number of bytes after which the buffer is moved to the file.
const BUFFER: usize = 1 << 19;
/// Upper bound of the bytes of a record, including those that are written behind its end.
const MAX_RECORD: usize = 64;
/// Maximum number of kinds of records.
pub(super) const KINDS: usize = 1 << 5;

const IS_ELSEWHERE: u64 = 1 << 5;
/// The first bits of the lengths of the time and of two numbers.
const LENGTHS: [u32; 3] = [6, 9, 12];

/// Records that were written.
#[derive(Default)]
pub(super) struct Records {
    /// The newest bytes, up to `len`.
    bytes: Vec<u8>,
    len: usize,
    /// The bytes before.
    file: Option<File>,
    bytes_in_file: u64,
    last: Last,
    /// Something does not fit, so the records are useless.
    is_full: bool,
}

/// The location and time of the last record.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    location: u32,
    time: Ns,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("bytes_in_file", &self.bytes_in_file).finish_non_exhaustive()
    }
}

/// The number of bytes that a number takes, minus 1.
#[inline(always)]
fn length(number: u64) -> u64 {
    7 - u64::from((number | 1).leading_zeros() / 8)
}

/// The largest index at which a field of a record begins.
const LAST_FIELD: usize = 31;

/// Puts the first `length` + 1 bytes of a number at `end`; returns their end.
#[inline(always)]
fn put(room: &mut [u8; MAX_RECORD], end: usize, number: u64, length: u64) -> usize {
    // The mask changes nothing, but then the compiler knows that there is room.
    let end = end & LAST_FIELD;
    room[end..end + 8].copy_from_slice(&number.to_le_bytes());
    end + length as usize + 1
}

/// The number in `length` + 1 bytes at `at`, which is moved behind them.
#[inline(always)]
fn take(record: &[u8; MAX_RECORD], at: &mut usize, length: u64) -> u64 {
    let begin = *at & LAST_FIELD;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[begin..begin + 8]);
    *at = begin + length as usize + 1;
    u64::from_le_bytes(bytes) & u64::MAX >> (56 - 8 * length)
}

impl Records {
    /// Whether all records are there.
    pub(super) fn are_complete(&self) -> bool {
        !self.is_full
    }

    /// Adds a record with up to three numbers.
    #[inline(always)]
    pub(super) fn push<const N: usize>(&mut self, kind: u64, at: Point, numbers: [u64; N]) {
        if self.bytes.len() < self.len + MAX_RECORD {
            self.make_room();
        }
        // There is always room, see above.
        let Some(room) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) else {
            return;
        };
        let ns = at.time.wrapping_sub(self.last.time).cast_unsigned();
        let mut head = kind | length(ns) << LENGTHS[0];
        for (number, bit) in numbers.iter().zip(&LENGTHS[1..]) {
            head |= length(*number) << bit;
        }
        let mut end = 2;
        if at.location.0 != self.last.location {
            head |= IS_ELSEWHERE;
            end = put(room, end, at.location.0.into(), 1);
            self.is_full |= at.location.0 > u16::MAX.into();
        }
        room[..2].copy_from_slice(&(head as u16).to_le_bytes());
        self.last = Last { location: at.location.0, time: at.time };
        end = put(room, end, ns, length(ns));
        for (index, number) in numbers.iter().enumerate() {
            if index == 2 {
                end = put(room, end, length(*number), 0);
            }
            end = put(room, end, *number, length(*number));
        }
        self.len += end;
    }

    /// Adds a record without location and time.
    pub(super) fn push_mark(&mut self, kind: u64) {
        let at = Point { location: LocationId(self.last.location), time: self.last.time };
        self.push(kind, at, []);
    }

    /// Moves the bytes from memory to the file.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        self.bytes.resize(BUFFER, 0);
        if self.len == 0 {
            return;
        }
        if !self.is_full {
            let is_too_long = self.bytes_in_file + self.len as u64 > MAX_BYTES;
            self.is_full = is_too_long || self.append().is_err();
        }
        self.len = 0;
    }

    fn append(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(&self.bytes[..self.len])?;
        self.bytes_in_file += self.len as u64;
        Ok(())
    }

    /// Reads the records from the start.
    pub(super) fn read(&self) -> RecordReader<'_> {
        RecordReader {
            records: self,
            read: 0,
            bytes: vec![0; BUFFER + MAX_RECORD],
            at: 0,
            end: 0,
            last: Last::default(),
            error: None,
        }
    }
}

/// Reads records in order.
pub(super) struct RecordReader<'r> {
    records: &'r Records,
    /// Number of bytes that have been in the buffer.
    read: u64,
    /// [`MAX_RECORD`] bytes more than are read at once.
    bytes: Vec<u8>,
    /// What was not read yet lies between these indexes.
    at: usize,
    end: usize,
    last: Last,
    error: Option<io::Error>,
}

impl RecordReader<'_> {
    /// The next record's kind, location and time, and its numbers: as many as the kind has, and zeros after them.
    #[inline(always)]
    pub(super) fn next(&mut self, numbers: &[usize; KINDS]) -> Option<(u64, Point, [u64; 3])> {
        if self.end.saturating_sub(self.at) < MAX_RECORD {
            self.refill();
            if self.at >= self.end {
                return None;
            }
        }
        let record = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk)?;
        let at = &mut 0;
        let head = take(record, at, 1);
        let kind = head & (KINDS as u64 - 1);
        if head & IS_ELSEWHERE != 0 {
            self.last.location = take(record, at, 1) as u32;
        }
        let ns = take(record, at, head >> LENGTHS[0] & 7);
        self.last.time = self.last.time.wrapping_add(ns.cast_signed());
        let count = numbers[kind as usize];
        let mut all = [0; 3];
        if count > 0 {
            all[0] = take(record, at, head >> LENGTHS[1] & 7);
        }
        if count > 1 {
            all[1] = take(record, at, head >> LENGTHS[2] & 7);
        }
        if count > 2 {
            let length = take(record, at, 0) & 7;
            all[2] = take(record, at, length);
        }
        self.at += *at;
        let at = Point { location: LocationId(self.last.location), time: self.last.time };
        Some((kind, at, all))
    }

    /// Whether all records were read.
    ///
    /// # Errors
    /// The file could not be read.
    pub(super) fn end(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// Moves what is left to the front of the buffer, and reads more behind it.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        let left = self.end.saturating_sub(self.at);
        self.bytes.copy_within(self.end - left..self.end, 0);
        (self.at, self.end) = (0, left);
        let records = self.records;
        let room = BUFFER - left;
        let in_file = records.bytes_in_file.saturating_sub(self.read).min(room as u64) as usize;
        let more = &mut self.bytes[left..];
        let count = match &records.file {
            Some(file) if in_file > 0 => match file.read_exact_at(&mut more[..in_file], self.read) {
                Ok(()) => in_file,
                Err(error) => {
                    self.error = Some(error);
                    0
                }
            },
            _ => {
                let done = self.read.saturating_sub(records.bytes_in_file) as usize;
                let rest = records.bytes[..records.len].get(done..).unwrap_or_default();
                let count = rest.len().min(room);
                more[..count].copy_from_slice(&rest[..count]);
                count
            }
        };
        self.read += count as u64;
        self.end += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [usize; KINDS] = {
        let mut numbers = [0; KINDS];
        (numbers[1], numbers[2], numbers[3]) = (1, 2, 3);
        numbers
    };

    #[test]
    fn records_come_back_from_file_and_memory() {
        let mut records = Records::default();
        let mut expected = Vec::new();
        let mut state = 1_u64;
        let mut random = |bits: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> (64 - state % bits.max(1) - 1)
        };
        for number in 0..200_000_u64 {
            let at = Point {
                location: LocationId(random(16) as u32 >> (number % 3)),
                time: random(64).cast_signed() >> (number % 60),
            };
            let [a, b, c] = [random(64), random(64), random(64)];
            let all = match number % 4 {
                0 => [0; 3],
                1 => [a, 0, 0],
                2 => [a, b, 0],
                _ => [a, b, c],
            };
            match number % 4 {
                0 => records.push(0, at, []),
                1 => records.push(1, at, [a]),
                2 => records.push(2, at, [a, b]),
                _ => records.push(3, at, [a, b, c]),
            }
            expected.push((number % 4, at, all));
            // Memory is bounded, whatever the records are.
            assert!(records.bytes.len() <= BUFFER);
        }
        assert!(records.are_complete() && records.bytes_in_file > 2 * BUFFER as u64 && records.len > 0);
        let mut reader = records.read();
        for record in expected {
            assert_eq!(reader.next(&NUMBERS), Some(record));
        }
        assert_eq!(reader.next(&NUMBERS), None);
        reader.end().expect("the file can be read");
    }

    #[test]
    fn a_location_that_does_not_fit_makes_the_records_useless() {
        let mut records = Records::default();
        let at = |location| Point { location: LocationId(location), time: 5 };
        records.push(0, at(u16::MAX.into()), []);
        assert!(records.are_complete());
        records.push(0, at(1 << 16), []);
        assert!(!records.are_complete());
    }
}
