//! Hash maps for ids, addresses and names: one multiplication per eight bytes instead of SipHash. Nothing iterates over
//! these maps where order would show.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids, addresses or names.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// Multiplies each word into the state and folds the product's halves together.
#[derive(Default)]
pub(crate) struct Fold(u64);

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
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // With the length, for a name may be another's beginning.
        self.write_u64(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
