//! Reads names of categories, roles and schedules back into `&'static str`, each of which is kept once.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde::de::{Deserialize, Deserializer, Error};

/// A name of a category, role or schedule.
pub(crate) type Word = &'static str;

/// Maximum length of a word in bytes; the longest known word has 14.
const MAX_BYTES: usize = 32;
/// Maximum number of words; about 30 are known. The limit bounds the memory that a crafted file can use.
const MAX_WORDS: usize = 256;

static WORDS: Mutex<BTreeSet<Word>> = Mutex::new(BTreeSet::new());

/// The interned word; `None` if it is too long, or if there are too many words.
fn kept(word: &str) -> Option<Word> {
    let mut words = WORDS.lock().ok()?;
    if let Some(known) = words.get(word) {
        return Some(known);
    }
    if word.len() > MAX_BYTES || words.len() >= MAX_WORDS {
        return None;
    }
    let new: Word = Box::leak(Box::from(word));
    words.insert(new);
    Some(new)
}

pub(crate) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    let word = String::deserialize(deserializer)?;
    kept(&word).ok_or_else(|| D::Error::custom(format!("an unknown word: {word}")))
}

pub(crate) fn set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Word>, D::Error> {
    let words: Vec<String> = Vec::deserialize(deserializer)?;
    let words = words
        .iter()
        .map(|word| kept(word).ok_or_else(|| D::Error::custom(format!("an unknown word: {word}"))));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once_and_long_ones_are_not() {
        let first = kept("dynamic").expect("a word");
        assert!(std::ptr::eq(first, kept("dynamic").expect("a word")));
        assert_eq!(kept(&"x".repeat(MAX_BYTES + 1)), None);
    }
}
