//! Hooks of sessions: modules above the session (samples, counters, devices, ...) act when a session or a thread begins or ends,
//! and around forks, without the session knowing them.

use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::recorder::thread_stream::Stream;
use crate::session::Session;

/// What a module does at the events of each session. By default, nothing.
pub(crate) trait SessionHooks: Sync {
    /// A session was created, and does not record yet.
    fn prepare(&self, _session: &'static Session) {}

    /// Recording is about to begin.
    fn begin(&self, _session: &'static Session) {}

    /// A runtime takes part in a session that began without one.
    fn runtime_joins(&self) {}

    /// The calling thread has its first event of the session, in this stream.
    fn thread_begins(&self, _session: &'static Session, _stream: &Stream) {}

    /// The calling thread, which has this stream, ends.
    fn thread_ends(&self, _stream: &Stream) {}

    /// The process is about to fork. The calling thread may have been interrupted anywhere, so it waits for at most
    /// `patience`.
    fn before_fork(&self, _patience: Duration) {}

    /// The process has forked; called in the parent.
    fn after_fork(&self, _patience: Duration) {}

    /// The process is a forked child that does not record yet.
    fn in_child(&self) {}

    /// The program pauses recording, or resumes it.
    fn pause(&self, _pauses: bool) {}

    /// The program requests that everything recorded so far is written to the file.
    fn flush(&self) {}

    /// The program ends recording.
    fn stop(&self) {}

    /// The program ends, but the session does not yet.
    fn note_end(&self, _session: &'static Session) {}

    /// The session ends. Its streams may still grow.
    fn end(&self, _session: &'static Session) {}

    /// Writes the module's data that are not in the trace's metadata yet; next, the session writes how it ended.
    fn write_news(&self, _session: &'static Session) {}
}

/// All hooks, in calling order.
type AllHooks = &'static [&'static dyn SessionHooks];

/// The registered hooks; null before the first session.
static HOOKS: AtomicPtr<AllHooks> = AtomicPtr::new(null_mut());

/// Sets the hooks of all sessions from now on.
pub(crate) fn register(hooks: &'static AllHooks) {
    // Release; pairs with Acquire in `all`.
    HOOKS.store(from_ref(hooks).cast_mut(), Ordering::Release);
}

fn all() -> impl Iterator<Item = &'static dyn SessionHooks> {
    // SAFETY: null, or a static. Acquire; pairs with Release in `register`.
    let hooks = unsafe { HOOKS.load(Ordering::Acquire).as_ref() };
    hooks.into_iter().copied().flatten().copied()
}

/// See [`SessionHooks::prepare`]; likewise below.
pub(super) fn prepare(session: &'static Session) {
    all().for_each(|hooks| hooks.prepare(session));
}

/// See [`SessionHooks::runtime_joins`].
pub(crate) fn runtime_joins() {
    all().for_each(|hooks| hooks.runtime_joins());
}

pub(super) fn begin(session: &'static Session) {
    all().for_each(|hooks| hooks.begin(session));
}

pub(super) fn thread_begins(session: &'static Session, stream: &Stream) {
    all().for_each(|hooks| hooks.thread_begins(session, stream));
}

pub(super) fn thread_ends(stream: &Stream) {
    all().for_each(|hooks| hooks.thread_ends(stream));
}

pub(super) fn before_fork(patience: Duration) {
    all().for_each(|hooks| hooks.before_fork(patience));
}

pub(super) fn after_fork(patience: Duration) {
    all().for_each(|hooks| hooks.after_fork(patience));
}

pub(super) fn in_child() {
    all().for_each(|hooks| hooks.in_child());
}

pub(crate) fn pause(pauses: bool) {
    all().for_each(|hooks| hooks.pause(pauses));
}

pub(crate) fn flush() {
    all().for_each(|hooks| hooks.flush());
}

pub(crate) fn stop() {
    all().for_each(|hooks| hooks.stop());
}

pub(super) fn note_end(session: &'static Session) {
    all().for_each(|hooks| hooks.note_end(session));
}

pub(super) fn end(session: &'static Session) {
    all().for_each(|hooks| hooks.end(session));
}

pub(super) fn write_news(session: &'static Session) {
    all().for_each(|hooks| hooks.write_news(session));
}

/// A value that a module has for each session. Never freed, like sessions.
#[derive(Debug)]
pub(crate) struct OfSessions<T>(AtomicPtr<OfSession<T>>);

#[derive(Debug)]
struct OfSession<T> {
    session: *const Session,
    kept: T,
    /// The value for the previous session.
    earlier: *const OfSession<T>,
}

impl<T: Sync + 'static> OfSessions<T> {
    /// No values yet.
    pub(crate) const fn new() -> OfSessions<T> {
        OfSessions(AtomicPtr::new(null_mut()))
    }

    /// Adds the value for a session.
    pub(crate) fn add(&self, session: &'static Session, kept: T) {
        let new = Box::leak(Box::new(OfSession { session, kept, earlier: null() }));
        // Relaxed: nothing is read through it here.
        let mut newest = self.0.load(Ordering::Relaxed);
        loop {
            new.earlier = newest;
            // Release; pairs with Acquire in `of`.
            match self.0.compare_exchange_weak(newest, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => newest = other,
            }
        }
    }

    /// The value for the session.
    #[inline]
    pub(crate) fn of(&self, session: &Session) -> Option<&'static T> {
        // SAFETY: null, or a box that `add` has leaked. Acquire; pairs with Release in `add`.
        let mut found = unsafe { self.0.load(Ordering::Acquire).as_ref() }?;
        while !std::ptr::eq(found.session, session) {
            // SAFETY: as above.
            found = unsafe { found.earlier.as_ref() }?;
        }
        Some(&found.kept)
    }
}
