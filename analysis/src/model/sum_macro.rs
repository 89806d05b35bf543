//! Structures of sums, declared row by row: each row gives the name and meaning of a sum, and what an observation adds
//! to it.
//!
//! The structure, its JSON and its merging are generated from the rows. A test compares docs/stats.md with them.

/// Turns rows into a structure of sums.
///
/// ```text
/// NAME of SEEN {
///     "meaning" field "name in JSON" = |seen| what of the observation is added;
/// }
/// ```
///
/// The fields after `then` are computed from the sums when these are complete.
macro_rules! sums {
    (
        $(#[$meta:meta])*
        $name:ident of $seen:ty {
            $($meaning:literal $field:ident $json:literal = |$of:ident| $value:expr;)*
        }
        then {
            $($made:literal $made_field:ident: $kind:ty = |$sums:ident| $made_value:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(#[doc = $meaning] #[serde(rename = $json)] pub $field: u64,)*
            $(#[doc = $made] pub $made_field: $kind,)*
        }

        impl $name {
            /// The name in JSON and the meaning of each sum.
            #[cfg(test)]
            pub(crate) const ROWS: &'static [(&'static str, &'static str)] = &[
                $(($json, $meaning),)*
                $((stringify!($made_field), $made),)*
            ];

            /// Adds an observation.
            pub(crate) fn add(&mut self, seen: &$seen) {
                $(add(&mut self.$field, { let $of = seen; $value });)*
            }

            /// The sums of both; associative and commutative.
            pub(crate) fn and(mut self, other: $name) -> $name {
                $(add(&mut self.$field, other.$field);)*
                self
            }

            /// Computes the derived fields from the sums.
            pub(crate) fn complete(&mut self) {
                $(self.$made_field = { let $sums = &*self; $made_value };)*
            }
        }
    };
}

pub(crate) use sums;
