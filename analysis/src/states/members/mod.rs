//! Objects through which threads meet: teams, locks and tasks.

pub(crate) mod helpers;
mod locks;
pub(crate) mod tasks;
pub(crate) mod teams;
