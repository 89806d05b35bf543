//! The time that threads spend outside of calls: between the start of a request and the wait for it, and after waits.

use crate::model::Ns;

/// Waits that are shorter are not kept.
const MIN_WAIT_NS: u64 = 10_000;

/// Time outside of calls is negligible beside a wait if it is no longer than the wait divided by this number.
const NEGLIGIBLE: u64 = 20;

/// Unsuccessful tests are a wait if they take at least one part in so many of the time in which they are made.
const MOSTLY: u64 = 2;

/// A call that waits for requests right after they were started, or a series of unsuccessful tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdleWait {
    pub(super) thread: u32,
    pub(super) site: u32,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    /// The time that the thread works outside of calls after it.
    pub(super) following_ns: u64,
    /// It consists of unsuccessful tests.
    pub(super) is_polled: bool,
}

/// Tests that found nothing, by the call that ended them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tests {
    /// The function of the tests, and that of the call that ended them with its site.
    pub(super) function: u32,
    pub(super) next: (u32, u32),
    pub(super) count: u64,
    /// The time in tests between which the thread works.
    pub(super) between_work_ns: u64,
    /// The time in which the thread does little but test.
    pub(super) waiting_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    last_end: Option<Ns>,
    /// The time outside of calls so far, and since the last call.
    outside_ns: u64,
    gap_ns: u64,
    /// When the first request was posted that the current call has completed: the time outside of calls until then.
    first_posted: Option<u64>,
    /// The wait behind which no work has been seen yet, and that whose work was the time since the last call.
    pending: Option<usize>,
    filled: Option<usize>,
}

/// Finds waits without work before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    threads: Vec<Thread>,
    pub(super) waits: Vec<IdleWait>,
    pub(super) tests: Vec<Tests>,
    /// The tests so far whose duration was measured, and the sum of these durations.
    measured: (u64, u64),
}

impl IdleWait {
    fn length_ns(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }

    /// Whether this time is short beside the wait.
    fn is_much_longer(&self, ns: u64) -> bool {
        ns.saturating_mul(NEGLIGIBLE) <= self.length_ns()
    }
}

impl Gaps {
    pub(super) fn of(threads: usize) -> Gaps {
        Gaps { threads: vec![Thread::default(); threads], ..Gaps::default() }
    }

    /// The time that a thread has spent outside of calls until its latest call.
    pub(super) fn outside(&self, thread: usize) -> u64 {
        self.threads.get(thread).map_or(0, |thread| thread.outside_ns)
    }

    pub(super) fn call_begins(&mut self, thread: usize, time: Ns) {
        let Some(of) = self.threads.get_mut(thread) else { return };
        of.gap_ns = of.last_end.map_or(0, |end| end.abs_diff(time));
        of.outside_ns = of.outside_ns.saturating_add(of.gap_ns);
        (of.first_posted, of.filled) = (None, None);
        if let Some(wait) = of.pending.and_then(|place| self.waits.get_mut(place))
            && !wait.is_much_longer(of.gap_ns)
        {
            wait.following_ns = of.gap_ns;
            of.filled = of.pending.take();
        }
    }

    /// A call has completed a request that was posted by `thread`, when that had been outside of calls for `posted`.
    pub(super) fn completes(&mut self, (thread, posted): (usize, u64)) {
        if let Some(of) = self.threads.get_mut(thread) {
            of.first_posted = Some(of.first_posted.map_or(posted, |first| first.min(posted)));
        }
    }

    /// A call of a thread from a site ends. `waits`: it waits for requests.
    pub(super) fn call_ends(&mut self, (thread, site): (u32, u32), (begin, end): (Ns, Ns), waits: bool) {
        let Some(of) = self.threads.get_mut(thread as usize) else { return };
        of.last_end = Some(end);
        let call = IdleWait { thread, site, begin, end, following_ns: 0, is_polled: false };
        let pending = of.pending.and_then(|place| self.waits.get(place));
        // What follows another wait depends on that.
        if pending.is_some_and(|wait| !wait.is_much_longer(call.length_ns())) {
            of.pending = None;
        }
        let worked = of.first_posted.map(|first| of.outside_ns.saturating_sub(first));
        if waits && call.length_ns() >= MIN_WAIT_NS && worked.is_some_and(|ns| call.is_much_longer(ns)) {
            of.pending = Some(self.waits.len());
            self.waits.push(call);
        }
    }

    /// Before the call that a thread has begun, there were tests that found nothing: their number, their function, how
    /// many of them were measured, and how long these took. `next`: the function and the site of the call.
    pub(super) fn spun(&mut self, thread: usize, numbers: &[u64], next: (u32, u32)) {
        let (Some(of), &[count, function, ref measured @ ..]) = (self.threads.get_mut(thread), numbers)
        else {
            return;
        };
        if let &[more, ns] = measured {
            self.measured.0 = self.measured.0.saturating_add(more);
            self.measured.1 = self.measured.1.saturating_add(ns);
        }
        let (measured, measured_ns) = match measured {
            &[own, ns] if own > 0 => (own, ns),
            _ => self.measured,
        };
        let function = function as u32;
        let place = self.tests.iter().position(|tests| (tests.function, tests.next) == (function, next));
        let place = place.unwrap_or_else(|| {
            self.tests.push(Tests { function, next, ..Tests::default() });
            self.tests.len() - 1
        });
        let tests = &mut self.tests[place];
        tests.count = tests.count.saturating_add(count);
        let ns = u128::from(count) * u128::from(measured_ns) / u128::from(measured.max(1));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX).min(of.gap_ns);
        let waits = ns > 0 && ns.saturating_mul(MOSTLY) >= of.gap_ns;
        let lost = if waits { of.gap_ns } else { ns };
        of.outside_ns = of.outside_ns.saturating_sub(lost);
        if let Some(wait) = of.filled.and_then(|place| self.waits.get_mut(place)) {
            wait.following_ns = wait.following_ns.saturating_sub(lost);
        }
        if !waits {
            tests.between_work_ns = tests.between_work_ns.saturating_add(lost);
            return;
        }
        tests.waiting_ns = tests.waiting_ns.saturating_add(lost);
        if let (Some(begin), Ok(thread)) = (of.last_end, u32::try_from(thread)) {
            let end = begin.saturating_add_unsigned(lost);
            let wait = IdleWait { thread, site: next.1, begin, end, following_ns: 0, is_polled: true };
            if lost >= MIN_WAIT_NS {
                of.pending = Some(self.waits.len());
                self.waits.push(wait);
            }
        }
    }
}
