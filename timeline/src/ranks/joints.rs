//! In which calls a rank waited for others, and until when.

use crate::model::Ns;

/// What a rank waits for in a call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// It receives, probes or waits for a receive, and the message is sent later.
    LateSender,
    /// The same, while a message that was sent before that one has not been asked for: received in that order, neither would be late.
    WrongOrder,
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
    /// All kinds, in the order of display.
    pub const ALL: [WaitKind; 9] = [
        WaitKind::LateSender,
        WaitKind::WrongOrder,
        WaitKind::LateReceiver,
        WaitKind::Barrier,
        WaitKind::AllToAll,
        WaitKind::LateBroadcast,
        WaitKind::EarlyReduce,
        WaitKind::EarlyScan,
        WaitKind::Several,
    ];

    /// Its name in JSON: that of the wait state in the field's tools.
    pub fn state(self) -> &'static str {
        match self {
            WaitKind::LateSender => "late_sender",
            WaitKind::WrongOrder => "wrong_order",
            WaitKind::LateReceiver => "late_receiver",
            WaitKind::Barrier => "wait_at_barrier",
            WaitKind::AllToAll => "wait_at_nxn",
            WaitKind::LateBroadcast => "late_broadcast",
            WaitKind::EarlyReduce => "early_reduce",
            WaitKind::EarlyScan => "early_scan",
            WaitKind::Several => "completion",
        }
    }

    /// Its name in exports.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::LateSender => "late sender",
            WaitKind::WrongOrder => "late sender, wrong order",
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
pub struct Joint {
    /// The place of the stream in the trace.
    pub thread: u32,
    /// The rank that came last, in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The place of the stream in that rank's trace whose call was awaited.
    pub of_thread: u32,
    /// When the call began.
    pub begin: Ns,
    /// Until when it waited, at most until it ended.
    pub until: Ns,
    /// What it waited for.
    pub kind: WaitKind,
}

/// The waits of one process, by its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joints {
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

    /// All of them, by thread and begin. Those of a thread do not overlap.
    pub fn all(&self) -> &[Joint] {
        &self.all
    }

    /// The last wait of a thread that began before `time`.
    pub(super) fn before(&self, thread: u32, time: Ns) -> Option<&Joint> {
        let place = self.all.partition_point(|joint| (joint.thread, joint.begin) < (thread, time));
        self.all[..place].last().filter(|joint| joint.thread == thread)
    }

    /// The wait in the call that a thread began at this time.
    pub(crate) fn of_call(&self, thread: usize, begin: Ns) -> Option<&Joint> {
        let key = (u32::try_from(thread).ok()?, begin);
        let place = self.all.binary_search_by_key(&key, |joint| (joint.thread, joint.begin)).ok()?;
        self.all.get(place)
    }
}
