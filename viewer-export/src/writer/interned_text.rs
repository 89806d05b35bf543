//! Maps from texts to values. Constants of this program, such as the names of arguments, are found by their address,
//! which is faster to compare than their contents. Texts of a trace that are requested repeatedly, such as the names of
//! threads, are found in a small cache.

use std::ops::Index;
use std::sync::Arc;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Category;

/// Number of slots for recent words; a power of two, and several times the number of words.
const PLACES: usize = 128;

/// Number of slots in which a word may be. The addresses of constants change with each build, so some words share a
/// slot.
const PROBES: usize = 8;

/// A value for each word. It may have to be created again if more than [`PROBES`] words share a slot, because these
/// displace each other.
pub(crate) struct ByWord<T> {
    places: [(&'static str, T); PLACES],
}

impl<T: Default> ByWord<T> {
    pub(crate) fn new() -> ByWord<T> {
        ByWord { places: std::array::from_fn(|_| ("", T::default())) }
    }

    /// The value for `word`, which must not be empty. `new` creates the value if it is missing.
    #[inline(always)]
    pub(crate) fn get(&mut self, word: &'static str, new: impl FnOnce() -> T) -> &mut T {
        debug_assert!(!word.is_empty());
        let first = word.as_ptr().addr().wrapping_add(word.len()) % PLACES;
        // Texts with the same length and address are equal.
        let place =
            if std::ptr::eq(self.places[first].0, word) { first } else { self.find(first, word, new) };
        &mut self.places[place].1
    }

    /// The slot of a word that is not in its first slot.
    #[inline(never)]
    fn find(&mut self, first: usize, word: &'static str, new: impl FnOnce() -> T) -> usize {
        let places = (0..PROBES).map(|step| (first + step) % PLACES);
        for place in places {
            let there = self.places[place].0;
            if std::ptr::eq(there, word) {
                return place;
            }
            if there.is_empty() {
                self.places[place] = (word, new());
                return place;
            }
        }
        self.places[first] = (word, new());
        first
    }
}

/// Number of slots for recent texts; a power of two.
const RECENT: usize = 64;

/// A value for each text and category. Texts are looked up by address and then compared, which is cheaper than hashing.
pub(crate) struct RecentTexts<T> {
    places: [Option<Recent<T>>; RECENT],
}

struct Recent<T> {
    text: Box<str>,
    category: Category,
    value: T,
}

impl<T> RecentTexts<T> {
    pub(crate) fn new() -> RecentTexts<T> {
        RecentTexts { places: [const { None }; RECENT] }
    }

    /// The index of the value for `text`, valid until the next call. `new` creates the value if it is missing.
    #[inline]
    pub(crate) fn place(&mut self, text: &str, category: Category, new: impl FnOnce() -> T) -> usize {
        let place = text.as_ptr().addr() / 16 % RECENT;
        match &self.places[place] {
            Some(recent) if *recent.text == *text && recent.category == category => {}
            _ => {
                self.places[place] = Some(Recent { text: text.into(), category, value: new() });
            }
        }
        place
    }
}

impl<T> Index<usize> for RecentTexts<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        let recent = self.places[place].as_ref();
        &recent.expect("the place was given").value
    }
}

/// Numbers of texts, a few of which are requested repeatedly. These are looked up by length and then compared, which is
/// cheaper than hashing.
pub(crate) struct TextNumbers {
    numbers: FastMap<Arc<str>, u32>,
    /// By length: the text that was requested last.
    recent: [Option<(Arc<str>, u32)>; RECENT],
}

impl TextNumbers {
    pub(crate) fn new() -> TextNumbers {
        TextNumbers { numbers: FastMap::default(), recent: [const { None }; RECENT] }
    }

    /// The number of `text`; `None` if it has none.
    #[inline]
    pub(crate) fn get(&mut self, text: &str) -> Option<u32> {
        match &self.recent[text.len() % RECENT] {
            Some((known, number)) if **known == *text => Some(*number),
            _ => self.find(text),
        }
    }

    #[inline(never)]
    fn find(&mut self, text: &str) -> Option<u32> {
        let (known, number) = self.numbers.get_key_value(text)?;
        self.recent[text.len() % RECENT] = Some((Arc::clone(known), *number));
        Some(*number)
    }

    /// Sets the number of `text`.
    pub(crate) fn insert(&mut self, text: &str, number: u32) {
        self.numbers.insert(text.into(), number);
    }

    /// How many texts have a number.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_its_own_in_each_category() {
        let all = "ab".repeat(40 * RECENT);
        let mut recent = RecentTexts::new();
        for _ in 0..2 {
            for begin in 0..all.len() - 3 {
                for (len, category) in [(2, Category::Task), (2, Category::Mutex), (3, Category::Mutex)] {
                    let text = &all[begin..][..len];
                    let place = recent.place(text, category, || (text.to_owned(), category));
                    assert_eq!(recent[place], (text.to_owned(), category));
                }
            }
        }
    }

    #[test]
    fn texts_of_one_length_have_their_own_numbers() {
        let mut numbers = TextNumbers::new();
        let texts = ["ab", "ba", "", "abc", "cba"];
        for (text, number) in texts.iter().zip(0..) {
            assert_eq!(numbers.get(text), None);
            numbers.insert(text, number);
        }
        assert_eq!(numbers.len(), texts.len());
        for _ in 0..2 {
            for (text, number) in texts.iter().zip(0..) {
                assert_eq!(numbers.get(text), Some(number));
                assert_eq!(numbers.get(text), Some(number));
            }
        }
    }

    #[test]
    fn each_word_has_its_own_also_where_they_overlap() {
        let all = "abcdefghijklmnopqrstuvwxyz".repeat(40).leak();
        let mut words = ByWord::new();
        for _ in 0..3 {
            for begin in 0..all.len() {
                for end in (begin + 1..all.len()).take(5) {
                    let word = &all[begin..end];
                    assert_eq!(*words.get(word, || word.to_owned()), word);
                }
            }
        }
    }
}
