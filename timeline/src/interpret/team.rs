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
    /// The place of the thread that encountered it.
    pub(super) thread: usize,
    pub(super) codeptr_ra: Address,
    pub(super) region: RegionId,
    /// The label of regions in it.
    pub(super) label: u32,
    /// Its size, once a member reports it.
    pub(super) actual_parallelism: u32,
    /// The members that have begun.
    pub(super) members: Vec<Member>,
    /// The numbers that the reader gave to them, where the runtime gives none.
    pub(super) numbers: Vec<u32>,
}

impl Team {
    /// A number for a member that the runtime does not number. It is 0 for who encountered the region, else the one that the
    /// thread had last in a team, if that is free. So threads that work together again have the same numbers, and tools that
    /// keep a group for each order of threads need one.
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

/// The place in the list of threads, and the implicit task, of a member.
pub(super) type Member = (usize, u64);
