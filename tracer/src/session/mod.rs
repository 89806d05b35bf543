//! A session: one trace file, its spool, its writer, from `initialize` to `finalize`.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mod@current`] | the session in progress |
//! | [`begin`], [`end`] | starts a session; ends it |
//! | [`part`] | the parts of a session, such as samples, counters and devices |
//! | [`cold_path`] | what the recorder cannot do: no chunk, chunk full, an event inside an event |
//! | [`chunks`] | which chunk a thread continues with, and which thread writes a full one |
//! | [`loss`], [`failure`] | lost events; write failures |
//! | [`helper_threads`] | a session's helper threads |
//! | [`writer`] | the thread that writes full chunks |
//! | [`metadata`], [`loaded_modules`] | what the trace contains about process, runtime and libraries |
//! | [`flush_signal`] | the signal at which a flight recorder writes its retained chunks |
//! | [`fork`] | forked children |

mod begin;
mod chunks;
pub(crate) mod cold_path;
mod current;
mod end;
pub(crate) mod flush_signal;
pub(crate) mod fork;
mod helper_threads;
pub(crate) mod hooks;
pub(crate) mod loaded_modules;
mod loss_report;
pub(crate) mod metadata;
mod write_failure;
pub(crate) mod writer_thread;

pub(crate) use begin::{start, start_in_child};
pub(crate) use chunks::report_monitoring;
pub(crate) use current::{
    Session, current, disown, forget_streams, is_in_progress, next_stream, of_this_process, outlives_process,
};
pub(crate) use end::{finish, note_end};
