//! The values of counters.

use std::fmt;

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountValue {
    /// A whole number.
    Whole(i64),
    /// A finite number with a fraction, for counters that the program defines.
    Real(f64),
}

impl CountValue {
    /// The nearest whole number.
    pub fn rounded(self) -> i64 {
        match self {
            CountValue::Whole(value) => value,
            CountValue::Real(value) => value.round() as i64,
        }
    }

    /// The number with its fraction; `None` for whole numbers.
    pub fn real(self) -> Option<f64> {
        match self {
            CountValue::Whole(_) => None,
            CountValue::Real(value) => Some(value),
        }
    }
}

impl Default for CountValue {
    fn default() -> CountValue {
        CountValue::Whole(0)
    }
}

impl From<i64> for CountValue {
    fn from(value: i64) -> CountValue {
        CountValue::Whole(value)
    }
}

impl fmt::Display for CountValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountValue::Whole(value) => write!(f, "{value}"),
            // Numbers with many zeros are printed with an exponent, as in JSON.
            CountValue::Real(value) => write!(f, "{value:?}"),
        }
    }
}
