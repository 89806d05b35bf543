//! The texts of an archive, each stored once.

use otf2_archive::encoding::StringRef;

use crate::writer::interned_text::TextNumbers;

/// Texts by number; number 0 is the empty text.
pub(crate) struct Strings {
    numbers: TextNumbers,
    texts: Vec<String>,
}

impl Strings {
    pub(crate) fn new() -> Strings {
        let mut strings = Strings { numbers: TextNumbers::new(), texts: Vec::new() };
        strings.number("");
        strings
    }

    /// The number of `text`.
    pub(crate) fn number(&mut self, text: &str) -> StringRef {
        if let Some(number) = self.numbers.get(text) {
            return StringRef(number);
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text, number);
        self.texts.push(text.to_owned());
        StringRef(number)
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}
