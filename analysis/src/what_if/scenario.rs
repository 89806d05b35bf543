//! The changes that are replayed: candidates for findings, and questions that people ask.

use crate::model::place::Place;
use crate::what_if::Change;

/// The thing that a change is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The whole program.
    Everything,
    /// A place.
    Place(Place),
    /// Several places, of which the first gives its name.
    Places(Vec<Place>),
    /// Serial code before a region, or of `None`, after the last.
    Serial(Option<Place>),
}

/// A change that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) change: Change,
    pub(crate) target: Target,
    /// In words: `perfect balance`.
    pub(crate) text: String,
}
