//! Interned data: each string is written once with a number, which is used from then on.
//!
//! A string is written immediately, in a packet of its own. Events are held back for a while, but in the file, the
//! meaning of a number must precede its use.

use omptrace_timeline::model::{Category, Source};

use super::schema::{NEEDS_INCREMENTAL_STATE, interned, interned_text, packet, source_location, trace};
use crate::writer::interned_text::{ByWord, TextNumbers};
use crate::writer::protobuf as pb;

/// Beyond these limits, arbitrary texts are not interned, because texts that occur only once would fill the memory.
const MAX_TEXTS: usize = 1 << 16;
const MAX_TEXT: usize = 256;

/// Strings of one kind, numbered from 1.
pub(super) struct Texts {
    sequence: u8,
    /// The kind: a field of `InternedData`.
    field: u32,
    iids: TextNumbers,
}

impl Texts {
    pub(super) fn new(sequence: u8, field: u32) -> Texts {
        Texts { sequence, field, iids: TextNumbers::new() }
    }

    /// The number of `text`, which has a limited number of values.
    pub(super) fn iid(&mut self, out: &mut Vec<u8>, text: &str) -> u64 {
        match self.iids.get(text) {
            Some(known) => known.into(),
            None => self.intern(out, text),
        }
    }

    /// The number of `text`, which may be arbitrary; `None` if it should not be interned.
    pub(super) fn iid_of_any(&mut self, out: &mut Vec<u8>, text: &str) -> Option<u64> {
        match self.iids.get(text) {
            Some(known) => Some(known.into()),
            None if self.iids.len() >= MAX_TEXTS || text.len() > MAX_TEXT => None,
            None => Some(self.intern(out, text)),
        }
    }

    fn intern(&mut self, out: &mut Vec<u8>, text: &str) -> u64 {
        let number = self.iids.len() as u32 + 1;
        self.iids.insert(text, number);
        let iid = number.into();
        interned_data(out, self.sequence, |out| {
            pb::message(out, self.field, |out| {
                pb::uint(out, interned_text::IID, iid);
                pb::text(out, interned_text::TEXT, text);
            });
        });
        iid
    }
}

/// The strings of a packet sequence.
pub(super) struct Strings {
    sequence: u8,
    pub(super) names: Texts,
    pub(super) values: Texts,
    argument_names: Words,
    categories: Words,
    colours: Words,
}

/// Strings of one kind that are constants of this program, of which there are few.
struct Words {
    texts: Texts,
    iids: ByWord<u64>,
}

impl Words {
    fn new(sequence: u8, field: u32) -> Words {
        Words { texts: Texts::new(sequence, field), iids: ByWord::new() }
    }

    #[inline(always)]
    fn iid(&mut self, out: &mut Vec<u8>, word: &'static str) -> u64 {
        *self.iids.get(word, || self.texts.iid(out, word))
    }
}

impl Strings {
    pub(super) fn new(sequence: u8) -> Strings {
        Strings {
            sequence,
            names: Texts::new(sequence, interned::EVENT_NAMES),
            values: Texts::new(sequence, interned::DEBUG_ANNOTATION_STRING_VALUES),
            argument_names: Words::new(sequence, interned::DEBUG_ANNOTATION_NAMES),
            categories: Words::new(sequence, interned::EVENT_CATEGORIES),
            colours: Words::new(sequence, interned::CORRELATION_ID_STR),
        }
    }

    /// The number of an argument's name.
    #[inline]
    pub(super) fn argument_name(&mut self, out: &mut Vec<u8>, name: &'static str) -> u64 {
        self.argument_names.iid(out, name)
    }

    /// The number of a category's name.
    pub(super) fn category(&mut self, out: &mut Vec<u8>, category: Category) -> u64 {
        self.categories.iid(out, category.name())
    }

    /// The number of a [`colour`](super::colours).
    pub(super) fn colour(&mut self, out: &mut Vec<u8>, colour: &'static str) -> u64 {
        self.colours.iid(out, colour)
    }

    /// Defines `iid` as the place `source`.
    pub(super) fn write_source(&self, out: &mut Vec<u8>, iid: u64, source: &Source) {
        interned_data(out, self.sequence, |out| {
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
        });
    }
}

fn interned_data(out: &mut Vec<u8>, sequence: u8, content: impl FnOnce(&mut Vec<u8>)) {
    pb::message(out, trace::PACKET, |out| {
        pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, sequence.into());
        pb::uint(out, packet::SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE);
        pb::message(out, packet::INTERNED_DATA, content);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_interned_once() {
        let mut out = Vec::new();
        let mut texts = Texts::new(1, interned::EVENT_NAMES);
        assert_eq!(texts.iid(&mut out, "a"), 1);
        assert_eq!(texts.iid_of_any(&mut out, "b"), Some(2));
        let interned = out.len();
        assert_eq!(texts.iid(&mut out, "b"), 2);
        assert_eq!(texts.iid_of_any(&mut out, "a"), Some(1));
        assert_eq!(out.len(), interned);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let mut out = Vec::new();
        let mut texts = Texts::new(1, interned::EVENT_NAMES);
        let long = "x".repeat(MAX_TEXT + 1);
        assert_eq!(texts.iid_of_any(&mut out, &long), None);
        assert!(out.is_empty());
        assert_eq!(texts.iid(&mut out, &long), 1);
    }
}
