//! The outermost region that contains a place.

use serde::{Deserialize, Serialize};

/// The outermost regions in which a place was executed: none for serial code, several for a library function that is
/// called from several regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Within<T> {
    #[default]
    Nowhere,
    One(T),
    Several,
}

impl<T: PartialEq> Within<T> {
    /// Adds the regions of another execution; associative and commutative.
    #[inline]
    pub(crate) fn merge(&mut self, other: Within<T>) {
        match (&*self, other) {
            (_, Within::Nowhere) => {}
            (Within::Nowhere, other) => *self = other,
            (Within::One(one), Within::One(other)) if *one == other => {}
            _ => *self = Within::Several,
        }
    }
}

impl<T> Within<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Within<U> {
        match self {
            Within::Nowhere => Within::Nowhere,
            Within::One(one) => Within::One(f(one)),
            Within::Several => Within::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Within;

    #[test]
    fn two_regions_are_several() {
        let mut within = Within::Nowhere;
        for (more, expected) in [
            (Within::Nowhere, Within::Nowhere),
            (Within::One(1), Within::One(1)),
            (Within::Nowhere, Within::One(1)),
            (Within::One(1), Within::One(1)),
            (Within::One(2), Within::Several),
            (Within::One(1), Within::Several),
        ] {
            within.merge(more);
            assert_eq!(within, expected);
        }
    }
}
