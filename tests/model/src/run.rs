//! What a simulated execution leaves behind. That is what each thread did when, the graph of its pieces of work, and the callbacks that
//! a runtime would have made.

use std::collections::BTreeSet;

use crate::callback::Callback;
use crate::program::{CallClass, Code, MutexKind, Ns};

/// The number of a piece in [`Run::pieces`].
pub type PieceId = usize;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: it is in no team.
    Idle,
    /// The program's code.
    Useful,
    /// It has been asked to join a team and has not begun.
    Fork,
    /// It has left the region's last barrier, and the region is open.
    Join,
    /// It waits at the barrier of this number of its team.
    Barrier(usize),
    /// It waits in a taskwait or at a taskgroup's end.
    TaskWait,
    /// It waits for this mutex, or for its turn.
    Mutex(MutexKind, u64),
    /// It combines the results of a reduction.
    Reduction,
    /// It waits for a device.
    Target,
    /// It is in an MPI call.
    Call(CallClass),
}

/// What a thread does, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    /// What it does.
    pub activity: Activity,
    /// At which place of the program.
    pub place: Code,
    /// The innermost construct, also of those that only group what is in them.
    pub construct: Code,
    /// The innermost team that it belongs to.
    pub team: usize,
    /// Whether it is in an explicit task.
    pub in_task: bool,
    /// The barrier at which its implicit task is, whatever the thread runs there.
    pub at_barrier: Option<usize>,
}

/// A time in which a thread does one thing.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Span {
    pub begin: Ns,
    pub end: Ns,
    pub doing: Doing,
}

/// Why a piece comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The same thread did it before.
    Thread,
    /// The same task did it before, or a dependence was fulfilled before the task was created.
    Task,
    /// One waits for the other: forks, barriers, creations, taskwaits, dependences.
    Meeting,
    /// A mutex that was waited for.
    Mutex,
    /// A mutex that was free.
    FreeMutex,
}

/// A piece of work, or a moment at which threads meet.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Piece {
    pub begin: Ns,
    pub end: Ns,
    pub thread: usize,
    pub place: Code,
    /// The innermost team of the thread.
    pub team: usize,
    /// The outermost region's team; 0 in serial code.
    pub region: usize,
    /// Work: what must be done, whoever does it. That is useful time, and that of MPI calls.
    pub work: Ns,
    /// Whether the work is an MPI call.
    pub is_call: bool,
    pub before: Vec<(PieceId, Edge)>,
    /// Begins of implicit tasks, and ends of barriers: free where regions and barriers cost nothing.
    pub is_overhead: bool,
    /// The place whose mutex is released here.
    pub releases: Option<Code>,
}

/// One barrier of a team.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// How many have arrived.
    pub arrived: usize,
    /// When the last member came.
    pub all_arrived: Option<Ns>,
    /// When it was over; `None` while it is not.
    pub released: Option<Ns>,
    /// Whether it is the region's last.
    pub is_last: bool,
    /// The members' last pieces before it, in the order in which they came: that of the thread and that of its task for each.
    pub(crate) arrivals: Vec<(PieceId, Edge)>,
    pub(crate) release: Option<PieceId>,
    /// Where the explicit tasks are that members ran in it.
    pub tasks: BTreeSet<Code>,
}

/// A team: number 0 is the initial thread alone.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "their names say it")]
pub struct TeamRecord {
    pub place: Code,
    /// The team around, if any.
    pub outer: Option<usize>,
    /// The piece before its begin.
    pub fork: PieceId,
    pub members: Vec<usize>,
    /// How many threads the construct asked for.
    pub asked: usize,
    pub begin: Ns,
    pub end: Ns,
    pub barriers: Vec<Barrier>,
    /// When members turn to explicit tasks (1) and return from them (-1).
    pub running: Vec<(Ns, i64)>,
    /// Explicit tasks of the team that were deferred.
    pub tasks: u64,
}

/// A mutex that a thread had for a time.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Hold {
    pub begin: Ns,
    pub end: Ns,
    pub thread: usize,
    pub kind: MutexKind,
    pub number: u64,
    pub place: Code,
}

/// An execution in virtual time.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// By thread, in order of time.
    pub spans: Vec<Vec<Span>>,
    /// In topological order.
    pub pieces: Vec<Piece>,
    /// The program's last piece.
    pub last: PieceId,
    /// When it ended.
    pub end: Ns,
    /// The teams.
    pub teams: Vec<TeamRecord>,
    /// The mutexes.
    pub holds: Vec<Hold>,
    /// The threads that are the runtime's hidden helpers.
    pub helpers: std::ops::Range<usize>,
    /// Time, thread, callback.
    pub callbacks: Vec<(Ns, usize, Callback)>,
}

impl Run {
    /// The run as a runtime shows it that does not report these activities: they are work of the code around.
    pub fn without(&self, hidden: &[Activity]) -> Run {
        let mut seen = self.clone();
        for (thread, spans) in seen.spans.iter_mut().enumerate() {
            for span in spans.iter_mut().filter(|span| hidden.contains(&span.doing.activity)) {
                span.doing.activity = Activity::Useful;
                let own = seen.pieces.iter_mut().filter(|piece| piece.thread == thread);
                for piece in own.filter(|piece| piece.begin >= span.begin && piece.end <= span.end) {
                    piece.work = piece.end - piece.begin;
                }
            }
        }
        seen
    }

    /// Whether a team is `around`, or of a region inside that.
    pub fn is_inside(&self, mut team: usize, around: usize) -> bool {
        while team != around {
            match self.teams[team].outer {
                Some(outer) if team > 0 => team = outer,
                _ => return false,
            }
        }
        true
    }

    /// The outermost region that this team is in or of; 0 in serial code.
    pub fn outermost(&self, mut team: usize) -> usize {
        while let Some(outer) = self.teams[team].outer {
            if outer == 0 {
                break;
            }
            team = outer;
        }
        team
    }
}

/// The innermost team of which a thread is a member at a time, also on its way to there and back.
pub fn team_at(run: &Run, thread: usize, time: Ns) -> usize {
    let teams = run.teams.iter().enumerate().skip(1).rev();
    let mut open = teams.filter(|(_, team)| (team.begin..team.end).contains(&time));
    open.find(|(_, team)| team.members.contains(&thread)).map_or(0, |(number, _)| number)
}
