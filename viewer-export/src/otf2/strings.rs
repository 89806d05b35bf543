//! The texts of an archive, each once.

use crate::text_cache::TextNumbers;
use otf2_archive::encoding::StringRef;

/// Texts by number; number 0 is the empty one.
pub(super) struct Strings {
    numbers: TextNumbers,
    texts: Vec<String>,
}

impl Strings {
    pub(super) fn new() -> Strings {
        let mut strings = Strings { numbers: TextNumbers::new(), texts: Vec::new() };
        strings.number("");
        strings
    }

    /// The number of `text`.
    pub(super) fn number(&mut self, text: &str) -> StringRef {
        if let Some(number) = self.numbers.get(text) {
            return StringRef(number);
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text, number);
        self.texts.push(text.to_owned());
        StringRef(number)
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}
