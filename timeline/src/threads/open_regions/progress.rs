//! The progress of a thread's regions, for checkpoints: what does not follow from the events that started the regions.

use serde::{Deserialize, Serialize};

use crate::interpret::item_emitter::Stage;
use crate::model::{Awaited, Ns, RegionId, TeamId};
use crate::names::construct::Construct;
use crate::threads::open_regions::{Frame, Meaning, Thread};

/// The progress of a region since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// For an implicit task: number of its team's barriers that it has left.
    pub(crate) barriers: u32,
    /// For a loop: the chunks before the newest one, and their iterations.
    pub(crate) chunks: u64,
    pub(crate) iterations: u64,
}

/// The state of an open region, except for numbers that only the reader assigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameState {
    construct: Construct,
    key: u64,
    region: RegionId,
    meaning: Meaning,
    begin: Ns,
    limit: Ns,
    flags: [bool; 3],
    implicit_task: Option<u32>,
    barriers: u32,
    chunks: (u64, u64),
}

impl Frame {
    /// The number of the event that started the region.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// The team, if the region is the implicit task of a member.
    pub(crate) fn team(&self) -> Option<TeamId> {
        self.team_of_member().map(|(team, _)| team)
    }

    /// Whether the region is a wait that has continued after a task.
    pub(crate) fn has_resumed(&self) -> bool {
        self.is_wait_for_tasks() && self.further > 0
    }

    fn state(&self) -> FrameState {
        let meaning = match self.meaning {
            // Acquisitions are numbered from the start of reading.
            Meaning::Wait(Awaited::Mutex { lock, held }) => {
                Meaning::Wait(Awaited::Mutex { lock, held: held.and(std::num::NonZeroU32::new(1)) })
            }
            other => other,
        };
        FrameState {
            construct: self.construct,
            key: self.key,
            region: self.region,
            meaning,
            begin: self.begin,
            limit: self.limit,
            flags: [self.is_member, self.ended, self.paused],
            implicit_task: self.implicit_task,
            barriers: self.barriers,
            chunks: (self.chunks, self.iterations),
        }
    }
}

impl Thread {
    /// The state of each open region; `None` if late ends are still to come, or if a region was cut, so that its start
    /// is not that of its slice.
    pub(crate) fn states(&self) -> Option<Vec<FrameState>> {
        let is_plain = self.hidden == 0
            && self.awaited.is_empty()
            && self.taskwaits.is_empty()
            && self.stack.iter().all(|frame| frame.part == 1);
        is_plain.then(|| self.stack.iter().map(Frame::state).collect())
    }

    /// The progress of the region at `index` of the stack, unless its start says it all. `iterations`: the iterations
    /// of a loop's newest chunk.
    pub(crate) fn progress(&self, index: usize, iterations: u64) -> Option<Progress> {
        let frame = &self.stack[index];
        let progress = Progress {
            barriers: self.barriers_before(index),
            chunks: frame.chunks.saturating_sub(1),
            iterations: frame.iterations.saturating_sub(iterations),
        };
        (progress != Progress::default()).then_some(progress)
    }

    /// Number of its team's barriers that the implicit task at `index` has left, without those that are still open.
    pub(crate) fn barriers_before(&self, index: usize) -> u32 {
        let frame = &self.stack[index];
        let own = frame.team();
        let number = |frame: &Frame| match frame.meaning {
            Meaning::Wait(Awaited::Barrier { team, number }) if Some(team) == own => Some(number),
            _ => None,
        };
        let first = self.stack[index + 1..].iter().find_map(number);
        first.map_or(frame.barriers, |first| first.saturating_sub(1))
    }

    /// Number of its team's barriers that the implicit task `task` has left; 0 if it is not open.
    pub(crate) fn barriers_left(&self, task: u64) -> u32 {
        let index = self.implicit_task(task);
        index.map_or(0, |index| self.barriers_before(index))
    }

    /// Sets the progress of the innermost region.
    pub(crate) fn set_progress(&mut self, progress: Progress) {
        let Some(top) = self.stack.last_mut() else {
            return;
        };
        top.barriers = progress.barriers;
        top.chunks = progress.chunks;
        top.iterations = progress.iterations;
    }

    /// The innermost region is a wait that a task interrupted, and that continues now.
    pub(crate) fn interrupt(&mut self, stage: &mut Stage<'_>, time: Ns) {
        let depth = self.stack.len();
        let at = self.point(time);
        if let Some(top) = self.stack.last_mut()
            && top.is_wait_for_tasks()
            && !top.paused
        {
            top.paused = true;
            if depth <= stage.max_depth {
                stage.leave(at, &[]);
            }
            self.settle(stage, time);
        }
    }
}
