//! The modules that a thread has asked for.

use std::cell::Cell;

use crate::os::loader::{self, Identity, Mark};
use crate::os::time::clock::{self, ClockKind};

/// Libraries added and removed, as the loader counts them; where it is not asked, how often modules were found to be gone.
pub(crate) type State = (u64, u64);

/// Ticks for which modules are assumed unchanged. The loader needs more to remove a library and load another (measured on
/// x86_64: 65,000 of its counter). Arm's timer runs at 25 MHz to 1 GHz, those of other processors at similar rates. The clock that is no counter has nanoseconds.
fn valid_ticks() -> u64 {
    match clock::kind() {
        ClockKind::Counter if cfg!(target_arch = "x86_64") => 1 << 15,
        ClockKind::Counter => 1 << 7,
        ClockKind::Monotonic => 1 << 13,
    }
}

/// For a module that stays as long as the process.
const FOR_EVER: u64 = u64::MAX;
/// Modules that a thread remembers. Where it uses more, its events take the cold path more often.
const REMEMBERED: usize = 8;

/// Modules that a thread asked for last: no lock for the same few modules. All zeros is none.
#[derive(Debug)]
pub(crate) struct KnownModules {
    /// Where the module of the newest address lies, and for how many ticks after a question it is taken to be there.
    newest_start: Cell<u64>,
    newest_bytes: Cell<u64>,
    newest_valid: Cell<u64>,
    /// For how many ticks after a question all that are known are taken to be there.
    all_valid: Cell<u64>,
    known: [Cell<Known>; REMEMBERED],
    next: Cell<usize>,
    /// [`State`] when they became known.
    pub(crate) state: Cell<State>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// It is there as long as the process.
    pub(crate) stays: bool,
    /// `None` where it was found under the loader's lock.
    pub(crate) mark: Option<Mark>,
    /// A number that differs where the module does; 0 where it was found under the loader's lock.
    pub(crate) stamp: u64,
    /// The same, compared sooner; `None` where nobody called from it yet, or it has none.
    pub(crate) identity: Option<Identity>,
}

impl Known {
    /// None.
    pub(crate) const NONE: Known =
        Known { start: 0, end: 0, stays: false, mark: None, stamp: 0, identity: None };

    fn holds(&self, code: u64) -> bool {
        (self.start..self.end).contains(&code)
    }

    fn valid(&self) -> u64 {
        if self.stays { FOR_EVER } else { valid_ticks() }
    }
}

impl KnownModules {
    pub(crate) const fn new() -> KnownModules {
        KnownModules {
            newest_start: Cell::new(0),
            newest_bytes: Cell::new(0),
            newest_valid: Cell::new(0),
            all_valid: Cell::new(0),
            known: [const { Cell::new(Known::NONE) }; REMEMBERED],
            next: Cell::new(0),
            state: Cell::new((0, 0)),
        }
    }

    /// Whether `code` is in the module of the newest address.
    #[inline(always)]
    pub(crate) fn newest_has(&self, code: u64) -> bool {
        code.wrapping_sub(self.newest_start.get()) < self.newest_bytes.get()
    }

    /// Whether the module of the newest address is there still, `since` ticks after the last question.
    #[inline(always)]
    pub(crate) fn newest_is_there(&self, since: u64) -> bool {
        since <= self.newest_valid.get()
    }

    /// Whether `code` is in a module that is there still, `since` ticks after the last question. That is the newest then.
    pub(crate) fn hold(&self, code: u64, since: u64) -> bool {
        self.newest_has(code) && self.newest_is_there(since) || {
            let found = self.find(|known| known.holds(code) && since <= known.valid());
            found.is_some_and(|(_, known)| {
                self.set_newest(&known);
                true
            })
        }
    }

    /// Whether one that is known may be gone, `since` ticks after the last question.
    #[inline(always)]
    pub(crate) fn may_be_gone(&self, since: u64) -> bool {
        since > self.all_valid.get()
    }

    /// Whether all that are known are there still, and one of them has `code`, which calls. Asks the loader, without a lock.
    pub(crate) fn are_there(&self, code: u64) -> bool {
        let mut is_known = code == 0;
        for known in self.known.iter().map(Cell::get).filter(|known| known.end != 0) {
            let calls = known.holds(code);
            is_known |= calls;
            // SAFETY: the module calls where that is said.
            if !known.stays && !known.mark.is_some_and(|mark| unsafe { is_there(&known, mark, calls) }) {
                return false;
            }
        }
        is_known
    }

    /// Whether `code` is in a module that is there as long as the process. That is the newest then.
    pub(crate) fn has_for_ever(&self, code: u64) -> bool {
        let found = self.find(|known| known.stays && known.holds(code));
        found.is_some_and(|(_, known)| {
            self.set_newest(&known);
            true
        })
    }

    /// The one that holds `code` and has this mark, and its place. It is the newest then.
    pub(crate) fn find_marked(&self, code: u64, mark: Option<Mark>) -> Option<(usize, Known)> {
        let found = self.find(|known| known.mark == mark && known.holds(code));
        found.inspect(|(_, known)| self.set_newest(known))
    }

    /// Takes note by what the one at this place, which calls, is found to be there soon.
    pub(crate) fn identify(&self, place: usize, identity: Option<Identity>) {
        self.known[place].set(Known { identity, ..self.known[place].get() });
    }

    /// Another one is in the place of this one.
    pub(crate) fn remove(&self, place: usize) {
        self.known[place].set(Known::NONE);
        self.newest_bytes.set(0);
    }

    pub(crate) fn add(&self, known: Known) {
        let next = self.next.get() % self.known.len();
        self.known[next].set(known);
        self.next.set(next + 1);
        self.set_newest(&known);
        let all = self.known.iter().map(Cell::get).filter(|known| known.end != 0);
        self.all_valid.set(all.map(|known| known.valid()).min().unwrap_or(0));
    }

    pub(crate) fn forget(&self) {
        self.known.iter().for_each(|known| known.set(Known::NONE));
        self.all_valid.set(0);
        self.newest_bytes.set(0);
    }

    fn find(&self, is_it: impl Fn(&Known) -> bool) -> Option<(usize, Known)> {
        self.known.iter().map(Cell::get).enumerate().find(|(_, known)| is_it(known))
    }

    fn set_newest(&self, known: &Known) {
        self.newest_start.set(known.start);
        self.newest_bytes.set(known.end - known.start);
        self.newest_valid.set(known.valid());
    }
}

/// Whether the module that had this mark is there still.
///
/// # Safety
/// Where it `calls`, what is at its place now stays until this returns.
unsafe fn is_there(known: &Known, mark: Mark, calls: bool) -> bool {
    if loader::mark_at(known.start) != Some(Some(mark)) {
        return false;
    }
    // Another module may have the mark of one that is gone. Whoever uses it begins with a call.
    // SAFETY: the module is loaded, and this is its mark.
    !calls || known.identity.is_some_and(|identity| unsafe { identity.is_of(mark) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(start: u64, stays: bool) -> Known {
        Known { start, end: start + 10, stays, ..Known::NONE }
    }

    #[test]
    fn addresses_of_known_modules_are_good_for_a_while_or_for_ever() {
        clock::choose_counter();
        let (modules, valid) = (KnownModules::new(), valid_ticks());
        assert!(!modules.hold(0, 0) && modules.may_be_gone(1));
        modules.add(known(100, true));
        assert!(modules.hold(109, u64::MAX) && !modules.hold(110, 0) && !modules.hold(99, 0));
        assert!(!modules.may_be_gone(u64::MAX));
        modules.add(known(200, false));
        assert!(modules.newest_is_there(valid) && !modules.newest_is_there(valid + 1));
        assert!(!modules.newest_has(100) && modules.hold(100, u64::MAX) && modules.newest_has(100));
        assert!(modules.may_be_gone(valid + 1) && !modules.may_be_gone(valid));
        assert!(modules.has_for_ever(105) && !modules.has_for_ever(205));
        // Nothing says that the second one is there.
        assert!(!modules.are_there(100));
        modules.forget();
        assert!(!modules.hold(100, 0) && modules.may_be_gone(1));
    }
}
