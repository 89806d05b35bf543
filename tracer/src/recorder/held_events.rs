//! Events that a forked child holds back until it uses OpenMP.

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::event::Event;

use crate::os::time::clock;

/// The clock pair before the first event that this process held back; null if there is none.
static SINCE: AtomicPtr<ClockPair> = AtomicPtr::new(std::ptr::null_mut());

/// Events held back on a thread of a forked child, and the clock pair before the first. All zeros means no events.
#[derive(Debug)]
pub(crate) struct HeldEvents {
    events: Cell<*mut Vec<(u64, Event<'static>)>>,
    clock: Cell<ClockPair>,
}

impl HeldEvents {
    pub(crate) const fn new() -> HeldEvents {
        let clock = ClockPair { ticks: 0, monotonic_raw_ns: 0, realtime_ns: 0 };
        HeldEvents { events: Cell::new(std::ptr::null_mut()), clock: Cell::new(clock) }
    }

    pub(crate) fn push(&self, event: Event<'static>) {
        if self.events.get().is_null() {
            let clock = clock::pair().0;
            self.clock.set(clock);
            note_first(clock);
            self.events.set(Box::into_raw(Box::default()));
        }
        // SAFETY: the box made above, which only this thread uses.
        unsafe { &mut *self.events.get() }.push((clock::ticks(), event));
    }

    /// Removes and returns the events with their times, and the clock pair before the first.
    pub(crate) fn take(&self) -> Option<(ClockPair, Vec<(u64, Event<'static>)>)> {
        let events = self.events.replace(std::ptr::null_mut());
        // SAFETY: made by `Box::into_raw` in `push`, and taken once.
        (!events.is_null()).then(|| (self.clock.get(), *unsafe { Box::from_raw(events) }))
    }
}

/// Stores the clock pair of the first event that the process held back; later calls have no effect.
fn note_first(clock: ClockPair) {
    let clock = Box::into_raw(Box::new(clock));
    // Release; pairs with Acquire in `asleep_since`.
    let (success, failure) = (Ordering::Release, Ordering::Relaxed);
    if SINCE.compare_exchange(std::ptr::null_mut(), clock, success, failure).is_err() {
        // SAFETY: made above, and not shared.
        drop(unsafe { Box::from_raw(clock) });
    }
}

/// The clock pair before the first event that this process held back.
pub(crate) fn asleep_since() -> Option<ClockPair> {
    // SAFETY: null, or a box that `note_first` has leaked. Acquire; pairs with Release in `note_first`.
    unsafe { SINCE.load(Ordering::Acquire).as_ref() }.copied()
}

/// In a forked child: this process has held back no event yet.
pub(crate) fn forget() {
    // Relaxed: the child has one thread.
    SINCE.store(std::ptr::null_mut(), Ordering::Relaxed);
}
