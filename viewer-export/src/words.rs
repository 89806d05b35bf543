//! What belongs to words that this program has as constants, as the names of arguments: found by where they lie in memory,
//! which is told sooner than what they say.

/// Places for the words that were met last; a power of two, several times what there are.
const PLACES: usize = 128;

/// Something for each word. It may be asked for anew: words that share a place displace each other.
pub(crate) struct ByWord<T> {
    places: [(&'static str, T); PLACES],
}

impl<T: Default> ByWord<T> {
    pub(crate) fn new() -> ByWord<T> {
        ByWord {
            places: std::array::from_fn(|_| ("", T::default())),
        }
    }

    /// What belongs to `word`, which is not empty; `new` gives it where it is not at hand.
    #[inline(always)]
    pub(crate) fn get(&mut self, word: &'static str, new: impl FnOnce() -> T) -> &mut T {
        debug_assert!(!word.is_empty());
        let place = &mut self.places[word.as_ptr().addr().wrapping_add(word.len()) % PLACES];
        // Texts of one length at one address are equal.
        if !std::ptr::eq(place.0, word) {
            *place = (word, new());
        }
        &mut place.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
