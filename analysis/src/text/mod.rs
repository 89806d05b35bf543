//! Numbers as tables and words: those of `answers`, those of `stats`, and what all tables have.

pub(crate) mod answers;
mod cells;
mod constructs;
mod devices;
pub(crate) mod first_screen;
mod rank_waits;
pub(crate) mod stats;
pub(crate) mod styled;
pub(crate) mod table;
mod threads;
