//! Numbers as tables and words: those of `answers`, those of `stats`, and what all tables have.

pub(crate) mod answers;
pub(crate) mod stats;
pub(crate) mod table;
