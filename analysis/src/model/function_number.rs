//! Functions of samples, by number.

use std::collections::BTreeMap;

/// A function, by its number in the timeline.
pub(crate) type FunctionNumber = u32;

/// CPU time by function.
pub(crate) type ByFunction = BTreeMap<FunctionNumber, u64>;
