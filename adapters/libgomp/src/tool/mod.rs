//! The tool: the search for it, the entry points for it, and its finalization.
//!
//! | module | contents |
//! | --- | --- |
//! | `state` | whether there is a tool, and in which process |
//! | `entry_points` | the entry points for the tool |
//! | `lifecycle` | search, initialization and finalization |

#[macro_use]
pub(crate) mod callbacks;
pub(crate) mod entry_points;
pub(crate) mod lifecycle;
pub(crate) mod state;
