//! Numbers that the user sets.

use std::env;

/// The number that the user sets in a variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}")))
}
