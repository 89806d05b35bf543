//! Parts of a session: modules that act when a session or a thread begins or ends, and around forks. The session does
//! not depend on any particular part.

use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::recorder::thread_stream::Stream;
use crate::session::Session;

/// A part of every session. Methods without a use for a part are omitted.
pub(crate) trait Part: Sync {
    /// A session was created, and does not record yet.
    fn prepare(&self, _session: &'static Session) {}

    /// Recording is about to begin.
    fn begin(&self, _session: &'static Session) {}

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

    /// Writes the part's data that are not in the trace's metadata yet; next, the session writes how it ended.
    fn write_news(&self, _session: &'static Session) {}
}

/// All parts, in calling order.
type Parts = &'static [&'static dyn Part];

/// The registered parts; null before the first session.
static PARTS: AtomicPtr<Parts> = AtomicPtr::new(null_mut());

/// Sets the parts of all sessions from now on.
pub(crate) fn register(parts: &'static Parts) {
    // Release; pairs with Acquire in `all`.
    PARTS.store(from_ref(parts).cast_mut(), Ordering::Release);
}

fn all() -> impl Iterator<Item = &'static dyn Part> {
    // SAFETY: null, or a static. Acquire; pairs with Release in `register`.
    let parts = unsafe { PARTS.load(Ordering::Acquire).as_ref() };
    parts.into_iter().copied().flatten().copied()
}

/// See [`Part::prepare`]; likewise below.
pub(super) fn prepare(session: &'static Session) {
    all().for_each(|part| part.prepare(session));
}

pub(super) fn begin(session: &'static Session) {
    all().for_each(|part| part.begin(session));
}

pub(super) fn thread_begins(session: &'static Session, stream: &Stream) {
    all().for_each(|part| part.thread_begins(session, stream));
}

pub(super) fn thread_ends(stream: &Stream) {
    all().for_each(|part| part.thread_ends(stream));
}

pub(super) fn before_fork(patience: Duration) {
    all().for_each(|part| part.before_fork(patience));
}

pub(super) fn after_fork(patience: Duration) {
    all().for_each(|part| part.after_fork(patience));
}

pub(super) fn in_child() {
    all().for_each(|part| part.in_child());
}

pub(crate) fn pause(pauses: bool) {
    all().for_each(|part| part.pause(pauses));
}

pub(crate) fn flush() {
    all().for_each(|part| part.flush());
}

pub(crate) fn stop() {
    all().for_each(|part| part.stop());
}

pub(super) fn note_end(session: &'static Session) {
    all().for_each(|part| part.note_end(session));
}

pub(super) fn end(session: &'static Session) {
    all().for_each(|part| part.end(session));
}

pub(super) fn write_news(session: &'static Session) {
    all().for_each(|part| part.write_news(session));
}

/// A value that a part has for each session. Never freed, like sessions.
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
