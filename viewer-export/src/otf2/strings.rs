//! The texts of an archive, each once.

use omptrace_common::fast_map::FastMap;
use otf2_archive::encoding::StringRef;

/// Texts by number; number 0 is the empty one.
pub(super) struct Strings {
    numbers: FastMap<String, StringRef>,
    texts: Vec<String>,
}

impl Strings {
    pub(super) fn new() -> Strings {
        let mut strings = Strings {
            numbers: FastMap::default(),
            texts: Vec::new(),
        };
        strings.number("");
        strings
    }

    /// The number of `text`.
    pub(super) fn number(&mut self, text: &str) -> StringRef {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = StringRef(self.texts.len() as u32);
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}
