//! The hot path: one thread's events into its chunk.
//!
//! A [`Recorder`] belongs to one thread and lies in private memory that a fork wipes ([`crate::session::fork`]). A child
//! finds a full recorder, takes the cold path, and starts a session of its own. The chunk itself lies in the spool, which is
//! shared with a file. So the kernel keeps every published event when the process is killed.
//!
//! ```text
//! thread-local pointer -> Recorder { limit, ready, words, base, predictors }
//!                                                  |
//!                         spool chunk: [ header .. published ] [ word word word ... ]
//! ```
//!
//! A signal handler may run between any two instructions of the hot path. Its own events may end the chunk, begin another,
//! pause recording, or end the session. So the hot path first takes `ready` away, and reads nothing else of the recorder
//! before. It sees all that a handler did until then. From then on a handler's events are counted as lost, and nothing but
//! the limit changes. The hot path follows no null pointer to a chunk. A recorder that a fork wiped is not ready. One
//! without a chunk has [`NONE`], by which nothing is published and nothing may be. `tests/tests/handlers.rs` runs a handler
//! at each instruction.
//!
//! [`Recorder::try_put_predicted`] is all that a usual event costs. Where it says no, the callback tail-calls a twin with
//! the same arguments ([`crate::callbacks`]), which tries [`Recorder::try_put`]. Where the clock is no counter of the processor
//! ([`clock::kind`]), each event goes there. Everything rare makes that say no, and the cold path follows:
//!
//! * no chunk, or a full one
//! * an event inside an event
//! * a time or a value that does not fit
//! * a code address not seen in this chunk, where nobody has asked for its module just before
//! * recording paused

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

/// The state of recording that callbacks obey; one for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Nothing: no session yet, the session ended, or tracing failed.
    Off = 0,
    /// Record.
    Record = 1,
    /// Give ids, store nothing: the program paused or ended recording.
    Pause = 2,
    /// A forked child that did not use OpenMP yet.
    Child = 3,
}

static MODE: ModeCell = ModeCell(AtomicU8::new(Mode::Off as u8));

impl Mode {
    /// The process's mode.
    pub(crate) fn current() -> Mode {
        Mode::of(MODE.load())
    }

    /// Switches. In any mode but [`Mode::Record`] every event takes the cold path, which asks for the mode.
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

/// For which clock a way to record is: a counter of the processor's, or any.
const COUNTER: bool = false;
const ANY_CLOCK: bool = true;

/// Words kept free at a chunk's end: the longest compact event, always stored whole.
const MARGIN: usize = MAX_COMPACT_WORDS;

/// One thread's state. All zeros is a recorder that is full, as a fork leaves it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Recorder {
    /// Words of the chunk before the margin; 0 where there is no chunk, or where it is closed. Any thread may close it
    /// ([`Mode::set`]); only its own thread opens it.
    limit: Limit,
    /// In its place where the clock is no counter: [`Recorder::try_put_predicted`] is closed then.
    limit_of_other_clock: Limit,
    /// False while the hot path stores an event, and before a stream begins. Atomic only so that a signal handler on the
    /// same thread may read it.
    ready: AtomicBool,
    /// The chunk's first word, or what lies behind [`NONE`]. Null only where the recorder is not ready.
    words: Cell<*mut u64>,
    /// The clock when the chunk began.
    base: Cell<u64>,
    /// When the cold path last asked whether modules have changed.
    asked: Cell<u64>,
    /// The predictors.
    state: UnsafeCell<State>,
    /// Fields that only the cold path needs.
    pub(crate) stream: Stream,
    /// Its place in the list of all recorders.
    link: Link<Recorder>,
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// Since the chunk began.
    since_base: u64,
    /// Since modules were asked for.
    since_asked: u64,
}

/// The words of a chunk behind the last event.
#[derive(Debug)]
struct Room<'r> {
    first: *mut u64,
    words: usize,
    chunk: PhantomData<&'r mut [u64]>,
}

impl<'r> Room<'r> {
    /// # Safety
    /// So many words are valid for reading and writing by this thread alone, at least [`MARGIN`].
    #[inline(always)]
    unsafe fn new(first: *mut u64, words: usize) -> Room<'r> {
        Room { first, words, chunk: PhantomData }
    }

    /// As many as any compact event takes.
    #[inline(always)]
    fn compact(self) -> &'r mut [u64; MAX_COMPACT_WORDS] {
        // SAFETY: there are at least as many ([`Room::new`]).
        unsafe { &mut *self.first.cast() }
    }

    #[inline(always)]
    fn all(self) -> &'r mut [u64] {
        // SAFETY: by the contract of [`Room::new`].
        unsafe { std::slice::from_raw_parts_mut(self.first, self.words) }
    }
}

/// The header in place of a chunk's, where there is no chunk: nobody writes it, and no length is below a limit of 0.
static NONE: Header = Header([const { AtomicU64::new(0) }; CHUNK_HEADER_WORDS]);

// SAFETY: what is not atomic is read and written by the recorder's own thread alone, with two exceptions. Of `IDLE` and
// `OURS`, which many threads have, nothing is written: they are never ready, and the cold path uses neither. Who ends a session reads and writes the recorders of other threads, when none of them is on the cold
// path any more (`Session::end`, `lockfree::gate`).
unsafe impl Sync for Recorder {}

/// The recorder of threads that have none: always full.
pub(crate) static IDLE: Recorder = Recorder::new();

/// The recorder of threads that do the tracer's own work: always full, and no other one takes its place. What the tracer
/// calls may be functions of the program's that use OpenMP, such as `malloc`. Those events are not the program's.
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

    /// True of [`IDLE`] and [`OURS`], which are no thread's own.
    pub(crate) fn is_idle(&self) -> bool {
        std::ptr::eq(self, &IDLE) || self.is_ours()
    }

    /// True of [`OURS`].
    pub(crate) fn is_ours(&self) -> bool {
        std::ptr::eq(self, &OURS)
    }

    /// Records what `row` makes of the callback's arguments if all of it is predicted: one word, and next to nothing to
    /// learn. A code address that the predictors do not have makes a second word: a program may have more of them than there are slots.
    /// `false`, and nothing changed, where neither is so: then [`Recorder::try_put`]. `row` may run again there, so all it may
    /// do is give an object its id.
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
                // Opaque, so that the compiler does not make one path of both: the other one would cost more.
                return Some(black_box(cursor) + 2);
            }
            if !row.is_predicted(state) {
                return None;
            }
            out[0] = row.encode_predicted(state, self.ticks::<R, COUNTER>(&row)?.since_base);
            Some(cursor + 1)
        })
    }

    /// Records what `row` makes of the callback's arguments; `false`, and nothing changed, where only the cold path
    /// can. `row` as in [`Recorder::try_put_predicted`].
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

    /// Records a wide event that allocates nothing; `false`, and nothing changed, where only the cold path can.
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

    /// The time; `None` where it does not fit, or modules are not there any more.
    #[inline(always)]
    fn ticks<R: CompactRow, const ANY: bool>(&self, row: &R) -> Option<Ticks> {
        let now = if ANY { clock::ticks() } else { clock::counter() };
        let since_base = now.wrapping_sub(self.base.get());
        if since_base >> TICK_BITS != 0 {
            return None;
        }
        let since_asked = now.wrapping_sub(self.asked.get());
        // Only the rows of parallel regions ask: the others' code is constant.
        if R::KIND == ParallelBegin::KIND && self.stream.modules.may_be_gone(since_asked) {
            let is_there = self.ask_for_modules(row.code(), now);
            return is_there.then_some(Ticks { since_base, since_asked: 0 });
        }
        Some(Ticks { since_base, since_asked })
    }

    /// Whether all known modules are there still, that of `code`, which calls, among them.
    #[cold]
    #[inline(never)]
    fn ask_for_modules(&self, code: u64, now: u64) -> bool {
        let are_there = self.stream.modules.are_there(code);
        if are_there {
            self.asked.set(now);
        }
        are_there
    }

    /// Publishes the words that `put` stores, unless there is no room for them, or `put` says no. It gets the place of the first, and
    /// returns that behind the last.
    #[inline(always)]
    fn try_store<const ANY: bool>(
        &self,
        put: impl FnOnce(&mut State, usize, Room<'_>) -> Option<usize>,
    ) -> bool {
        // Relaxed, with fences for the compiler: shared only with signal handlers on this thread. One that interrupts this
        // between the load and the store of `ready` has left it as it was when it returns.
        if !self.ready.load(Ordering::Relaxed) {
            return false;
        }
        self.ready.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let words = self.words.get();
        // SAFETY: the recorder was ready: `begin_chunk` was given a header that stays mapped, or it is `NONE`; only accessed
        // like this. In the child of a fork in a signal handler that came since, it is `NONE` (`outlive_fork`).
        let published = unsafe { &*header_before(words) };
        let cursor = published.written();
        sanitizer::acquire(published);
        let mut stored = None;
        // Where the chunk was given back, as a session ended in this moment (`Spool::remove`), the cursor is 0. Nothing reads
        // what is stored there.
        let other = if ANY { self.limit_of_other_clock.get() } else { 0 };
        let limit = self.limit.get() | other;
        if cursor < limit {
            // SAFETY: only this thread uses its recorder, and its signal handlers keep out while it is not ready.
            let state = unsafe { &mut *self.state.get() };
            // SAFETY: the limit is not 0, so that there is a chunk. `begin_chunk` was given one that is this thread's alone
            // until it is handed over; no handler does that where the recorder is not ready. There are `MARGIN` words behind the limit, and
            // the cursor is below the limit.
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

    /// Takes note that modules were asked for, not before this time.
    pub(crate) fn asked_for_modules(&self, now: u64) {
        self.asked.set(now);
    }

    /// The predictors, for the cold path.
    pub(crate) fn state(&self) -> &State {
        // SAFETY: only this thread uses its recorder, and nothing in this crate keeps the reference over an event.
        unsafe { &*self.state.get() }
    }

    /// The time, or that of the chunk's begin where it is earlier.
    pub(crate) fn time_in_chunk(&self, ticks: u64) -> u64 {
        ticks.max(self.base.get())
    }

    /// Lets `encode` write an event at the cursor, on the cold path. `encode` gets the predictors, ticks since the base, and
    /// all words that are left. Returns `None` where the event did not fit.
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
        // SAFETY: as in `try_store`; `Busy` and the closed limit keep signal handlers out.
        let state = unsafe { &mut *self.state.get() };
        published.publish(cursor + encode(state, ticks, room)?);
        Some(())
    }

    /// Lets `encode` run for what it does to the predictors, above all the newest id; its words go nowhere. The chunk
    /// must not be continued after that.
    pub(crate) fn put_nowhere(&self, encode: impl FnOnce(&mut State, u64, &mut [u64]) -> Option<usize>) {
        // SAFETY: as in `put_slowly`.
        let state = unsafe { &mut *self.state.get() };
        encode(state, 0, &mut [0; 2 * MAX_COMPACT_WORDS]);
    }

    /// Starts a chunk of `len` words for events, closed to the hot path until [`Recorder::open`].
    ///
    /// # Safety
    /// `words` are valid for writing by this thread alone until [`Recorder::end_chunk`], and lie behind a chunk's
    /// [`Header`], by which none is published.
    pub(crate) unsafe fn begin_chunk(&self, words: *mut u64, len: usize, base: u64, newest_id: u64) {
        // SAFETY: as in `put_slowly`.
        unsafe { &mut *self.state.get() }.reset(newest_id);
        self.stream.chunk_words.set(len);
        self.words.set(words);
        self.base.set(base);
    }

    /// Lets the hot path store events in `len` words, whatever the mode is.
    ///
    /// # Safety
    /// As of [`Recorder::begin_chunk`]; nobody else knows of the recorder.
    pub(super) unsafe fn begin_trial(&self, words: *mut u64, len: usize, base: u64) {
        // SAFETY: the caller's contract.
        unsafe { self.begin_chunk(words, len, base, 0) };
        // Relaxed: this thread's alone.
        self.limit_in_use().0.store(len - MARGIN, Ordering::Relaxed);
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Takes the chunk away; the next event takes the cold path.
    pub(crate) fn end_chunk(&self) {
        self.close();
        self.words.set(none());
    }

    /// Lets the hot path into the chunk again, in the mode that it is for.
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

    /// Keeps the hot path from the chunk.
    pub(crate) fn close(&self) {
        self.limit.close();
        self.limit_of_other_clock.close();
    }

    /// True where the thread has a chunk.
    pub(crate) fn has_chunk(&self) -> bool {
        let words = self.words.get();
        !words.is_null() && words != none()
    }

    /// The header of the chunk that the hot path stores an event in; null where it does not. Of a signal handler that
    /// interrupted it.
    pub(crate) fn storing_in(&self) -> *mut u8 {
        match self.is_storing() && self.has_chunk() {
            true => header_before(self.words.get()).cast(),
            false => null_mut(),
        }
    }

    /// True while the hot path stores an event of the recorder's stream: a signal handler interrupted it.
    pub(crate) fn is_storing(&self) -> bool {
        // Relaxed: shared only with signal handlers on this thread.
        self.stream.number.get() != 0 && !self.ready.load(Ordering::Relaxed)
    }

    /// Gives the recorder of a forked child, which the fork wiped, the words of [`NONE`]. A signal handler that forked may
    /// return to the hot path, which then writes there.
    pub(crate) fn outlive_fork(&self) {
        if !self.is_idle() {
            self.words.set(none());
        }
    }
}

/// The address behind [`NONE`]: nobody reads or writes there.
fn none() -> *mut u64 {
    (&raw const NONE).cast_mut().wrapping_add(1).cast()
}

/// The header of the chunk whose first word this is.
#[inline(always)]
fn header_before(words: *mut u64) -> *mut Header {
    words.cast::<Header>().wrapping_sub(1)
}

impl Linked for Recorder {
    fn link(&self) -> &Link<Recorder> {
        &self.link
    }
}

/// All recorders of the process, whether a thread has them or not.
static ALL: List<Recorder> = List(AtomicPtr::new(std::ptr::null_mut()));

/// Every recorder.
pub(crate) fn all() -> impl Iterator<Item = &'static Recorder> {
    ALL.iter()
}

/// A recorder for the calling thread; `None` where there is no memory.
pub(crate) fn take() -> Option<&'static Recorder> {
    if let Some(recorder) = ALL.take() {
        return Some(recorder);
    }
    let memory = system::map_wiped_on_fork(size_of::<Recorder>()).ok()?;
    // SAFETY: page-aligned zeroed memory of the size, never unmapped, and all zeros is a recorder.
    let new: &'static Recorder = unsafe { &*memory.cast() };
    new.claim();
    ALL.push(new);
    Some(new)
}

/// Waits until no thread is on the cold path, at most `most`; whether that is so.
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

/// A forked child has none of its parent's threads.
pub(crate) fn forget_all() {
    ALL.forget();
}

impl Recorder {
    /// Makes it the calling thread's; false where another thread has it.
    pub(crate) fn claim(&self) -> bool {
        self.link.claim()
    }

    /// Makes it the recorder of the new stream `number`, whatever it was before. Returns false, and changes nothing, where
    /// nothing is recorded any more: the end of a session looks at all its recorders, those given back too.
    pub(crate) fn begin_stream(&self, number: u32) -> bool {
        let nested = self.stream.busy.enter();
        let records = Mode::current() != Mode::Off;
        if records {
            self.stream.reset(number);
            if self.words.get().is_null() {
                self.words.set(none());
            }
            // A thread that ended in a signal handler may have left the hot path in the midst of an event.
            self.ready.store(true, Ordering::Relaxed);
        }
        self.stream.busy.leave(nested);
        records
    }

    /// Lets another thread have it. The calling thread does not use it any more.
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

    /// A recorder with room for `words`, which are given back with it.
    fn on_trial(words: usize) -> (Box<Recorder>, Vec<u64>) {
        let mut memory = vec![0; CHUNK_HEADER_WORDS + words];
        let recorder = Box::new(Recorder::new());
        // SAFETY: the memory is this thread's alone and outlives the recorder's use; zeros before the words are a header.
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
        // The thread may lose its processor in between.
        let soon_after = || {
            recorder.asked_for_modules(clock::ticks());
            recorder.try_put_predicted(|_| acquired(0x4000))
        };
        assert!((0..100).any(|_| soon_after()));
    }
}
