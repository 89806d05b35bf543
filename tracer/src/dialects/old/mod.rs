//! Code that only interfaces before OpenMP 5.0 need.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`drafts`] | callbacks of the OpenMP 5.0 drafts that differ from today's |
//! | [`collector_counts`] | counts of Collector API events that cannot be recorded |

pub(crate) mod collector;
pub(crate) mod collector_counts;
pub(crate) mod drafts;
pub(crate) mod tr2;
