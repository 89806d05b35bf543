//! Where the program makes calls: a function, and the address behind the call.

use omptrace_symbols::fast_map::FastMap;

use crate::model::Ns;

/// The calls of a function from one address of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSite {
    /// The function, by its number in the API.
    pub function: u32,
    /// The first call: the index of its stream in the trace, and when it began.
    pub first: (u32, Ns),
    /// The number of calls that ended.
    pub calls: u64,
    /// The time in these calls.
    pub ns: u64,
    /// The messages that the calls sent or received and that could have been a part of an earlier message: both are
    /// small, the sender sent both to the same rank, and it received nothing in between.
    pub combinable: u64,
    /// The bytes of these messages.
    pub combinable_bytes: u64,
}

/// The call sites of a process, numbered in the order of their first calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Sites {
    numbers: FastMap<(u32, u64), u32>,
    pub(super) all: Vec<CallSite>,
}

impl Sites {
    /// The number of a function's calls from this address, of which one begins.
    pub(super) fn number(&mut self, (function, address): (u32, u64), first: (u32, Ns)) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry((function, address)).or_insert_with(|| {
            all.push(CallSite { function, first, ..CallSite::default() });
            all.len() as u32 - 1
        })
    }

    /// Adds a call that has ended.
    pub(super) fn add(&mut self, site: u32, begin: Ns, end: Ns) {
        if let Some(site) = self.all.get_mut(site as usize) {
            site.calls += 1;
            site.ns = site.ns.saturating_add(begin.abs_diff(end));
        }
    }

    /// Adds an end of a message that could have been a part of an earlier one.
    pub(super) fn add_combinable(&mut self, site: u32, bytes: u64) {
        if let Some(site) = self.all.get_mut(site as usize) {
            site.combinable += 1;
            site.combinable_bytes = site.combinable_bytes.saturating_add(bytes);
        }
    }
}
