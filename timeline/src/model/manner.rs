//! How traces are interpreted: what is asked for beyond the timeline itself.

use crate::model::Ns;

/// How to interpret.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Show each chunk of a loop that is not static.
    pub chunks: bool,
    /// Leave out what lies in more regions than these.
    pub max_depth: Option<usize>,
    /// Let another thread decode.
    pub ahead: bool,
    /// Count the events of each stream by name: see [`crate::ProcessReport::counts`].
    pub counts: bool,
    /// Only the time from the first to before the second is wanted. Where the trace has checkpoints, what is long before is not
    /// read, nor is what comes after. What is wanted is the same as it is without; the sink leaves out the rest.
    pub window: Option<(Ns, Ns)>,
    /// Make checkpoints, with this many events from one to the next: see [`crate::ProcessReport::checkpoints`].
    pub checkpoints: Option<u64>,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            chunks: false,
            max_depth: None,
            ahead: omptrace_symbols::parallel::processors() > 1,
            counts: false,
            window: None,
            checkpoints: None,
        }
    }
}
