//! The sampled threads: each has a record, identified in signals by its number, and a timer on the thread's CPU time.
//!
//! Records are never freed, because a signal may be delivered after its timer was deleted. When a thread has ended and
//! its samples are in the trace, its record is reused.

use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use omptrace_settings::value::SamplingClock;

use crate::lockfree::list::Link;
use crate::lockfree::ring::Ring;
use crate::os::perf::Ticker;
use crate::os::system;
use crate::os::threads::alternate_stack;
use crate::os::time::timer;
use crate::os::time::timer::Timer;
use crate::samples::processor::{Cache, RED_ZONE, thread_pointer};
use crate::session::Session;

/// Number of words in a thread's ring (64 KiB).
const RING_WORDS: usize = 8 << 10;
/// Maximum number of frames of a stack; the innermost are kept.
pub(super) const MAX_FRAMES: usize = 256;
/// Bytes of the alternate stack that a thread gets if it has none.
const ALTERNATE_BYTES: usize = 64 << 10;
/// Bytes of stack that unwinding needs below the handler's frame; 17 KiB were measured.
pub(super) const ROOM: usize = 24 << 10;
/// Maximum number of records, for threads that exist at the same time or whose samples are not in the trace yet.
const MAX_RECORDS: usize = 4096;

static RECORDS: [AtomicPtr<Sampled>; MAX_RECORDS] = [const { AtomicPtr::new(null_mut()) }; MAX_RECORDS];

/// The record of a sampled thread. All zeros is an unused record.
#[repr(C)]
pub(super) struct Sampled {
    link: Link<Sampled>,
    /// The record's index.
    number: Cell<u32>,
    /// The session to which the samples belong.
    session: AtomicPtr<Session>,
    /// The number of the stream with the thread's events.
    stream: AtomicU32,
    /// Distinguishes the thread from all others; 0 while the record is unused.
    thread_pointer: AtomicUsize,
    timer: AtomicI32,
    /// Used instead of the timer: a clock of `perf_event_open`.
    ticker: AtomicI32,
    /// The kernel's id of the clock.
    ticker_id: AtomicU64,
    period_ns: AtomicU64,
    /// The bounds of the thread's original stack.
    stack: Cell<(u64, u64)>,
    /// Made for the record's first thread, and reused.
    cache: Cell<*mut Cache>,
    has_alternate: Cell<bool>,
    /// Number of samples lost because the ring was full, the sum of their weights, and the time of the first.
    lost: AtomicU64,
    lost_ns: AtomicU64,
    lost_since: AtomicU64,
    ring: Ring,
    words: UnsafeCell<[u64; RING_WORDS]>,
    frames: UnsafeCell<[u64; MAX_FRAMES]>,
    alternate: UnsafeCell<[u8; ALTERNATE_BYTES]>,
}

// SAFETY: the non-atomic fields are used only by the record's thread and its signal handler, of which one runs at a
// time. The ring transfers the words. `number` is stored before the record is published.
unsafe impl Sync for Sampled {}

/// Why a thread is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The thread blocks the signal.
    Blocked,
    /// The system provides no timer, or no memory.
    NoTimer(i32),
    /// All records are in use.
    TooMany,
}

/// Number of threads whose clock the program has closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// Called in the handler: the program has closed the thread's clock.
pub(super) fn note_closed() {
    // Relaxed: a count.
    CLOSED.fetch_add(1, Ordering::Relaxed);
}

/// Number of clocks closed by the program.
pub(super) fn closed() -> u32 {
    CLOSED.load(Ordering::Relaxed)
}

/// All records that were ever used.
pub(super) fn all() -> impl Iterator<Item = &'static Sampled> {
    // The first null pointer marks their end, because records are added in order.
    RECORDS.iter().map_while(of_place)
}

/// The record with this number, which comes from a signal and may be arbitrary.
pub(super) fn of_number(number: usize) -> Option<&'static Sampled> {
    RECORDS.get(number).and_then(of_place)
}

fn of_place(place: &AtomicPtr<Sampled>) -> Option<&'static Sampled> {
    // SAFETY: null, or stored by `new_record` and never freed. Acquire; pairs with AcqRel there.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// In a forked child: none of the parent's threads exist. Records are not freed, because the thread that forked may
/// have its alternate stack in one.
pub(super) fn forget_all() {
    for place in &RECORDS {
        // Relaxed: the child has one thread.
        let record = place.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: as in `of_place`.
        match unsafe { record.as_ref() } {
            None => return,
            Some(record) => record.end_ticker(),
        }
    }
}

fn take() -> Option<&'static Sampled> {
    all().find(|record| record.link.claim()).or_else(new_record)
}

fn new_record() -> Option<&'static Sampled> {
    let memory = system::map_zeroed(size_of::<Sampled>()).ok()?;
    let new: *mut Sampled = memory.cast();
    // SAFETY: page-aligned zeroed memory of the right size, never unmapped, and all zeros is a valid record.
    let record = unsafe { &*new };
    record.link.claim();
    for (number, place) in RECORDS.iter().enumerate() {
        record.number.set(number as u32);
        // AcqRel; pairs with Acquire in `of_place`: a thread that sees the record sees its number.
        let (ours, theirs) = (Ordering::AcqRel, Ordering::Relaxed);
        if place.compare_exchange(null_mut(), new, ours, theirs).is_ok() {
            return Some(record);
        }
    }
    system::unmap(memory, size_of::<Sampled>());
    None
}

/// Starts sampling the calling thread with `signal`, after each `period_ns` of its CPU time; `stream` is the number of
/// its event stream.
///
/// # Errors
/// Why the thread is not sampled.
pub(super) fn begin(
    session: &'static Session,
    stream: u32,
    clock: SamplingClock,
    signal: i32,
    period_ns: u64,
) -> Result<&'static Sampled, Refusal> {
    if timer::is_blocked(signal) {
        return Err(Refusal::Blocked);
    }
    let record = take().ok_or(Refusal::TooMany)?;
    record.stack.set(stack_of_this_thread());
    // Relaxed: as the stream.
    record.period_ns.store(period_ns, Ordering::Relaxed);
    if record.cache.get().is_null() {
        // Never freed, like the record.
        record.cache.set(Box::into_raw(Box::new(Cache::new_in())));
    }
    // Relaxed: ordered for the draining thread by the ring's words.
    record.stream.store(stream, Ordering::Relaxed);
    record.session.store(std::ptr::from_ref(session).cast_mut(), Ordering::Release);
    record.thread_pointer.store(thread_pointer(), Ordering::Relaxed);
    let alternate = record.alternate.get().cast();
    record.has_alternate.set(alternate_stack::lend(alternate, ALTERNATE_BYTES, ROOM));
    // Relaxed: the thread that ends the session has waited for this thread, or finds no timer.
    let armed = match clock {
        SamplingClock::Cpu => Timer::on_this_thread(signal, record.number.get() as usize, period_ns)
            .map(|timer| record.timer.store(timer.number(), Ordering::Relaxed)),
        SamplingClock::Perf => Ticker::on_this_thread(signal, period_ns).map(|ticker| {
            let (descriptor, id) = ticker.parts();
            record.ticker_id.store(id, Ordering::Relaxed);
            // Release; pairs with Acquire in `disarm` and `go_on`: a thread that sees the descriptor sees the id.
            record.ticker.store(descriptor + 1, Ordering::Release);
        }),
    };
    match armed {
        Ok(()) => Ok(record),
        Err(error) => {
            record.end();
            Err(Refusal::NoTimer(error.raw_os_error().unwrap_or(0)))
        }
    }
}

impl Sampled {
    /// The record's index.
    pub(super) fn number(&self) -> usize {
        self.number.get() as usize
    }

    /// Called on its thread when it ends: no sample follows. The draining thread frees the record.
    pub(super) fn end(&self) {
        self.disarm();
        // Relaxed: read only by this thread's handler. The timer is deleted, and a pending signal has been delivered.
        self.thread_pointer.store(0, Ordering::Relaxed);
        if !self.has_alternate.get() || alternate_stack::take_back(self.alternate.get().cast()) {
            self.ring.end();
        }
        // Otherwise the thread is running on the alternate stack, and the record remains its own.
    }

    /// Stops sending signals; called by any thread.
    pub(super) fn disarm(&self) {
        // Relaxed: only one of several threads gets the number.
        let number = self.timer.swap(0, Ordering::Relaxed);
        if let Some(timer) = Timer::of_number(number) {
            timer.delete();
        }
        self.end_ticker();
    }

    /// Called by any thread, and in a forked child, which has inherited its parent's descriptors.
    fn end_ticker(&self) {
        // Acquire; pairs with Release in `begin`. Only one of several threads gets the clock.
        if let Some(ticker) = self.ticker_of(self.ticker.swap(0, Ordering::Acquire)) {
            ticker.end();
        }
    }

    fn ticker_of(&self, number: i32) -> Option<Ticker> {
        let descriptor = number.checked_sub(1).filter(|descriptor| *descriptor >= 0)?;
        Some(Ticker::of((descriptor, self.ticker_id.load(Ordering::Relaxed))))
    }

    /// Called in the handler: restarts the clock. False if the program has closed it.
    pub(super) fn go_on(&self) -> bool {
        // Acquire; pairs with Release in `begin`.
        let ticker = self.ticker_of(self.ticker.load(Ordering::Acquire));
        ticker.is_none_or(Ticker::go_on)
    }

    /// Whether the record belongs to the calling thread.
    pub(super) fn is_of_this_thread(&self) -> bool {
        // Relaxed: stored by this thread itself, or different.
        self.thread_pointer.load(Ordering::Relaxed) == thread_pointer()
    }

    /// The session to which the samples belong.
    pub(super) fn session(&self) -> Option<&'static Session> {
        // SAFETY: null, or a session, which is never freed. Acquire; pairs with Release in `begin`.
        unsafe { self.session.load(Ordering::Acquire).as_ref() }
    }

    /// Whether the samples belong to `session`.
    pub(super) fn is_of(&self, session: &Session) -> bool {
        // Acquire; pairs with Release in `begin`.
        std::ptr::eq(self.session.load(Ordering::Acquire), session)
    }

    /// The number of the stream with the thread's events.
    pub(super) fn stream(&self) -> u32 {
        // Relaxed: stored before the session.
        self.stream.load(Ordering::Relaxed)
    }

    /// The requested CPU time between two samples, in nanoseconds.
    pub(super) fn period_ns(&self) -> u64 {
        // Relaxed: as above.
        self.period_ns.load(Ordering::Relaxed)
    }

    /// Draining thread: whether there are samples, or lost ones.
    pub(super) fn has_news(&self) -> bool {
        !self.ring.filled().is_empty() || self.lost.load(Ordering::Relaxed) > 0
    }

    /// Draining thread: the result of [`Sampled::take_lost`] could not be reported.
    pub(super) fn give_lost_back(&self, samples: u64, weight_ns: u64) {
        self.lost.fetch_add(samples, Ordering::Relaxed);
        self.lost_ns.fetch_add(weight_ns, Ordering::Relaxed);
    }

    /// The thread's original stack from the red zone below `stack_pointer` on; empty if the stack pointer is on another
    /// stack.
    pub(super) fn stack_above(&self, stack_pointer: u64) -> Range<u64> {
        let (low, high) = self.stack.get();
        match (low..high).contains(&stack_pointer) {
            true => stack_pointer.saturating_sub(RED_ZONE).max(low)..high,
            false => 0..0,
        }
    }

    /// The handler's stack, which contains `address`; empty if unknown. `alternate` is the thread's alternate stack.
    pub(super) fn stack_around(&self, address: u64, alternate: Range<u64>) -> Range<u64> {
        let (low, high) = self.stack.get();
        let stacks = [alternate, low..high];
        stacks.into_iter().find(|stack| stack.contains(&address)).unwrap_or(address..address)
    }

    /// framehop's cache, and room for frames; only on the record's thread, in the handler or with the signal blocked.
    #[allow(clippy::mut_from_ref, reason = "the handler has them alone")]
    pub(super) fn scratch(&self) -> (&mut Cache, &mut [u64; MAX_FRAMES]) {
        // SAFETY: made in `begin`; one handler runs at a time on the record's thread, and nothing else uses them.
        unsafe { (&mut *self.cache.get(), &mut *self.frames.get()) }
    }

    /// Adds a record of words, given in parts; false if there is no room. Only on the record's thread, in the handler
    /// or with the signal blocked.
    pub(super) fn push(&self, parts: &[&[u64]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let Some(at) = self.ring.room(len + 1, RING_WORDS) else {
            return false;
        };
        let words = self.words.get().cast::<u64>();
        let parts = parts.iter().flat_map(|part| part.iter());
        let mut next = at;
        for word in std::iter::once(&(len as u64)).chain(parts) {
            // SAFETY: within the ring, and the reader does not access these words until they are published.
            unsafe { words.add(next % RING_WORDS).write(*word) };
            next = next.wrapping_add(1);
        }
        self.ring.publish(next);
        true
    }

    /// Whether half of the ring is free, which is reserved for samples.
    pub(super) fn has_room_to_spare(&self) -> bool {
        self.ring.room(RING_WORDS / 2, RING_WORDS).is_some()
    }

    /// Whether the ring is filling up.
    pub(super) fn is_filling_up(&self) -> bool {
        self.ring.room(RING_WORDS / 4 * 3, RING_WORDS).is_none()
    }

    /// Called in the handler: a sample found no room.
    pub(super) fn lose(&self, now: u64, weight_ns: u64) {
        // Relaxed, like all stores except the last, which orders them. The draining thread may reset the count
        // meanwhile; the time is then that of an earlier loss.
        if self.lost.load(Ordering::Relaxed) == 0 {
            self.lost_since.store(now, Ordering::Relaxed);
        }
        self.lost_ns.fetch_add(weight_ns, Ordering::Relaxed);
        // Release; pairs with Acquire in `take_lost`: the time and the weight are visible.
        self.lost.fetch_add(1, Ordering::Release);
    }

    /// Draining thread: the number of lost samples, the sum of their weights, and the time of the first.
    pub(super) fn take_lost(&self) -> Option<(u64, u64, u64)> {
        // Acquire; pairs with Release in `lose`.
        if self.lost.load(Ordering::Acquire) == 0 {
            return None;
        }
        // Relaxed: changes only while the count is 0.
        let since = self.lost_since.load(Ordering::Relaxed);
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let lost_ns = self.lost_ns.swap(0, Ordering::Relaxed);
        Some((lost, lost_ns, since))
    }

    /// Draining thread: reads the next record; false if there is none.
    pub(super) fn pop(&self, into: &mut Vec<u64>) -> bool {
        let filled = self.ring.filled();
        if filled.is_empty() {
            return false;
        }
        let words = self.words.get().cast::<u64>();
        // SAFETY: within the ring; the words were published, and the writer does not access them until they are
        // consumed.
        let word = |at: usize| unsafe { words.add(at % RING_WORDS).read() };
        let begin = filled.start.wrapping_add(1);
        let end = begin.wrapping_add(word(filled.start) as usize);
        into.clear();
        into.extend((begin..end).map(word));
        self.ring.consume(end);
        true
    }

    /// Draining thread: whether the thread has ended, so that nothing follows what is in the ring now.
    pub(super) fn has_ended(&self) -> bool {
        self.ring.has_ended()
    }

    /// Draining thread: frees the record of a thread that has ended, after everything was drained.
    pub(super) fn give_back(&self) {
        self.ring.reset();
        self.session.store(null_mut(), Ordering::Relaxed);
        self.link.give_back();
    }
}

/// The bounds of the calling thread's stack; zeros if unknown.
fn stack_of_this_thread() -> (u64, u64) {
    timer::stack_of_this_thread().unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_gives_what_it_took_and_refuses_what_it_has_no_room_for() {
        let record = new_record().unwrap();
        let (mut taken, mut given, mut words) = (0, 0, Vec::new());
        // Much more than the ring holds, in records of several lengths, each in two parts.
        for round in 0..50_u64 {
            while record.push(&[&[taken], &vec![taken; (taken % 300) as usize]]) {
                taken += 1;
            }
            // The ring is full, or almost full.
            assert!(taken >= given + 20, "{taken} {given}");
            let most = if round % 2 == 0 { u64::MAX } else { given + 10 };
            while given < most && record.pop(&mut words) {
                assert_eq!(words, vec![given; 1 + (given % 300) as usize]);
                given += 1;
            }
        }
        assert!(taken > 1000);
        record.give_back();
        assert!(!record.has_news() && !record.pop(&mut words));
    }

    #[test]
    fn what_is_lost_is_counted_once() {
        let record = new_record().unwrap();
        record.lose(5, 1000);
        record.lose(9, 2000);
        assert!(record.has_news());
        assert_eq!(record.take_lost(), Some((2, 3000, 5)));
        assert_eq!(record.take_lost(), None);
        record.give_back();
    }
}
