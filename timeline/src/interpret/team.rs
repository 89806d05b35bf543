//! A parallel region that has not ended, and its members.

use std::collections::BTreeMap;

use omptrace_trace_format::field::{Address, Id};

use crate::model::{Ns, RegionId};
use crate::names::construct::Construct;

/// A parallel region that has not ended.
pub(super) struct Team {
    pub(super) begin: Ns,
    pub(super) encountering_task: Id,
    /// [`Construct::Parallel`] or [`Construct::Teams`].
    pub(super) construct: Construct,
    /// The index of the thread that encountered the region.
    pub(super) thread: usize,
    pub(super) codeptr_ra: Address,
    pub(super) region: RegionId,
    /// The label of regions inside the region.
    pub(super) label: u32,
    /// The size of the team, once a member has reported it.
    pub(super) actual_parallelism: u32,
    /// The members that have started.
    pub(super) members: Vec<Member>,
    /// The members' numbers, assigned by the reader if the runtime assigns none.
    pub(super) numbers: Vec<u32>,
}

impl Team {
    /// Assigns a number to a member that the runtime does not number: 0 to the thread that encountered the region, and
    /// to others their last number in a team, if it is free. So threads that work together again have the same numbers,
    /// and tools that create a group for each sequence of threads need only one.
    pub(super) fn number(&mut self, thread: usize, usual_numbers: &mut BTreeMap<usize, u32>) -> u32 {
        if thread == self.thread {
            return 0;
        }
        let taken = &self.numbers;
        let is_free = |number: &u32| !taken.contains(number);
        let usual = usual_numbers.get(&thread).copied().filter(is_free);
        let number = usual.or_else(|| (1..).find(is_free)).unwrap_or(u32::MAX);
        usual_numbers.insert(thread, number);
        self.numbers.push(number);
        number
    }
}

/// A member: the index of its thread, and its implicit task.
pub(super) type Member = (usize, u64);
