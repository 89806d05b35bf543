//! Facts that are reported before the event that they are about.

/// Facts about the event that comes next, of which there are mostly none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Upcoming<T> {
    /// Something is known.
    is_set: bool,
    facts: T,
}

impl<T: Default> Upcoming<T> {
    /// The facts, to be changed.
    pub(crate) fn set(&mut self) -> &mut T {
        self.is_set = true;
        &mut self.facts
    }

    /// Takes the facts.
    #[inline]
    pub(crate) fn take(&mut self) -> T {
        match self.is_set {
            true => std::mem::take(self).facts,
            false => T::default(),
        }
    }
}
