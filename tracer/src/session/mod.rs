//! A session: one trace file, its spool, its writer, from `initialize` to `finalize`.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mod@current`] | the session in progress |
//! | [`begin`], [`end`] | how a session begins; what is written when it ends |
//! | [`part`] | what takes part in each session, as samples, counters and devices do |
//! | [`cold_path`] | does what the recorder leaves: no chunk, chunk full, an event inside an event |
//! | [`chunks`] | which chunk a thread goes on with, and who writes a full one |
//! | [`loss`], [`failure`] | events that found no chunk; what cannot be written |
//! | [`helper_threads`] | the threads of the tracer's that a session has |
//! | [`writer`] | the thread that takes full chunks |
//! | [`metadata`], [`loaded_modules`] | what the trace says about process, runtime and libraries |
//! | [`flush_signal`] | the signal at which a flight recorder writes what it keeps |
//! | [`fork`] | children |

mod begin;
mod chunks;
pub(crate) mod cold_path;
mod current;
mod end;
mod failure;
pub(crate) mod flush_signal;
pub(crate) mod fork;
mod helper_threads;
pub(crate) mod hooks;
pub(crate) mod loaded_modules;
mod loss;
pub(crate) mod metadata;
pub(crate) mod writer;

pub(crate) use begin::{start, start_in_child};
pub(crate) use chunks::report_monitoring;
pub(crate) use current::{
    Session, current, disown, forget_streams, is_in_progress, next_stream, of_this_process, outlives_process,
};
pub(crate) use end::{finish, note_end};
