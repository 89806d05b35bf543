//! The code that runs at each event, in the order of an event's way.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`callbacks`] | the table: one row per callback |
//! | [`tls`] | finds the recorder of the calling thread |
//! | [`recorder`] | encodes an event into the thread's chunk |
//! | [`slow_path`] | does what the recorder leaves: no chunk, chunk full, an event inside an event |
//! | [`stream`] | the recorder's rarely used half |
//! | [`guard`] | stops a panic of a callback |

pub mod callbacks;
pub(crate) mod guard;
pub(crate) mod recorder;
pub(crate) mod slow_path;
pub(crate) mod stream;
pub(crate) mod tls;
