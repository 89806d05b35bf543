//! In which calls a rank waited for others, and until when.

use crate::model::Ns;

/// What a rank waits for in a call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// It receives, probes or waits for a receive, and the message is sent later.
    LateSender,
    /// It sends, and the message is received later. Only where the send did not return before: others copy the message.
    LateReceiver,
    /// It is at a barrier, and another rank comes later.
    Barrier,
    /// It is in an operation in which each rank needs all others, and another one comes later.
    AllToAll,
    /// It needs the data of the root, and the root comes later.
    LateBroadcast,
    /// It is the root, and the first of the others comes later.
    EarlyReduce,
    /// It is in `MPI_Scan` or `MPI_Exscan`, and a lower rank comes later.
    EarlyScan,
    /// It waits for several requests; this is for the last.
    Several,
}

impl WaitKind {
    /// Its name in exports.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::LateSender => "late sender",
            WaitKind::LateReceiver => "late receiver",
            WaitKind::Barrier => "barrier",
            WaitKind::AllToAll => "all to all",
            WaitKind::LateBroadcast => "late broadcast",
            WaitKind::EarlyReduce => "early reduce",
            WaitKind::EarlyScan => "early scan",
            WaitKind::Several => "several requests",
        }
    }
}

/// A wait within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joint {
    /// The place of the stream in the trace.
    pub(crate) thread: u32,
    /// The rank that came last, in `MPI_COMM_WORLD`.
    pub(crate) rank: u32,
    /// When the call began.
    pub(crate) begin: Ns,
    /// Until when it waited, at most until it ended.
    pub(crate) until: Ns,
    pub(crate) kind: WaitKind,
}

/// The waits of one process, by its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Joints {
    /// By thread and begin.
    all: Vec<Joint>,
}

impl Joints {
    /// Of all waits within one call, the last counts.
    pub(super) fn of(mut all: Vec<Joint>) -> Joints {
        all.sort_by_key(|joint| (joint.thread, joint.begin, joint.until, joint.rank));
        all.dedup_by(|later, earlier| {
            let is_same = (later.thread, later.begin) == (earlier.thread, earlier.begin);
            if is_same {
                *earlier = Joint { kind: WaitKind::Several, ..*later };
            }
            is_same
        });
        Joints { all }
    }

    /// The wait in the call that a thread began at this time.
    pub(crate) fn of_call(&self, thread: usize, begin: Ns) -> Option<&Joint> {
        let key = (u32::try_from(thread).ok()?, begin);
        let place = self.all.binary_search_by_key(&key, |joint| (joint.thread, joint.begin)).ok()?;
        self.all.get(place)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[Joint] {
        &self.all
    }
}
