//! Frequencies of small numbers.

use serde::{Deserialize, Serialize};

/// Counts by number, from 0 on. They merge exactly, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts(pub(crate) Vec<u64>);

impl Counts {
    /// Adds `more` occurrences of this number.
    pub(crate) fn add(&mut self, number: usize, more: u64) {
        if self.0.len() <= number {
            self.0.resize(number + 1, 0);
        }
        self.0[number] += more;
    }

    /// Adds other counts; associative and commutative.
    pub(crate) fn merge(&mut self, other: &Counts) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }
}
