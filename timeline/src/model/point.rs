//! A point: a location and a time.

use crate::model::ids::{LocationId, Ns};

/// A location and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The location.
    pub location: LocationId,
    /// The time.
    pub time: Ns,
}
