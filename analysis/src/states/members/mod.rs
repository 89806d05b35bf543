//! What threads meet in: teams, locks and tasks.

pub(crate) mod helpers;
mod locks;
pub(crate) mod tasks;
pub(crate) mod teams;
