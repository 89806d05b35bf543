//! The hot path: writes one thread's events into its chunk.
//!
//! A [`Recorder`] belongs to one thread and is in private memory that a fork wipes ([`crate::session::fork`]). A forked
//! child sees it as full, takes the cold path, and starts its own session. The chunk is in the spool, which is shared
//! with a file, so the kernel keeps every published event when the process is killed.
//!
//! ```text
//! thread-local pointer -> Recorder { limit, ready, words, base, predictors }
//!                                                  |
//!                         spool chunk: [ header .. published ] [ word word word ... ]
//! ```
//!
//! A signal handler may run between any two instructions of the hot path. Its own events may end the chunk, begin
//! another, pause recording, or end the session. So the hot path first clears `ready`, and reads nothing else of the
//! recorder before that; it sees everything that a handler has done until then. From then on, a handler's events are
//! counted as lost, and nothing changes except the limit. The hot path never follows a null pointer to a chunk: a
//! recorder wiped by a fork is not ready, and one without a chunk has [`NONE`], with no published words and limit 0.
//! `tests/tests/handlers.rs` runs a handler at each instruction.
//!
//! A typical event executes only [`Recorder::try_put_predicted`]. If that fails, the callback tail-calls another
//! function with the same arguments ([`crate::callbacks`]), which tries [`Recorder::try_put`]. If the clock is not a
//! CPU counter ([`clock::kind`]), every event goes there. In rare cases that fails, too, and the cold path follows:
//!
//! * there is no chunk, or it is full
//! * the event occurs inside another event
//! * a time or a value does not fit
//! * the code address is new in this chunk, and its module was not looked up shortly before
//! * recording is paused

use std::cell::{Cell, UnsafeCell};
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::time::Duration;

use omptrace_trace_format::block::CHUNK_HEADER_WORDS;
use omptrace_trace_format::event::{CompactRow, MAX_COMPACT_WORDS, ParallelBegin, TICK_BITS, WideRow};
use omptrace_trace_format::predict::State;

use crate::lockfree::chunk_header::Header;
use crate::lockfree::gate::{Limit, ModeCell};
use crate::lockfree::list::{Link, Linked, List};
use crate::os::sanitizer;
use crate::os::system;
use crate::os::time::clock;
use crate::os::time::clock::{ClockKind, Stopwatch};
use crate::recorder::thread_stream::Stream;

/// The recording mode of the process, checked by callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Record nothing: there is no session yet, the session ended, or tracing failed.
    Off = 0,
    /// Record.
    Record = 1,
    /// Assign ids but record nothing: the program paused or ended recording.
    Pause = 2,
    /// A forked child that has not used OpenMP yet.
    Child = 3,
}

static MODE: ModeCell = ModeCell(AtomicU8::new(Mode::Off as u8));

impl Mode {
    /// The process's mode.
    pub(crate) fn current() -> Mode {
        Mode::of(MODE.load())
    }

    /// Sets the mode. In any mode except [`Mode::Record`], every event takes the cold path, which checks the mode.
    pub(crate) fn set(self) {
        MODE.switch(self as u8);
        if self != Mode::Record {
            all().for_each(Recorder::close);
        }
    }

    fn of(number: u8) -> Mode {
        match number {
            1 => Mode::Record,
            2 => Mode::Pause,
            3 => Mode::Child,
            _ => Mode::Off,
        }
    }
}

/// The clocks for which a function works: only a CPU counter, or any clock.
const COUNTER: bool = false;
const ANY_CLOCK: bool = true;

/// Number of words kept free at the end of a chunk: the maximum of a compact event, which is always stored as a whole.
const MARGIN: usize = MAX_COMPACT_WORDS;

/// The state of one thread. All zeros is a full recorder, as a fork leaves it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Recorder {
    /// Number of words of the chunk before the margin; 0 if there is no chunk, or it is closed. Any thread may close it
    /// ([`Mode::set`]); only its own thread opens it.
    limit: Limit,
    /// Used instead of `limit` if the clock is not a CPU counter, which disables [`Recorder::try_put_predicted`].
    limit_of_other_clock: Limit,
    /// Cleared while the hot path stores an event, and before a stream begins. Atomic only because signal handlers on
    /// the same thread read it.
    ready: AtomicBool,
    /// The chunk's first word, or the address after [`NONE`]. Null only if the recorder is not ready.
    words: Cell<*mut u64>,
    /// The clock at the chunk's start.
    base: Cell<u64>,
    /// Time at which the cold path last checked whether modules have changed.
    asked: Cell<u64>,
    /// The predictors.
    state: UnsafeCell<State>,
    /// Fields that only the cold path needs.
    pub(crate) stream: Stream,
    /// Link in the list of all recorders.
    link: Link<Recorder>,
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// Ticks since the chunk's start.
    since_base: u64,
    /// Ticks since modules were last checked.
    since_asked: u64,
}

/// The free words of a chunk, after the last event.
#[derive(Debug)]
struct Room<'r> {
    first: *mut u64,
    words: usize,
    chunk: PhantomData<&'r mut [u64]>,
}

impl<'r> Room<'r> {
    /// # Safety
    /// The words are valid for reading and writing by this thread alone; there are at least [`MARGIN`].
    #[inline(always)]
    unsafe fn new(first: *mut u64, words: usize) -> Room<'r> {
        Room { first, words, chunk: PhantomData }
    }

    /// Room for any compact event.
    #[inline(always)]
    fn compact(self) -> &'r mut [u64; MAX_COMPACT_WORDS] {
        // SAFETY: there are at least that many ([`Room::new`]).
        unsafe { &mut *self.first.cast() }
    }

    #[inline(always)]
    fn all(self) -> &'r mut [u64] {
        // SAFETY: by the contract of [`Room::new`].
        unsafe { std::slice::from_raw_parts_mut(self.first, self.words) }
    }
}

/// The header used when there is no chunk: it is never written, and its length is not below the limit 0.
static NONE: Header = Header([const { AtomicU64::new(0) }; CHUNK_HEADER_WORDS]);

// SAFETY: the non-atomic fields are accessed only by the recorder's own thread, with two exceptions. `IDLE` and `OURS`
// are shared by many threads but never written: they are never ready, and the cold path uses neither. The thread that
// ends a session accesses the recorders of other threads once none of them is on the cold path (`Session::end`,
// `lockfree::gate`).
unsafe impl Sync for Recorder {}

/// The recorder of threads that have none; always full.
pub(crate) static IDLE: Recorder = Recorder::new();

/// The recorder of threads that do the tracer's own work; always full, and not replaced by another one. Functions
/// called by the tracer, such as `malloc`, may be the program's own and use OpenMP; their events are not the program's.
pub(crate) static OURS: Recorder = Recorder::new();

impl Recorder {
    const fn new() -> Recorder {
        Recorder {
            limit: Limit(AtomicUsize::new(0)),
            limit_of_other_clock: Limit(AtomicUsize::new(0)),
            ready: AtomicBool::new(false),
            words: Cell::new(null_mut()),
            base: Cell::new(0),
            asked: Cell::new(0),
            state: UnsafeCell::new(State::new(0)),
            stream: Stream::new(),
            link: Link { taken: AtomicBool::new(false), next: AtomicPtr::new(std::ptr::null_mut()) },
        }
    }

    /// Whether this is [`IDLE`] or [`OURS`], which belong to no thread.
    pub(crate) fn is_idle(&self) -> bool {
        std::ptr::eq(self, &IDLE) || self.is_ours()
    }

    /// Whether this is [`OURS`].
    pub(crate) fn is_ours(&self) -> bool {
        std::ptr::eq(self, &OURS)
    }

    /// Records the event made by `row` if all of it is predicted, so that it takes one word and the predictors have
    /// almost nothing to learn. A code address that the predictors do not have takes a second word, because a program
    /// may have more addresses than there are slots. Returns `false` and changes nothing if neither applies; the caller
    /// then uses [`Recorder::try_put`]. `row` may run again there, so its only side effect may be to assign an object's
    /// id.
    #[inline(always)]
    pub(crate) fn try_put_predicted<R: CompactRow>(&self, row: impl FnOnce(&State) -> R) -> bool {
        self.try_store::<COUNTER>(|state, cursor, room| {
            let out = room.compact();
            let row = row(state);
            if !row.fits() {
                return None;
            }
            if row.has_new_code(state) {
                let modules = &self.stream.modules;
                if !modules.newest_has(row.code()) || !row.is_predicted_but_for_code(state) {
                    return None;
                }
                let ticks = self.ticks::<R, COUNTER>(&row)?;
                if !modules.newest_is_there(ticks.since_asked) {
                    return None;
                }
                [out[0], out[1]] = row.encode_new_code(state, ticks.since_base);
                // Opaque, so that the compiler does not merge both paths, which would make the other one slower.
                return Some(black_box(cursor) + 2);
            }
            if !row.is_predicted(state) {
                return None;
            }
            out[0] = row.encode_predicted(state, self.ticks::<R, COUNTER>(&row)?.since_base);
            Some(cursor + 1)
        })
    }

    /// Records the event made by `row`; returns `false` and changes nothing if the cold path is needed. `row` is as in
    /// [`Recorder::try_put_predicted`].
    #[inline(always)]
    pub(crate) fn try_put<R: CompactRow>(&self, row: impl FnOnce(&State) -> R) -> bool {
        self.try_store::<ANY_CLOCK>(|state, cursor, room| {
            let out = room.compact();
            let row = row(state);
            let ticks = self.ticks::<R, ANY_CLOCK>(&row)?;
            if !row.fits() {
                return None;
            }
            if !row.has_new_code(state) {
                return Some(cursor + row.encode::<true>(state, ticks.since_base, out));
            }
            let is_known = self.stream.modules.hold(row.code(), ticks.since_asked);
            is_known.then(|| cursor + row.encode::<false>(state, ticks.since_base, out))
        })
    }

    /// Records a wide event that does not allocate; returns `false` and changes nothing if the cold path is needed.
    #[inline]
    pub(crate) fn try_put_wide(&self, row: &impl WideRow) -> bool {
        self.try_store::<ANY_CLOCK>(|_, cursor, room| {
            let ticks = clock::ticks().wrapping_sub(self.base.get());
            match ticks >> TICK_BITS {
                0 => Some(cursor + row.encode(ticks, room.all())?),
                _ => None,
            }
        })
    }

    /// The event's time; `None` if it does not fit, or modules may have been unloaded.
    #[inline(always)]
    fn ticks<R: CompactRow, const ANY: bool>(&self, row: &R) -> Option<Ticks> {
        let now = if ANY { clock::ticks() } else { clock::counter() };
        let since_base = now.wrapping_sub(self.base.get());
        if since_base >> TICK_BITS != 0 {
            return None;
        }
        let since_asked = now.wrapping_sub(self.asked.get());
        // Only the events of parallel regions check for unloaded modules; for others, the condition is constant.
        if R::KIND == ParallelBegin::KIND && self.stream.modules.may_be_gone(since_asked) {
            let is_there = self.ask_for_modules(row.code(), now);
            return is_there.then_some(Ticks { since_base, since_asked: 0 });
        }
        Some(Ticks { since_base, since_asked })
    }

    /// Whether all known modules are still loaded, including the one of `code`, which is calling.
    #[cold]
    #[inline(never)]
    fn ask_for_modules(&self, code: u64, now: u64) -> bool {
        let are_there = self.stream.modules.are_there(code);
        if are_there {
            self.asked.set(now);
        }
        are_there
    }

    /// Publishes the words that `put` stores. Fails if there is no room, or `put` fails. `put` gets the position of the
    /// first word, and returns the position after the last.
    #[inline(always)]
    fn try_store<const ANY: bool>(
        &self,
        put: impl FnOnce(&mut State, usize, Room<'_>) -> Option<usize>,
    ) -> bool {
        // Relaxed, with compiler fences: shared only with signal handlers on this thread. A handler that interrupts
        // between the load and the store of `ready` restores its value before it returns.
        if !self.ready.load(Ordering::Relaxed) {
            return false;
        }
        self.ready.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let words = self.words.get();
        // SAFETY: the recorder was ready, so `begin_chunk` was given a header that stays mapped, or it is `NONE`; it is
        // only accessed like this. If a signal handler has forked since, it is `NONE` in the child (`outlive_fork`).
        let published = unsafe { &*header_before(words) };
        let cursor = published.written();
        sanitizer::acquire(published);
        let mut stored = None;
        // If the chunk was just freed because a session ended (`Spool::remove`), the cursor is 0, and the stored words
        // are never read.
        let other = if ANY { self.limit_of_other_clock.get() } else { 0 };
        let limit = self.limit.get() | other;
        if cursor < limit {
            // SAFETY: only this thread uses its recorder, and its signal handlers do not while it is not ready.
            let state = unsafe { &mut *self.state.get() };
            // SAFETY: the limit is not 0, so there is a chunk. `begin_chunk` was given a chunk that belongs to this
            // thread alone until it is handed over, which no handler does while the recorder is not ready. There are
            // `MARGIN` words after the limit, and the cursor is below the limit.
            let room = unsafe { Room::new(words.add(cursor), limit - cursor + MARGIN) };
            stored = put(state, cursor, room);
            if let Some(end) = stored {
                published.publish(end);
            }
        }
        compiler_fence(Ordering::SeqCst);
        self.ready.store(true, Ordering::Relaxed);
        stored.is_some()
    }

    /// Stores the time at which modules were checked.
    pub(crate) fn asked_for_modules(&self, now: u64) {
        self.asked.set(now);
    }

    /// The predictors, for the cold path.
    pub(crate) fn state(&self) -> &State {
        // SAFETY: only this thread uses its recorder, and nothing in this crate keeps the reference beyond an event.
        unsafe { &*self.state.get() }
    }

    /// The later one of `ticks` and the chunk's start.
    pub(crate) fn time_in_chunk(&self, ticks: u64) -> u64 {
        ticks.max(self.base.get())
    }

    /// Calls `encode` to write an event at the cursor, on the cold path, with the predictors, the ticks since the base,
    /// and all remaining words. Returns `None` if the event did not fit.
    pub(crate) fn put_slowly(
        &self,
        now: u64,
        encode: impl FnOnce(&mut State, u64, &mut [u64]) -> Option<usize>,
    ) -> Option<()> {
        let ticks = now.wrapping_sub(self.base.get());
        if !self.has_chunk() || ticks >> TICK_BITS != 0 {
            return None;
        }
        let words = self.words.get();
        // SAFETY: as in `try_store`.
        let published = unsafe { &*header_before(words) };
        let (cursor, end) = (published.written(), self.stream.chunk_words.get());
        sanitizer::acquire(published);
        // SAFETY: as in `try_store`; `chunk_words` are the words of the chunk.
        let room = unsafe { std::slice::from_raw_parts_mut(words.add(cursor), end - cursor) };
        // SAFETY: as in `try_store`; `Busy` and the closed limit exclude signal handlers.
        let state = unsafe { &mut *self.state.get() };
        published.publish(cursor + encode(state, ticks, room)?);
        Some(())
    }

    /// Calls `encode` only for its effect on the predictors, mainly the newest id; the words are discarded. The chunk
    /// must not be continued after that.
    pub(crate) fn put_nowhere(&self, encode: impl FnOnce(&mut State, u64, &mut [u64]) -> Option<usize>) {
        // SAFETY: as in `put_slowly`.
        let state = unsafe { &mut *self.state.get() };
        encode(state, 0, &mut [0; 2 * MAX_COMPACT_WORDS]);
    }

    /// Starts a chunk of `len` words for events, closed to the hot path until [`Recorder::open`].
    ///
    /// # Safety
    /// `words` are valid for writing by this thread alone until [`Recorder::end_chunk`], and are preceded by a chunk's
    /// [`Header`] with published length 0.
    pub(crate) unsafe fn begin_chunk(&self, words: *mut u64, len: usize, base: u64, newest_id: u64) {
        // SAFETY: as in `put_slowly`.
        unsafe { &mut *self.state.get() }.reset(newest_id);
        self.stream.chunk_words.set(len);
        self.words.set(words);
        self.base.set(base);
    }

    /// Lets the hot path store events in `len` words, in any mode.
    ///
    /// # Safety
    /// As for [`Recorder::begin_chunk`]; no other thread knows the recorder.
    pub(super) unsafe fn begin_trial(&self, words: *mut u64, len: usize, base: u64) {
        // SAFETY: the caller's contract.
        unsafe { self.begin_chunk(words, len, base, 0) };
        // Relaxed: only this thread uses it.
        self.limit_in_use().0.store(len - MARGIN, Ordering::Relaxed);
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Detaches the chunk; the next event takes the cold path.
    pub(crate) fn end_chunk(&self) {
        self.close();
        self.words.set(none());
    }

    /// Opens the chunk to the hot path again, if the mode permits it.
    pub(crate) fn open(&self) {
        let words = self.stream.chunk_words.get() - MARGIN;
        self.limit_in_use().open(words, &MODE, Mode::Record as u8);
    }

    fn limit_in_use(&self) -> &Limit {
        match clock::kind() {
            ClockKind::Counter => &self.limit,
            ClockKind::Monotonic => &self.limit_of_other_clock,
        }
    }

    /// Closes the chunk to the hot path.
    pub(crate) fn close(&self) {
        self.limit.close();
        self.limit_of_other_clock.close();
    }

    /// Whether the thread has a chunk.
    pub(crate) fn has_chunk(&self) -> bool {
        let words = self.words.get();
        !words.is_null() && words != none()
    }

    /// For a signal handler: the header of the chunk in which the interrupted hot path is storing an event; null if
    /// there is none.
    pub(crate) fn storing_in(&self) -> *mut u8 {
        match self.is_storing() && self.has_chunk() {
            true => header_before(self.words.get()).cast(),
            false => null_mut(),
        }
    }

    /// Whether the hot path is storing an event and was interrupted by a signal handler.
    pub(crate) fn is_storing(&self) -> bool {
        // Relaxed: shared only with signal handlers on this thread.
        self.stream.number.get() != 0 && !self.ready.load(Ordering::Relaxed)
    }

    /// Points the recorder of a forked child, which the fork wiped, to [`NONE`]. If a signal handler has forked, it may
    /// return to the hot path, which then writes there.
    pub(crate) fn outlive_fork(&self) {
        if !self.is_idle() {
            self.words.set(none());
        }
    }
}

/// The address after [`NONE`], which is never read or written.
fn none() -> *mut u64 {
    (&raw const NONE).cast_mut().wrapping_add(1).cast()
}

/// The chunk header before this first word.
#[inline(always)]
fn header_before(words: *mut u64) -> *mut Header {
    words.cast::<Header>().wrapping_sub(1)
}

impl Linked for Recorder {
    fn link(&self) -> &Link<Recorder> {
        &self.link
    }
}

/// All recorders of the process, whether used by a thread or not.
static ALL: List<Recorder> = List(AtomicPtr::new(std::ptr::null_mut()));

/// Every recorder.
pub(crate) fn all() -> impl Iterator<Item = &'static Recorder> {
    ALL.iter()
}

/// Takes a recorder for the calling thread; `None` if there is no memory.
pub(crate) fn take() -> Option<&'static Recorder> {
    if let Some(recorder) = ALL.take() {
        return Some(recorder);
    }
    let memory = system::map_wiped_on_fork(size_of::<Recorder>()).ok()?;
    // SAFETY: page-aligned zeroed memory of the right size, never unmapped, and all zeros is a valid recorder.
    let new: &'static Recorder = unsafe { &*memory.cast() };
    new.claim();
    ALL.push(new);
    Some(new)
}

/// Waits for at most `most` until no thread is on the cold path; returns whether that was achieved.
pub(crate) fn wait_until_quiet(most: Duration) -> bool {
    let start = Stopwatch::start();
    while all().any(|recorder| recorder.stream.busy.is_busy()) {
        if start.elapsed() >= most {
            return false;
        }
        system::yield_now();
    }
    true
}

/// In a forked child: none of the parent's threads exist.
pub(crate) fn forget_all() {
    ALL.forget();
}

impl Recorder {
    /// Takes the recorder for the calling thread; false if another thread has it.
    pub(crate) fn claim(&self) -> bool {
        self.link.claim()
    }

    /// Starts stream `number` with this recorder. Returns false and changes nothing if recording has ended: the end of
    /// a session checks all of its recorders, even those given back.
    pub(crate) fn begin_stream(&self, number: u32) -> bool {
        let nested = self.stream.busy.enter();
        let records = Mode::current() != Mode::Off;
        if records {
            self.stream.reset(number);
            if self.words.get().is_null() {
                self.words.set(none());
            }
            // A thread that ended in a signal handler may have left the hot path in the middle of an event.
            self.ready.store(true, Ordering::Relaxed);
        }
        self.stream.busy.leave(nested);
        records
    }

    /// Gives the recorder back. The calling thread no longer uses it.
    pub(crate) fn give_back(&self) {
        self.link.give_back();
    }
}

#[cfg(test)]
mod tests {
    use ompt_sys::ompt_mutex_lock;
    use omptrace_trace_format::event::{Dependences, Event, MutexAcquired, ParallelEnd, decode};
    use omptrace_trace_format::field::{Address, Dependence, Id};

    use crate::recorder::known_modules::Known;

    use super::*;

    /// A recorder with room for `words`, and its memory.
    fn on_trial(words: usize) -> (Box<Recorder>, Vec<u64>) {
        let mut memory = vec![0; CHUNK_HEADER_WORDS + words];
        let recorder = Box::new(Recorder::new());
        // SAFETY: only this thread uses the memory, which outlives the recorder's use; zeros before the words are a
        // header.
        unsafe {
            let words_at = memory.as_mut_ptr().add(CHUNK_HEADER_WORDS);
            recorder.begin_trial(words_at, words, clock::ticks());
        }
        (recorder, memory)
    }

    fn acquired(code: u64) -> MutexAcquired {
        MutexAcquired { kind: ompt_mutex_lock, wait_id: Address(0), codeptr_ra: Address(code) }
    }

    #[test]
    fn a_loop_with_more_code_addresses_than_slots_stays_on_the_hot_path() {
        clock::choose_counter();
        let (recorder, memory) = on_trial(1 << 14);
        assert!(!recorder.try_put_predicted(|_| acquired(0x4000)), "nobody knows the module");
        assert!(!recorder.try_put(|_| acquired(0x4000)), "nobody knows the module");
        recorder.stream.modules.add(Known { start: 0x4000, end: 0x8000, stays: true, ..Known::NONE });
        let codes = || (0..3).flat_map(|_| (0..1000).map(|place| 0x4000 + 7 * place));
        for code in codes() {
            assert!(recorder.try_put_predicted(|_| acquired(code)), "{code:#x}");
        }
        assert!(!recorder.try_put_predicted(|_| acquired(0x8000)), "another module");
        let with_surprise = ParallelEnd {
            parallel_data: Id(5),
            encountering_task_data: Id(6),
            flags: ompt_sys::ompt_parallel_flag_t(1),
            codeptr_ra: Address(0x7ff0),
        };
        assert!(!recorder.try_put_predicted(|_| with_surprise) && recorder.try_put(|_| with_surprise));
        // SAFETY: written by `publish`.
        let published = unsafe { &*header_before(recorder.words.get()) }.written();
        let mut rest = &memory[CHUNK_HEADER_WORDS..][..published];
        let mut state = State::new(0);
        let mut events = Vec::new();
        while !rest.is_empty() {
            let decoded = decode(rest, &mut state).expect("an event");
            rest = &rest[decoded.len..];
            events.push(decoded.event);
        }
        let expected = codes().map(|code| Event::from(acquired(code)));
        assert!(events.into_iter().eq(expected.chain([Event::from(with_surprise)])));
    }

    #[test]
    fn a_wide_event_of_more_words_than_a_compact_one_stays_on_the_hot_path() {
        clock::choose_counter();
        let (recorder, memory) = on_trial(64);
        let deps = [Dependence { variable: 7, dependence_type: ompt_sys::ompt_dependence_type_in }; 8];
        let row = Dependences { task_data: Id(3), deps: (&deps[..]).into(), ndeps: 8 };
        assert!(recorder.try_put_wide(&row) && recorder.try_put_wide(&row));
        // SAFETY: written by `publish`.
        let published = unsafe { &*header_before(recorder.words.get()) }.written();
        assert_eq!(published, 42);
        let mut state = State::new(0);
        let second = decode(&memory[CHUNK_HEADER_WORDS + 21..][..21], &mut state).expect("an event");
        assert_eq!(second.event, Event::from(row.clone()));
        assert!(recorder.try_put_wide(&row), "it ends just before the chunk does");
        assert!(!recorder.try_put_wide(&row), "there is no room");
    }

    #[test]
    fn a_module_that_may_go_is_asked_for_now_and_then() {
        clock::choose_counter();
        let (recorder, _memory) = on_trial(1 << 10);
        recorder.stream.modules.add(Known { start: 0x4000, end: 0x8000, ..Known::NONE });
        assert!(!recorder.try_put_predicted(|_| acquired(0x4000)) && !recorder.try_put(|_| acquired(0x4000)));
        // Repeated, because the thread may be preempted in between.
        let soon_after = || {
            recorder.asked_for_modules(clock::ticks());
            recorder.try_put_predicted(|_| acquired(0x4000))
        };
        assert!((0..100).any(|_| soon_after()));
    }
}
