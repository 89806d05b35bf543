//! Lists of strands that wait for the end of another strand.

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Linked lists of waiting strands, one list per awaited strand.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// By strand: whether it has ended, and the first element of its list.
    strands: Vec<(bool, u32)>,
    /// The elements: the waiting strand, and the next element.
    all: Vec<(u32, u32)>,
}

impl Waiters {
    /// Resets the lists for this many strands, none of which has ended.
    pub(super) fn begin(&mut self, strands: usize) {
        self.all.clear();
        self.strands.clear();
        self.strands.resize(strands, (false, NONE));
    }

    /// Adds `waiter` to the list of `strand`. Returns false if `strand` has already ended.
    pub(super) fn wait(&mut self, strand: u32, waiter: u32) -> bool {
        let (has_ended, first) = &mut self.strands[strand as usize];
        if !*has_ended {
            self.all.push((waiter, *first));
            *first = self.all.len() as u32 - 1;
        }
        !*has_ended
    }

    /// Ends `strand`. Returns the list of its waiters, to be passed to [`Waiters::next`].
    pub(super) fn end(&mut self, strand: u32) -> u32 {
        let (has_ended, first) = &mut self.strands[strand as usize];
        *has_ended = true;
        std::mem::replace(first, NONE)
    }

    /// The first strand of a list, and the rest of the list.
    pub(super) fn next(&self, list: u32) -> Option<(u32, u32)> {
        self.all.get(list as usize).copied()
    }
}
