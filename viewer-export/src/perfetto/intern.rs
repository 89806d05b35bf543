//! Interned strings: a sequence of packets tells each once, with a number, and the number afterwards.
//!
//! The numbers are the same in all sequences; which of them a sequence has told is its own affair.

use std::collections::HashMap;

use super::protobuf as pb;
use super::schema::{interned, interned_text, source_location};
use crate::sink::Source;

/// Beyond these bounds, texts that can be anything are written out each time: messages that never come again would fill
/// the memory.
const MOST_TEXTS: usize = 1 << 16;
const LONGEST_TEXT: usize = 256;

/// Numbers of strings, from 1.
#[derive(Default)]
pub(super) struct Texts {
    iids: HashMap<Box<str>, u64>,
}

impl Texts {
    /// The number of `text`, of which there are only so many.
    pub(super) fn iid(&mut self, text: &str) -> u64 {
        match self.iids.get(text) {
            Some(known) => *known,
            None => self.add(text),
        }
    }

    /// The number of `text`, which can be anything; `None` where it is better written out.
    pub(super) fn iid_of_any(&mut self, text: &str) -> Option<u64> {
        match self.iids.get(text) {
            Some(known) => Some(*known),
            None if self.iids.len() >= MOST_TEXTS || text.len() > LONGEST_TEXT => None,
            None => Some(self.add(text)),
        }
    }

    fn add(&mut self, text: &str) -> u64 {
        let iid = self.iids.len() as u64 + 1;
        self.iids.insert(text.into(), iid);
        iid
    }
}

/// Which numbers a sequence has told: one bit each.
#[derive(Default)]
pub(super) struct Told(Vec<u64>);

impl Told {
    /// Whether `iid` is told for the first time. From now on it is not.
    #[inline]
    pub(super) fn is_first(&mut self, iid: u64) -> bool {
        let (word, bit) = ((iid / 64) as usize, 1 << (iid % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_first = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_first
    }
}

/// Appends an entry of `InternedData`.
pub(super) fn tell(out: &mut Vec<u8>, field: u32, iid: u64, text: &str) {
    pb::message(out, field, |out| {
        pb::uint(out, interned_text::IID, iid);
        pb::text(out, interned_text::TEXT, text);
    });
}

/// Appends a source location to `InternedData`.
pub(super) fn tell_source(out: &mut Vec<u8>, iid: u64, source: &Source) {
    pb::message(out, interned::SOURCE_LOCATIONS, |out| {
        pb::uint(out, source_location::IID, iid);
        if let Some((file, line)) = &source.line {
            pb::text(out, source_location::FILE_NAME, file);
            pb::uint(out, source_location::LINE_NUMBER, (*line).into());
        }
        if let Some(function) = &source.function {
            pb::text(out, source_location::FUNCTION_NAME, function);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_told_once() {
        let mut told = Told::default();
        let firsts: Vec<bool> = [1, 64, 1, 65, 64]
            .into_iter()
            .map(|iid| told.is_first(iid))
            .collect();
        assert_eq!(firsts, [true, true, false, true, false]);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let mut texts = Texts::default();
        let long = "x".repeat(LONGEST_TEXT + 1);
        assert_eq!(texts.iid("a"), 1);
        assert_eq!(texts.iid_of_any("b"), Some(2));
        assert_eq!(texts.iid_of_any("a"), Some(1));
        assert_eq!(texts.iid_of_any(&long), None);
        assert_eq!(texts.iid(&long), 3);
    }
}
