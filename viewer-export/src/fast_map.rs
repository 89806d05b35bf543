//! Hash maps for ids and addresses: one multiplication per key instead of SipHash. Nothing iterates over these maps where order would show.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids or addresses.
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

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
