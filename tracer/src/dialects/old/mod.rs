//! What only interfaces before OpenMP 5.0 need.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`drafts`] | callbacks of the drafts of OpenMP 5.0 that are not today's |
//! | [`collector_counts`] | events of the Collector API that are not as they should be |

pub(crate) mod collector;
pub(crate) mod collector_counts;
pub(crate) mod drafts;
pub(crate) mod tr2;
