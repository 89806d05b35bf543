//! The changes that are replayed: candidates for findings, and general questions.

use crate::model::place::Place;
use crate::what_if::Change;

/// The part of the program that is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The whole program.
    Everything,
    /// A place.
    Place(Place),
    /// Several places; the first gives the change its name.
    Places(Vec<Place>),
    /// Serial code before a region; if it is `None`, after the last region.
    Serial(Option<Place>),
}

/// A change that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) change: Change,
    pub(crate) target: Target,
    /// The change in words: `perfect balance`.
    pub(crate) text: String,
}
