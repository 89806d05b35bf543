//! Numbers as tables and text: answers, statistics, comparisons, and code that all tables share.

mod cells;
mod constructs;
mod devices;
pub(crate) mod diff;
pub(crate) mod first_screen;
pub(crate) mod info;
pub(crate) mod job;
pub(crate) mod overview;
pub(crate) mod rank_waits;
pub(crate) mod ranks;
pub(crate) mod scaling;
pub(crate) mod stats;
pub(crate) mod styled;
pub(crate) mod table;
mod threads;
mod useful;
