//! The state of one thread, and how its events get into its chunk. These modules do not depend on sessions.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`this_thread`] | finds the recorder of the calling thread |
//! | [`recorder`] | encodes an event into the thread's chunk |
//! | [`thread_stream`] | the recorder's rarely used half |
//! | [`guarded`] | stops panics of a callback |
//! | [`callback`] | a callback in the form in which it is registered |
//! | [`held_events`] | events that a forked child holds back |
//! | [`kept_chunks`] | full chunks that a flight recorder retains |
//! | [`known_modules`] | modules that the thread has looked up |
//! | [`own_cost`] | measures the cost of an event |
//! | [`registers`] | the CPU's counters for the thread |
//! | [`initial_task`], [`waiting_task`], [`dependence_collection`] | facts about the thread's tasks, for workarounds |

pub(crate) mod callback;
pub(crate) mod dependence_collection;
pub(crate) mod guarded;
pub(crate) mod hardware_counters;
pub(crate) mod held_events;
pub(crate) mod initial_task;
pub(crate) mod kept_chunks;
pub(crate) mod known_modules;
pub(crate) mod own_cost;
#[expect(clippy::module_inception, reason = "the folder has what belongs to a recorder")]
pub(crate) mod recorder;
pub(crate) mod this_thread;
pub(crate) mod thread_stream;
pub(crate) mod waiting_task;
