//! The generations of the tools interface.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`dialect`] | the generations that register callbacks by `ompt_set_callback` |
//! | [`old::tr2`] | the callbacks of OMPT of 2014 |
//! | [`old::collector`] | the Collector API, which came before OMPT |
//! | [`old`] | code that only interfaces before OpenMP 5.0 need |
//! | [`prepared`], [`ending`] | start and end of a session, for all generations |
//! | [`hooks`] | the modules with hooks of sessions |
//! | [`join_barrier_callbacks`] | the callbacks for runtimes that need an empty data word |
//! | [`thread_state`] | reads a thread's state at its events, if the user requests it |

pub(crate) mod dialect;
pub(crate) mod ending;
mod hooks;
pub(crate) mod join_barrier_callbacks;
pub(crate) mod old;
pub(crate) mod prepared;
pub(crate) mod thread_state;
