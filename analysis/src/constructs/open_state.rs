//! The processes, constructs and teams of which sums are added up.

use super::*;

/// A process and its state.
pub(super) struct Traced {
    pub(super) process: Process,
    /// The time of the latest item.
    pub(super) last: Ns,
    pub(super) stats: ProcessStats,
    /// The intervals in which recording was off.
    pub(super) gaps: Gaps,
}

impl Traced {
    pub(super) fn begin(&self) -> Ns {
        let lifetime = self.process.lifetime;
        lifetime.started.unwrap_or(lifetime.traced_from)
    }

    pub(super) fn end(&self) -> Ns {
        let ended = self.process.lifetime.ended;
        ended.map_or(self.last, |ended| ended.max(self.last))
    }
}

pub(super) struct Collected {
    pub(super) sums: ConstructSums,
    /// Some of these regions are tasks without ids, in the current process.
    pub(super) lacks_ids: bool,
    pub(super) kind: Kind,
    pub(super) category: Category,
    pub(super) is_chunk: bool,
    /// The region is an attempt to acquire a lock (`omp_test_lock`).
    pub(super) is_test: bool,
    /// If nothing shows when tasks run, the end of this region counts a completed task.
    pub(super) completes_task: bool,
}

impl Collected {
    /// Whether a wait in this region continues after tasks that interrupt it.
    pub(super) fn may_wait_on(&self) -> bool {
        self.category == Category::Sync
    }
}

/// A parallel region that has not ended, or some of whose members have not ended.
pub(super) struct Team {
    pub(super) region: usize,
    /// At least a part of the region is in the window.
    pub(super) is_inside: bool,
    pub(super) begin: Ns,
    pub(super) end: Option<Ns>,
    /// The number of members that have ended, and the team's size once a member has reported it.
    pub(super) members: u32,
    pub(super) size: Option<u32>,
    pub(super) working: u64,
    pub(super) waiting: u64,
    pub(super) longest: u64,
}

impl Team {
    pub(super) fn is_complete(&self) -> bool {
        self.end.is_some() && self.size.is_some_and(|size| self.members >= size)
    }
}
