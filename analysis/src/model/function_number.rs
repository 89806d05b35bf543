//! Numbers of sampled functions.

use std::collections::BTreeMap;

/// A function's number in the timeline.
pub(crate) type FunctionNumber = u32;

/// CPU time by function.
pub(crate) type ByFunction = BTreeMap<FunctionNumber, u64>;
