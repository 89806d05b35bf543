//! The modules that a thread has asked for.

use std::cell::Cell;

use crate::os::loader::Mark;

/// Libraries added and removed, as the loader counts them; where it is not asked, how often modules were found to be gone.
pub(crate) type State = (u64, u64);

/// Modules that a thread asked for last: no lock for the same few modules.
#[derive(Debug)]
pub(crate) struct KnownModules {
    known: [Cell<Known>; 4],
    next: Cell<usize>,
    /// [`State`] when they became known.
    pub(crate) state: Cell<State>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `None` where it was found under the loader's lock.
    pub(crate) mark: Option<Mark>,
    /// A number that differs where the module does; 0 where it was found under the loader's lock.
    pub(crate) stamp: u64,
}

const NONE_KNOWN: Known = Known { start: 0, end: 0, mark: None, stamp: 0 };

impl KnownModules {
    pub(crate) const fn new() -> KnownModules {
        KnownModules {
            known: [const { Cell::new(NONE_KNOWN) }; 4],
            next: Cell::new(0),
            state: Cell::new((0, 0)),
        }
    }

    /// The one that holds `code` and has this mark.
    pub(crate) fn find(&self, code: u64, mark: Option<Mark>) -> Option<Known> {
        let mut all = self.known.iter().map(Cell::get);
        all.find(|known| known.mark == mark && (known.start..known.end).contains(&code))
    }

    pub(crate) fn add(&self, known: Known) {
        let next = self.next.get() % self.known.len();
        self.known[next].set(known);
        self.next.set(next + 1);
    }

    pub(crate) fn forget(&self) {
        self.known.iter().for_each(|known| known.set(NONE_KNOWN));
    }
}
