//! The generations of the tools interface.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`dialect`] | the generations that register callbacks by `ompt_set_callback` |
//! | [`tr2`] | the callbacks of OMPT of 2014 |
//! | [`collector`] | the Collector API, which came before OMPT |
//! | [`thread_state`] | reads a thread's state at its events where the user asks for it |

pub(crate) mod collector;
pub(crate) mod dialect;
pub(crate) mod thread_state;
pub(crate) mod tr2;
