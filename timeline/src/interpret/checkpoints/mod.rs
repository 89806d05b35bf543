//! Checkpoints: from which events interpretation can begin in the middle of a trace.
//!
//! ```text
//! events before a time --> what they opened is still open: kept --> replayed alone --> the same state? --> checkpoint
//!                      \-> the rest: forgotten
//! ```
//!
//! A checkpoint holds events, and no state: who begins there interprets them, and then goes on with the trace. So every sink sees
//! the regions that are open. What the events do not say, such as the number of chunks that a loop had, comes with them.
//!
//! **A checkpoint is written only where replaying it was tried, and gave the interpreter's state.** So it never changes what a
//! window shows. There is none while that cannot be: a task is suspended on no stack, siblings have dependences, recording was
//! paused. And there is none in traces of which the interpreter keeps more than what is open: samples, counters, devices.
//!
//! What programs say of themselves is in checkpoints, but for ranges word for word: sinks that want these read the trace from its start.

mod between_regions;
mod recorder;
mod restart;
mod state;

pub(crate) use recorder::Recorder;
pub(crate) use restart::Restart;

use omptrace_trace_format::Metadata;
use serde::{Deserialize, Serialize};

use crate::interpret::annotations::AnnotationState;
use crate::threads::open_regions::Progress;

/// Whether a trace of this kind may have checkpoints. One of a program that uses devices has those from before only.
pub fn may_have_checkpoints(metadata: &Metadata) -> bool {
    metadata.sampling.is_none() && metadata.counting.is_none()
}

/// The version of what a checkpoint means: that of the program, and a number that grows with each change between two releases.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/2");

/// The words of a checkpoint. Times count from the session's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Head {
    version: String,
    /// The events before it.
    events: u64,
    /// The last of them ended a parallel region, after which none was open.
    #[serde(default)]
    ends_region: bool,
    /// Those that were lost before it.
    lost: u64,
    /// The ids that were given out, in ranges.
    given: Vec<(u64, u64)>,
    unset_tasks: u64,
    unannounced_tasks: u64,
    has_proxy_tasks: bool,
    /// What was repaired before it: name, count, stream and time of the first.
    repairs: Vec<(String, u64, u32, i64)>,
    /// How far the region has come that the event at this place begins.
    progress: Vec<(usize, Progress)>,
    /// Before the event at this place, a wait on this stream goes on at a time in ticks: a task has interrupted it.
    resumed: Vec<(usize, u32, u64)>,
    /// What the program said of itself.
    #[serde(default, skip_serializing_if = "AnnotationState::is_none")]
    annotations: AnnotationState,
}
