//! The modules that a thread has looked up recently.

use std::cell::Cell;

use crate::os::loader::{self, Identity, Mark};
use crate::os::time::clock::{self, ClockKind};

/// The loader's counts of libraries added and removed or, if the loader has none, the number of times that modules were
/// found to be gone.
pub(crate) type State = (u64, u64);

/// Number of ticks for which modules are assumed unchanged. The loader needs longer to remove one library and load
/// another (measured on x86_64: 65,000 ticks of its counter). Arm's timer has 25 MHz to 1 GHz, and counters of other
/// CPU architectures have similar rates. `CLOCK_MONOTONIC` has nanoseconds.
fn valid_ticks() -> u64 {
    match clock::kind() {
        ClockKind::Counter if cfg!(target_arch = "x86_64") => 1 << 15,
        ClockKind::Counter => 1 << 7,
        ClockKind::Monotonic => 1 << 13,
    }
}

/// For a module that stays loaded until the process ends.
const FOR_EVER: u64 = u64::MAX;
/// Number of modules that a thread remembers. If it uses more, its events take the cold path more often.
const REMEMBERED: usize = 8;

/// The modules that a thread looked up last, so that the same few modules need no lock. All zeros means none.
#[derive(Debug)]
pub(crate) struct KnownModules {
    /// Address range of the newest module, and the number of ticks after a check for which it is assumed to be loaded.
    newest_start: Cell<u64>,
    newest_bytes: Cell<u64>,
    newest_valid: Cell<u64>,
    /// Number of ticks after a check for which all known modules are assumed to be loaded.
    all_valid: Cell<u64>,
    known: [Cell<Known>; REMEMBERED],
    next: Cell<usize>,
    /// The [`State`] when the modules became known.
    pub(crate) state: Cell<State>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The module stays loaded until the process ends.
    pub(crate) stays: bool,
    /// `None` if the module was found under the loader's lock.
    pub(crate) mark: Option<Mark>,
    /// Identifies the module; 0 if it was found under the loader's lock.
    pub(crate) stamp: u64,
    /// Identifies the module at less cost; `None` if no code has called from it yet, or it has no identity.
    pub(crate) identity: Option<Identity>,
}

impl Known {
    /// No module.
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

    /// Whether `code` is in the newest module.
    #[inline(always)]
    pub(crate) fn newest_has(&self, code: u64) -> bool {
        code.wrapping_sub(self.newest_start.get()) < self.newest_bytes.get()
    }

    /// Whether the newest module can be assumed loaded, `since` ticks after the last check.
    #[inline(always)]
    pub(crate) fn newest_is_there(&self, since: u64) -> bool {
        since <= self.newest_valid.get()
    }

    /// Whether `code` is in a module that can be assumed loaded, `since` ticks after the last check. Makes it the
    /// newest.
    pub(crate) fn hold(&self, code: u64, since: u64) -> bool {
        self.newest_has(code) && self.newest_is_there(since) || {
            let found = self.find(|known| known.holds(code) && since <= known.valid());
            found.is_some_and(|(_, known)| {
                self.set_newest(&known);
                true
            })
        }
    }

    /// Whether a known module may have been unloaded, `since` ticks after the last check.
    #[inline(always)]
    pub(crate) fn may_be_gone(&self, since: u64) -> bool {
        since > self.all_valid.get()
    }

    /// Whether all known modules are still loaded, and one of them contains `code`, which is calling. Queries the
    /// loader without a lock.
    pub(crate) fn are_there(&self, code: u64) -> bool {
        let mut is_known = code == 0;
        for known in self.known.iter().map(Cell::get).filter(|known| known.end != 0) {
            let calls = known.holds(code);
            is_known |= calls;
            // SAFETY: `calls` is set only if the module's code is calling.
            if !known.stays && !known.mark.is_some_and(|mark| unsafe { is_there(&known, mark, calls) }) {
                return false;
            }
        }
        is_known
    }

    /// Whether `code` is in a module that stays loaded until the process ends. Makes it the newest.
    pub(crate) fn has_for_ever(&self, code: u64) -> bool {
        let found = self.find(|known| known.stays && known.holds(code));
        found.is_some_and(|(_, known)| {
            self.set_newest(&known);
            true
        })
    }

    /// Finds the module that contains `code` and has this mark, and its index. Makes it the newest.
    pub(crate) fn find_marked(&self, code: u64, mark: Option<Mark>) -> Option<(usize, Known)> {
        let found = self.find(|known| known.mark == mark && known.holds(code));
        found.inspect(|(_, known)| self.set_newest(known))
    }

    /// Stores the identity of the module at `place`, whose code is calling, so that later checks are cheaper.
    pub(crate) fn identify(&self, place: usize, identity: Option<Identity>) {
        self.known[place].set(Known { identity, ..self.known[place].get() });
    }

    /// Removes the module at `place`, which was replaced by another.
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

/// Whether the module with this mark is still loaded.
///
/// # Safety
/// If `calls` is true, the module at its address stays loaded until this returns.
unsafe fn is_there(known: &Known, mark: Mark, calls: bool) -> bool {
    if loader::mark_at(known.start) != Some(Some(mark)) {
        return false;
    }
    // Another module may get the mark of an unloaded one, but its use starts with a call.
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
        // Without a mark, it is unknown whether the second module is loaded.
        assert!(!modules.are_there(100));
        modules.forget();
        assert!(!modules.hold(100, 0) && modules.may_be_gone(1));
    }
}
