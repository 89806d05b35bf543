//! What a rank has posted and what is not matched yet.

use std::ops::Index;

/// A list of what a rank has posted. An element keeps its place when others are removed.
#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    /// Those that are left of the first `removed_until`, with their places, in order.
    kept: Vec<(u32, T)>,
    removed_until: usize,
    new: Vec<T>,
}

impl<T> Default for InFlight<T> {
    fn default() -> InFlight<T> {
        InFlight { kept: Vec::new(), removed_until: 0, new: Vec::new() }
    }
}

impl<T> InFlight<T> {
    /// Adds an element and returns its place.
    pub(super) fn push(&mut self, it: T) -> usize {
        self.new.push(it);
        self.len() - 1
    }

    /// The number of elements that were added, also if they were removed.
    pub(super) fn len(&self) -> usize {
        self.removed_until + self.new.len()
    }

    /// The element of a place; `None` if it was removed.
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(self.removed_until) {
            Some(place) => self.new.get(place),
            None => self.kept_at(place).map(|at| &self.kept[at].1),
        }
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match place.checked_sub(self.removed_until) {
            Some(place) => self.new.get_mut(place),
            None => self.kept_at(place).map(|at| &mut self.kept[at].1),
        }
    }

    fn kept_at(&self, place: usize) -> Option<usize> {
        self.kept.binary_search_by_key(&place, |(place, _)| *place as usize).ok()
    }

    /// The elements with their places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let new = (self.removed_until as u32..).zip(&self.new);
        self.kept.iter().map(|(place, it)| (*place, it)).chain(new)
    }

    /// The elements in order, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.kept.iter_mut().map(|(_, it)| it).chain(&mut self.new)
    }

    /// Removes all elements but those to keep. `removed` gets the others.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool, mut removed: impl FnMut(&T)) {
        let mut keeps = |it: &T| {
            let is_kept = keep(it);
            if !is_kept {
                removed(it);
            }
            is_kept
        };
        self.kept.retain(|(_, it)| keeps(it));
        let first = self.removed_until;
        self.removed_until += self.new.len();
        let new = (first as u32..).zip(self.new.drain(..));
        self.kept.extend(new.filter(|(_, it)| keeps(it)));
    }
}

impl<T> Index<usize> for InFlight<T> {
    type Output = T;

    /// The element of a place, which must not have been removed.
    fn index(&self, place: usize) -> &T {
        self.get(place).expect("an element that is not matched")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_places() {
        let mut all = InFlight::default();
        for number in 0..5 {
            assert_eq!(all.push(number), number as usize);
        }
        let mut removed = Vec::new();
        all.retain(|number| number % 2 == 1, |number| removed.push(*number));
        assert_eq!(removed, [0, 2, 4]);
        assert_eq!((all.push(5), all.push(6), all.len()), (5, 6, 7));
        all.retain(|number| *number != 3, |_| {});
        assert_eq!(all.push(7), 7);
        let places: Vec<(u32, i32)> = all.iter().map(|(place, number)| (place, *number)).collect();
        assert_eq!(places, [(1, 1), (5, 5), (6, 6), (7, 7)]);
        assert_eq!((all.get(3), all.get(5), all.get(8), all[7]), (None, Some(&5), None, 7));
        assert_eq!(all.get_mut(1), Some(&mut 1));
    }
}
