//! Hash maps for ids, addresses and names: one multiplication per eight bytes instead of SipHash. No output depends on
//! the iteration order of these maps.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map from ids, addresses or names.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// Number of slots for recently used entries of a [`RecentMap`]; a power of two.
const PLACES: usize = 64;

/// A map from which the same few entries are requested repeatedly. A recently used entry is found in a single slot,
/// which takes a fifth of the instructions of a lookup. Keys that share a slot displace each other there.
#[derive(Clone, Debug)]
pub struct RecentMap<K, V> {
    all: FastMap<K, V>,
    recent: [Option<(K, V)>; PLACES],
}

impl<K: Copy + Eq + Hash, V: Copy> RecentMap<K, V> {
    /// The value of `key`.
    #[inline(always)]
    pub fn get(&mut self, key: K) -> Option<V> {
        match self.recent[place(key)] {
            Some((known, value)) if known == key => Some(value),
            _ => self.find(key),
        }
    }

    #[inline(never)]
    fn find(&mut self, key: K) -> Option<V> {
        let value = *self.all.get(&key)?;
        self.recent[place(key)] = Some((key, value));
        Some(value)
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: K, value: V) {
        self.all.insert(key, value);
        self.recent[place(key)] = Some((key, value));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.all.clear();
        self.recent.fill(None);
    }
}

impl<K: Copy, V: Copy> Default for RecentMap<K, V> {
    fn default() -> RecentMap<K, V> {
        RecentMap { all: FastMap::default(), recent: [None; PLACES] }
    }
}

#[inline(always)]
fn place(key: impl Hash) -> usize {
    let mut hasher = Fold::default();
    key.hash(&mut hasher);
    hasher.finish() as usize % PLACES
}

/// Multiplies each word into the state, and folds the halves of the product together.
#[derive(Debug, Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        // Assembled in a register: storing bytes and then reading them as one word stalls the CPU.
        let last = rest.iter().rev();
        let last = last.fold(0, |word, byte| word << 8 | u64::from(*byte));
        // Includes the length, because a name may be the prefix of another.
        self.write_u64(last ^ (bytes.len() as u64) << 56);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_value_of_each_key_is_found_however_many_share_a_place() {
        let mut map = RecentMap::default();
        for round in 0..3 {
            for key in 0..10 * PLACES as u64 {
                assert_eq!(map.get(key), (round > 0).then(|| key + round - 1));
                map.insert(key, key + round);
                assert_eq!(map.get(key), Some(key + round));
            }
        }
        map.clear();
        assert_eq!(map.get(1), None);
    }
}
