//! What the processes of an MPI job did with each other: messages, collective operations, and who waited for whom.
//!
//! ```text
//! Reader of each rank --calls--> sends, receives, collectives --\
//!                        |                                       matching --> Joints of each rank
//!                        +--> communicators --communicators--> their identity on all ranks --/
//! ```
//!
//! The tracer records facts and sends no message, so all of this is found out after the run:
//!
//! * **Communicators.** To create one is collective over its parent, and all members do it in the same order. So it is identified by its
//!   parent, by how many were created on that before, and by its first member.
//! * **Messages.** The k-th send that is posted matches the k-th receive that is posted with the same communicator, source,
//!   destination and tag, because messages do not overtake each other. A receive from any source, or with any tag, has the key that its
//!   status shows at completion, and keeps its place in the order of posting.
//! * **Collective operations** match by the communicator and their order on it.
//! * **Waits.** In a call, a rank waits until another one has begun what the call needs: see [`WaitKind`].
//!
//! Memory: about 100 bytes for each end of a message and each part in a collective operation, for the whole job at once.

mod calls;
mod communicator;
mod communicators;
mod joints;
mod matching;
mod messages;
#[cfg(test)]
mod tests;

use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::Reader;

use crate::model::Ns;
use crate::model::session_clock::SessionClock;
use crate::ranks::calls::{Calls, ProcessCalls};
use crate::replay::merge::Merge;
use crate::replay::stream::{Decoding, Extent};

pub(crate) use joints::Joints;
pub use joints::WaitKind;
pub use messages::{MessageCounts, RankMessages, Unmatched};

/// The messages of an MPI job, matched.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    /// How many ranks of the job there are traces of.
    pub given: usize,
    /// How many ranks the job had.
    pub size: usize,
    /// In the timeline's order.
    processes: Vec<RankMessages>,
}

impl Ranks {
    /// What the processes of `inputs`, which begin at these times, did with each other. `None` where no process has recorded calls of MPI
    /// in a job of several, or where two have the same rank: these are several jobs. Nothing is matched unless all ranks are there.
    pub(crate) fn of(inputs: &[(&Reader, Ns)]) -> Option<Ranks> {
        let of_mpi = |reader: &Reader| {
            let mpi = reader.metadata().mpi.as_ref()?;
            mpi.rank.zip(mpi.size)
        };
        let places: Vec<Option<(u32, u32)>> = inputs.iter().map(|(reader, _)| of_mpi(reader)).collect();
        let known = || places.iter().flatten();
        let size = known().map(|(_, size)| *size as usize).max().filter(|size| *size > 1)?;
        let mut ranks: Vec<u32> = known().map(|(rank, _)| *rank).collect();
        ranks.sort_unstable();
        if ranks.windows(2).any(|two| two[0] == two[1]) || known().any(|(_, of)| *of as usize != size) {
            return None;
        }
        let mut all = Ranks { given: ranks.len(), size, processes: Vec::new() };
        if !all.are_complete() {
            return Some(all);
        }
        let with_mpi: Vec<usize> = (0..inputs.len()).filter(|index| places[*index].is_some()).collect();
        let read = in_parallel(with_mpi.clone(), |index| {
            let (reader, start) = inputs[index];
            read(reader, start, places[index].map_or(0, |(rank, _)| rank))
        });
        all.processes.resize_with(inputs.len(), RankMessages::default);
        for (index, mut messages) in with_mpi.into_iter().zip(matching::matched(read, size)) {
            messages.joints.move_by(-inputs[index].1);
            all.processes[index] = messages;
        }
        Some(all)
    }

    /// Whether there are traces of all ranks.
    pub fn are_complete(&self) -> bool {
        self.given == self.size
    }

    /// Of a process, by its number on the timeline; `None` unless all ranks are there.
    pub fn process(&self, number: usize) -> Option<&RankMessages> {
        self.processes.get(number)
    }
}

/// Reads the calls of one rank.
fn read(reader: &Reader, start: Ns, rank: u32) -> ProcessCalls {
    let clock = SessionClock { map: reader.clock(), start };
    let mut calls = Calls::new(rank, reader.streams().len());
    let mut merge = Merge::new(reader, clock, Extent::WHOLE, Decoding::Here);
    while let Some(run) = merge.next_run() {
        for timed in run.events {
            calls.event(run.thread, timed.time, &timed.record.event);
        }
    }
    calls.finish()
}
