//! Sums by place and cause. Places are numbered consecutively, so sums are stored in vectors indexed by place number.

use crate::model::cause::Cause;
use crate::model::place_id::{PlaceId, SERIAL};

/// Values indexed by consecutive numbers from 0 on.
#[derive(Clone, Debug)]
pub(crate) struct Dense<T>(Vec<Option<T>>);

impl<T> Default for Dense<T> {
    fn default() -> Self {
        Dense(Vec::new())
    }
}

impl<T: Default> Dense<T> {
    /// The value with this number, which is created if it does not exist.
    #[inline]
    pub(crate) fn at(&mut self, number: usize) -> &mut T {
        if number >= self.0.len() {
            self.grow(number);
        }
        self.0[number].get_or_insert_default()
    }

    #[cold]
    fn grow(&mut self, number: usize) {
        self.0.resize_with(number + 1, || None);
    }

    fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number)?.as_ref()
    }

    /// Adds the values of `more`: `add` combines those with the same number.
    pub(crate) fn append(&mut self, more: Dense<T>, mut add: impl FnMut(&mut T, T)) {
        for (number, thing) in more.into_things() {
            add(self.at(number), thing);
        }
    }

    /// See [`Dense::iter`].
    fn into_things(self) -> impl Iterator<Item = (usize, T)> {
        let all = self.0.into_iter().enumerate();
        all.filter_map(|(number, thing)| Some((number, thing?)))
    }

    /// The existing values, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(number, thing)| Some((number, thing.as_ref()?)))
    }
}

/// Values by place.
#[derive(Clone, Debug)]
pub(crate) struct ByPlace<T> {
    regions: Dense<T>,
    serial: Dense<T>,
}

impl<T> Default for ByPlace<T> {
    fn default() -> Self {
        ByPlace { regions: Dense::default(), serial: Dense::default() }
    }
}

impl<T: Default> ByPlace<T> {
    /// The value of this place, which is created if it does not exist.
    #[inline]
    pub(crate) fn at(&mut self, place: PlaceId) -> &mut T {
        match place.checked_sub(SERIAL) {
            Some(number) => self.serial.at(number as usize),
            None => self.regions.at(place as usize),
        }
    }

    /// Adds the values of `more`: `known` maps their places to places here, and `add` combines values.
    pub(crate) fn append(
        &mut self,
        more: ByPlace<T>,
        known: impl Fn(PlaceId) -> PlaceId,
        mut add: impl FnMut(&mut T, T),
    ) {
        for (number, thing) in more.regions.into_things() {
            add(self.at(known(number as PlaceId)), thing);
        }
        for (number, thing) in more.serial.into_things() {
            add(self.at(known(SERIAL + number as PlaceId)), thing);
        }
    }

    pub(crate) fn get(&self, place: PlaceId) -> Option<&T> {
        match place.checked_sub(SERIAL) {
            Some(number) => self.serial.get(number as usize),
            None => self.regions.get(place as usize),
        }
    }

    /// The existing values, in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PlaceId, &T)> {
        let regions = self.regions.iter();
        let regions = regions.map(|(number, thing)| (number as PlaceId, thing));
        let serial = self.serial.iter();
        regions.chain(serial.map(|(number, thing)| (SERIAL + number as PlaceId, thing)))
    }
}

/// Values by cause and place.
#[derive(Clone, Debug)]
pub(crate) struct ByCause<T>([ByPlace<T>; Cause::COUNT]);

impl<T> Default for ByCause<T> {
    fn default() -> Self {
        ByCause(std::array::from_fn(|_| ByPlace::default()))
    }
}

impl<T: Default> ByCause<T> {
    /// The value of this cause and place, which is created if it does not exist.
    #[inline]
    pub(crate) fn at(&mut self, cause: Cause, place: PlaceId) -> &mut T {
        self.0[cause as usize].at(place)
    }

    /// See [`ByPlace::append`].
    pub(crate) fn append(
        &mut self,
        more: ByCause<T>,
        known: impl Fn(PlaceId) -> PlaceId,
        mut add: impl FnMut(&mut T, T),
    ) {
        for (own, more) in self.0.iter_mut().zip(more.0) {
            own.append(more, &known, &mut add);
        }
    }

    /// The existing values of a cause, in the order of their places.
    pub(crate) fn of(&self, cause: Cause) -> impl Iterator<Item = (PlaceId, &T)> {
        self.0[cause as usize].iter()
    }

    /// The existing values, in the order of causes and places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cause, PlaceId, &T)> {
        let causes = Cause::ALL.iter();
        causes.flat_map(|cause| self.of(*cause).map(|(place, thing)| (*cause, place, thing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_the_order_of_causes_and_places() {
        let mut sums: ByCause<u64> = ByCause::default();
        let added = [
            (Cause::Lock, SERIAL + 1, 1),
            (Cause::Lock, 7, 2),
            (Cause::Fork, SERIAL, 0),
            (Cause::Lock, 7, 3),
        ];
        for (cause, place, ns) in added {
            *sums.at(cause, place) += ns;
        }
        let all: Vec<_> = sums.iter().map(|(cause, place, ns)| (cause, place, *ns)).collect();
        let expected = [(Cause::Fork, SERIAL, 0), (Cause::Lock, 7, 5), (Cause::Lock, SERIAL + 1, 1)];
        assert_eq!(all, expected);
        assert_eq!(sums.0[Cause::Lock as usize].get(6), None);
    }
}
