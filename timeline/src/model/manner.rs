//! How traces are interpreted: requests beyond the timeline itself.

use crate::model::Ns;

/// Options of the interpretation.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Show each chunk of dynamic and guided loops.
    pub chunks: bool,
    /// Leave out regions that are nested more deeply.
    pub max_depth: Option<usize>,
    /// Let another thread decode events.
    pub ahead: bool,
    /// Count the events of each stream by name: see [`crate::ProcessReport::counts`].
    pub counts: bool,
    /// Only this half-open interval is needed. If the trace has checkpoints, neither events long before the window nor
    /// events after it are read. Inside the window, the items are the same as without this option; the sink must ignore
    /// the other items.
    pub window: Option<(Ns, Ns)>,
    /// Create checkpoints with this number of events between them: see [`crate::ProcessReport::checkpoints`].
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
