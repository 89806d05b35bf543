//! The tool: how it is found, what it may ask, and its end.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `state` | whether there is a tool, and in which process |
//! | `entry_points` | what the tool may ask |
//! | `lifecycle` | the search, the begin and the end |

#[macro_use]
pub(crate) mod callbacks;
pub(crate) mod entry_points;
pub(crate) mod lifecycle;
pub(crate) mod state;
