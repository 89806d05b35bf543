//! Who waits for the end of which strand.

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Lists of those that wait, one for each strand.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// By strand: whether it has ended, and the first of its list.
    strands: Vec<(bool, u32)>,
    /// Each with the next of the same list.
    all: Vec<(u32, u32)>,
}

impl Waiters {
    /// Forgets all. There are this many strands, none of which has ended.
    pub(super) fn begin(&mut self, strands: usize) {
        self.all.clear();
        self.strands.clear();
        self.strands.resize(strands, (false, NONE));
    }

    /// `waiter` waits for `strand`, unless that has ended. True if it does.
    pub(super) fn wait(&mut self, strand: u32, waiter: u32) -> bool {
        let (has_ended, first) = &mut self.strands[strand as usize];
        if !*has_ended {
            self.all.push((waiter, *first));
            *first = self.all.len() as u32 - 1;
        }
        !*has_ended
    }

    /// `strand` has ended. Gives the list of those that waited for it, to be passed to [`Waiters::next`].
    pub(super) fn end(&mut self, strand: u32) -> u32 {
        let (has_ended, first) = &mut self.strands[strand as usize];
        *has_ended = true;
        std::mem::replace(first, NONE)
    }

    /// The first of a list, and the rest of it.
    pub(super) fn next(&self, list: u32) -> Option<(u32, u32)> {
        self.all.get(list as usize).copied()
    }
}
