//! Numbers as tables and text: answers, statistics, and code that all tables share.

pub(crate) mod answers;
mod cells;
mod constructs;
mod devices;
pub(crate) mod first_screen;
pub(crate) mod rank_waits;
pub(crate) mod stats;
pub(crate) mod styled;
pub(crate) mod table;
mod threads;
