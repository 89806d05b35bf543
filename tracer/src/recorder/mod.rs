//! One thread's state, and how its events get into its chunk. Nothing here knows of a session.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`this_thread`] | finds the recorder of the calling thread |
//! | [`recorder`] | encodes an event into the thread's chunk |
//! | [`thread_stream`] | the recorder's rarely used half |
//! | [`guarded`] | stops a panic of a callback |
//! | [`callback`] | a callback as it is registered |
//! | [`held_events`] | events that a forked child holds back |
//! | [`kept_chunks`] | full chunks that a flight recorder keeps |
//! | [`known_modules`] | modules that the thread has asked for |
//! | [`own_cost`] | what an event costs |
//! | [`registers`] | the processor's counters of the thread |
//! | [`initial_task`], [`waiting_task`], [`dependence_collection`] | what is known of the thread's tasks, for faults of runtimes |

pub(crate) mod callback;
pub(crate) mod dependence_collection;
pub(crate) mod guarded;
pub(crate) mod held_events;
pub(crate) mod initial_task;
pub(crate) mod kept_chunks;
pub(crate) mod known_modules;
pub(crate) mod own_cost;
#[expect(clippy::module_inception, reason = "the folder has what belongs to a recorder")]
pub(crate) mod recorder;
pub(crate) mod registers;
pub(crate) mod this_thread;
pub(crate) mod thread_stream;
pub(crate) mod waiting_task;
