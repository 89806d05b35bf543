//! The generations of the tools interface.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`dialect`] | the generations that register callbacks by `ompt_set_callback` |
//! | [`old::tr2`] | the callbacks of OMPT of 2014 |
//! | [`old::collector`] | the Collector API, which came before OMPT |
//! | [`old`] | what only interfaces before OpenMP 5.0 need |
//! | [`prepared`], [`ending`] | a session's begin and end, whichever generation starts it |
//! | [`parts`] | what takes part in each session |
//! | [`join_barrier_callbacks`] | the callbacks for runtimes that want a word empty |
//! | [`thread_state`] | reads a thread's state at its events where the user asks for it |

pub(crate) mod dialect;
pub(crate) mod ending;
mod hooks;
pub(crate) mod join_barrier_callbacks;
pub(crate) mod old;
pub(crate) mod prepared;
pub(crate) mod thread_state;
