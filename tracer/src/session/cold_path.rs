//! The cold path: everything that [`Recorder::try_put`] cannot do, and all wide events.
//!
//! It may lock, make system calls and start sessions. If a signal handler's callback occurs while the same thread is on
//! the cold or the hot path, it is counted as lost, because it would corrupt the event being written.

use omptrace_trace_format::event::{CompactRow, Counters, Event, ParallelBegin, WideRow, encode_compact};
use omptrace_trace_format::predict::State;

use crate::os::signals;
use crate::os::threads::stack;
use crate::os::time::clock;
use crate::recorder::recorder::{self, Mode, Recorder};
use crate::recorder::this_thread;
use crate::recorder::thread_stream::Stream;
use crate::runtime::lookup::Lookup;
use crate::runtime::{metadata, replaced_libgomp};
use crate::session::fork;
use crate::session::hooks;
use crate::session::loaded_modules::Code;
use crate::session::{self, Session};

/// Records the compact event made by `row`, which may be called several times; its side effect, assigning an id, is the
/// same each time.
#[cold]
pub(crate) fn compact<R: CompactRow + Into<Event<'static>>>(row: impl Fn(&State) -> R) {
    enter(|recorder| {
        if Mode::current() == Mode::Child && fork::still_asleep(recorder, || row(recorder.state()).into()) {
            return;
        }
        let code = row(recorder.state()).code();
        let whose = match R::KIND == ParallelBegin::KIND {
            true => Code::Calls,
            false => Code::Named,
        };
        record(recorder, (code, whose), |state, ticks, out| encode_compact(row(state), state, ticks, out));
    });
}

/// Records the wide event made by `row`.
#[cold]
pub(crate) fn wide<W: WideRow>(row: impl FnOnce(&Recorder) -> W) {
    try_wide(row);
}

/// Records the wide event made by `row`; returns whether that succeeded.
#[cold]
pub(crate) fn try_wide<W: WideRow>(row: impl FnOnce(&Recorder) -> W) -> bool {
    let mut is_recorded = false;
    enter(|recorder| {
        if Mode::current() == Mode::Child {
            fork::wake_up();
        }
        let row = row(recorder);
        is_recorded = record(recorder, (row.code(), Code::Named), |_, ticks, out| row.encode(ticks, out));
    });
    is_recorded
}

/// Starts a forked child's own session.
#[cold]
pub(crate) fn wake_up() {
    enter(|_| {
        if Mode::current() == Mode::Child {
            fork::wake_up();
        }
    });
}

/// Records the wide event made by `row`, for a call of the program's own code that began at `since`.
#[cold]
pub(crate) fn call<W: WideRow>(since: u64, row: impl FnOnce() -> W) {
    enter(|recorder| {
        if Mode::current() == Mode::Record {
            let row = row();
            record(recorder, (row.code(), Code::Waits { since }), |_, ticks, out| row.encode(ticks, out));
        }
    });
}

/// Records the wide event made by `row`, which belongs to the previous event. If a forked child holds back that event,
/// it holds back this one, too.
#[cold]
pub(crate) fn beside<W: WideRow + Clone + Into<Event<'static>>>(row: impl FnOnce() -> W) {
    enter(|recorder| {
        let row = row();
        if Mode::current() == Mode::Child && fork::still_asleep(recorder, || row.clone().into()) {
            return;
        }
        record(recorder, (row.code(), Code::Named), |_, ticks, out| row.encode(ticks, out));
    });
}

/// Records values of counters from before the next event. If a forked child holds back that event, it holds back the
/// values, too.
#[cold]
pub(crate) fn counters(values: &[u64]) {
    enter(|recorder| {
        let held = || {
            let values = values.to_vec().into();
            Counters { values }.into()
        };
        if Mode::current() == Mode::Child && fork::still_asleep(recorder, held) {
            return;
        }
        let row = Counters { values: values.into() };
        record(recorder, (0, Code::Named), |_, ticks, out| row.encode(ticks, out));
    });
}

/// The thread ends: writes its chunk to the file.
#[cold]
pub(crate) fn leave() {
    let recorder = this_thread::recorder();
    if recorder.is_idle() || recorder.stream.busy.enter() {
        return;
    }
    recorder.close();
    // Events of a signal handler would count as the tracer's own.
    signals::without_signals(|| end_recorder(recorder));
}

/// Ends the stream of the calling thread's recorder, which is busy, and gives the recorder back.
fn end_recorder(recorder: &'static Recorder) {
    this_thread::begin_own_work();
    recorder.stream.collecting.end();
    hooks::thread_ends(&recorder.stream);
    // Otherwise the thread that ends the session finds the chunk.
    if Mode::current() != Mode::Off {
        if let Some(session) = session::current().filter(|session| session.owns(recorder)) {
            session.end_stream(recorder);
        }
        recorder.end_chunk();
    }
    recorder.stream.busy.leave(false);
    recorder.give_back();
    this_thread::set_recorder(None);
}

/// Calls `f` to put events on a stream that belongs to no thread; the stream's lock excludes others.
#[cold]
pub(crate) fn put_on(
    session: &'static Session,
    recorder: &'static Recorder,
    f: impl FnOnce(&mut dyn FnMut(&dyn WideRow)),
) {
    on_stream(recorder, || {
        f(&mut |row| {
            let put = || recorder.put_slowly(clock::ticks(), |_, ticks, out| row.encode(ticks, out));
            let usable = recorder.has_chunk() && session.owns(recorder);
            let done = usable && put().is_some();
            if !done && session.renew(recorder).and_then(|()| put()).is_none() {
                lose(&recorder.stream);
            }
        });
    });
}

/// Calls `f` for a stream that belongs to no thread, but not if the session is ending.
pub(crate) fn on_stream(recorder: &'static Recorder, f: impl FnOnce()) {
    let nested = recorder.stream.busy.enter();
    if !nested && Mode::current() != Mode::Off {
        f();
    }
    recorder.stream.busy.leave(nested);
}

/// Ends a stream that belongs to no thread: writes its chunk to the file.
pub(crate) fn leave_stream(session: &'static Session, recorder: &'static Recorder) {
    on_stream(recorder, || {
        if session.owns(recorder) {
            session.end_stream(recorder);
        }
        recorder.end_chunk();
    });
    recorder.give_back();
}

/// Calls `f` with the thread's recorder, closed for the hot path.
fn enter(f: impl FnOnce(&'static Recorder)) {
    if Mode::current() == Mode::Off {
        return;
    }
    let Some(recorder) = recorder_of_this_thread() else {
        return;
    };
    let stream = &recorder.stream;
    let nested = stream.busy.enter();
    if nested || recorder.is_storing() {
        // Events that would not be recorded are not lost.
        if Mode::current() != Mode::Pause {
            lose(stream);
        }
        stream.busy.leave(nested);
        return;
    }
    recorder.close();
    f(recorder);
    // Not if another session has started in the meantime.
    let continues = || session::current().is_some_and(|session| session.owns(recorder));
    if recorder.has_chunk() && !stream.stale.get() && continues() {
        recorder.open();
    }
    stream.busy.leave(false);
}

/// Counts a lost event of this stream. A forked child without a session counts for itself, because the spool is its
/// parent's.
fn lose(stream: &Stream) {
    let session = session::current().filter(|_| Mode::current() != Mode::Child);
    stream.lose(clock::ticks(), session.map(|session| &session.spool));
}

/// The thread's recorder, a new one if it has none, with a numbered stream. `None` if the thread is doing the tracer's
/// own work.
fn recorder_of_this_thread() -> Option<&'static Recorder> {
    match this_thread::recorder() {
        recorder if recorder.stream.number.get() != 0 => Some(recorder),
        recorder if recorder.is_ours() => None,
        // A signal handler with events would take another recorder.
        _ => signals::without_signals(new_recorder_of_this_thread),
    }
}

/// A recorder for a thread without one, unless a signal handler has taken one for it.
fn new_recorder_of_this_thread() -> Option<&'static Recorder> {
    let recorder = this_thread::recorder();
    if recorder.stream.number.get() != 0 {
        return Some(recorder);
    }
    this_thread::begin_own_work();
    let recorder = begin_recorder(recorder);
    this_thread::set_recorder(recorder);
    recorder
}

/// A recorder with a new stream; if possible `last`, which the thread used before.
fn begin_recorder(last: &'static Recorder) -> Option<&'static Recorder> {
    // A thread that is new to the tracer, or a forked child whose recorder was wiped.
    fork::notice();
    let recorder = match !last.is_idle() && last.claim() {
        true => last,
        false => recorder::take()?,
    };
    if !recorder.begin_stream(session::next_stream()) {
        recorder.give_back();
        return None;
    }
    recorder.put_nowhere(|state, _, _| {
        state.reset(recorder.stream.first_id());
        None
    });
    Some(recorder)
}

/// Records the event written by `encode`, on a closed recorder; returns whether that succeeded.
fn record(
    recorder: &'static Recorder,
    code: (u64, Code),
    mut encode: impl FnMut(&mut State, u64, &mut [u64]) -> Option<usize>,
) -> bool {
    let stream = &recorder.stream;
    let mode = Mode::current();
    if mode == Mode::Off {
        return false;
    }
    if mode == Mode::Record
        && let Some(session) = session::current()
        && put(session, recorder, code, &mut encode).is_some()
    {
        return true;
    }
    // The object gets its id nevertheless. The chunk does not reflect that, so it must not be continued.
    recorder.put_nowhere(encode);
    stream.stale.set(true);
    if mode != Mode::Pause {
        lose(stream);
    }
    false
}

/// Puts the event into the thread's chunk, or into a new one if there is none, or it is stale or full.
fn put(
    session: &'static Session,
    recorder: &'static Recorder,
    code: (u64, Code),
    mut encode: impl FnMut(&mut State, u64, &mut [u64]) -> Option<usize>,
) -> Option<()> {
    let mut attempt = || {
        // Read the clock once, because that may be a system call.
        let now = clock::ticks();
        // A module must be reported before the time to which the event refers.
        let before = match code.1 {
            Code::Waits { since } => recorder.time_in_chunk(since),
            _ => now,
        };
        let has_asked = session.modules.note(code.0, code.1, before, &recorder.stream.modules, |module| {
            let encode = |_: &mut State, ticks, out: &mut [u64]| module.encode(ticks, out);
            recorder.put_slowly(before, encode).is_some()
        });
        if has_asked {
            recorder.asked_for_modules(now);
        }
        if code.0 != 0 && !matches!(code.1, Code::Waits { .. }) {
            program_uses_openmp(session);
        }
        recorder.put_slowly(now, &mut encode)
    };
    let usable = recorder.has_chunk() && !recorder.stream.stale.get() && session.owns(recorder);
    if usable && attempt().is_some() {
        return Some(());
    }
    session.renew(recorder)?;
    attempt()
}

/// Called when the program's own code uses OpenMP. Only now do runtimes know CPUs and places, not yet in `initialize`,
/// nor when the first thread begins. Queries them once.
fn program_uses_openmp(session: &Session) {
    if let Some(lookup) = Lookup::current()
        && session.shall_ask_runtime()
    {
        stack::with_much(|| {
            session.write_metadata(&metadata::processors(lookup, replaced_libgomp::replaced()));
        });
    }
}

/// Calls `f` with the session and the thread's recorder, which is closed and has a chunk of that session. Not called if
/// nothing is recorded.
pub(crate) fn with_session(f: impl FnOnce(&'static Session, &'static Recorder)) {
    enter(|recorder| {
        let Some(session) = session::current() else {
            return;
        };
        let usable = recorder.has_chunk() && !recorder.stream.stale.get() && session.owns(recorder);
        if usable || session.renew(recorder).is_some() {
            f(session, recorder);
        }
    });
}
