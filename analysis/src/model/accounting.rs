//! Thread time by cause: each nanosecond has exactly one cause.

use std::ops::{Index, IndexMut};

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::model::cause::Cause;

/// Thread-nanoseconds by [`Cause`]. In JSON: `<cause>_ns` for each cause, and their sum `total_ns`. [Rare
/// causes](Cause::is_rare) are left out if they have no time, as in most traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    ns: [u64; Cause::COUNT],
}

impl Accounting {
    /// The sum over all causes; saturates if times are invalid.
    pub fn total(&self) -> u64 {
        self.ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The sum over all causes except useful work.
    pub fn lost(&self) -> u64 {
        self.total().saturating_sub(self[Cause::Useful])
    }

    /// Adds time to a cause.
    pub fn add(&mut self, cause: Cause, ns: u64) {
        let sum = &mut self.ns[cause as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Adds another accounting; associative and commutative.
    pub fn merge(&mut self, other: &Accounting) {
        for (cause, ns) in other.iter() {
            self.add(cause, ns);
        }
    }

    /// The causes and their times, in the order of display.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.iter().map(|cause| (*cause, self[*cause]))
    }

    /// The share of a cause, 0 to 1; `None` if the total is 0.
    pub fn share(&self, cause: Cause) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self[cause] as f64 / total as f64)
    }
}

impl Index<Cause> for Accounting {
    type Output = u64;
    fn index(&self, cause: Cause) -> &u64 {
        &self.ns[cause as usize]
    }
}

impl IndexMut<Cause> for Accounting {
    fn index_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.ns[cause as usize]
    }
}

impl Serialize for Accounting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (cause, ns) in self.iter().filter(|(cause, ns)| !cause.is_rare() || *ns > 0) {
            map.serialize_entry(&format!("{}_ns", cause.name()), &ns)?;
        }
        map.serialize_entry("total_ns", &self.total())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Accounting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Accounting, D::Error> {
        struct Sums;
        impl<'de> Visitor<'de> for Sums {
            type Value = Accounting;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("nanoseconds by cause")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Accounting, A::Error> {
                let (mut sums, mut total) = (Accounting::default(), None);
                while let Some((key, ns)) = map.next_entry::<String, u64>()? {
                    if key == "total_ns" {
                        total = Some(ns);
                        continue;
                    }
                    let is_it = |cause: &&Cause| key.strip_suffix("_ns") == Some(cause.name());
                    // A newer version may know more causes. Then the total does not match, which is an error below.
                    if let Some(cause) = Cause::ALL.iter().find(is_it) {
                        sums.add(*cause, ns);
                    }
                }
                match total {
                    Some(total) if total != sums.total() => {
                        Err(A::Error::custom("the times of all causes do not add up to total_ns"))
                    }
                    _ => Ok(sums),
                }
            }
        }
        deserializer.deserialize_map(Sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_and_holds_the_sum() {
        let mut sums = Accounting::default();
        sums.add(Cause::Useful, 5);
        sums.add(Cause::Lock, 7);
        let json = serde_json::to_value(sums).expect("JSON");
        assert_eq!((&json["lock_ns"], &json["total_ns"]), (&7.into(), &12.into()));
        assert_eq!(serde_json::from_value::<Accounting>(json).expect("sums"), sums);
    }

    #[test]
    fn sums_that_do_not_add_up_are_refused() {
        let json = serde_json::json!({ "useful_ns": 5, "total_ns": 6 });
        assert!(serde_json::from_value::<Accounting>(json).is_err());
    }
}
