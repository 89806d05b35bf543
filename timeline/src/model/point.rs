//! Where and when something is.

use crate::model::ids::{LocationId, Ns};

/// A place and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The place.
    pub location: LocationId,
    /// The time.
    pub time: Ns,
}
