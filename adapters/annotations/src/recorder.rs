//! What the tracer does with annotations.

use std::fmt::Debug;
use std::sync::OnceLock;

use omptrace_trace_format::event::{
    AnnotationBegin, AnnotationEnd, AnnotationMark, AnnotationMemory, AnnotationSpan, AnnotationValue,
};
use omptrace_trace_format::field::{AnnotationSource, ObjectKind};

/// The tracer.
pub trait Recorder: Sync + Debug {
    /// The number of the session that records annotations of the calling thread; 0 where none does. The first one of a process
    /// begins its session.
    fn recording(&self) -> u32;
    /// The number of the newest session, counted from 1; 0 before it. Another session has no texts yet.
    fn session(&self) -> u32;
    /// A text gets a number; false where that was not recorded.
    fn define(&self, kind: ObjectKind, number: u32, parent: u32, text: Option<&[u8]>) -> bool;
    /// A range begins.
    fn begin(&self, row: AnnotationBegin);
    /// A range ends.
    fn end(&self, row: AnnotationEnd);
    /// Something happens.
    fn mark(&self, row: AnnotationMark);
    /// A number.
    fn value(&self, row: AnnotationValue);
    /// Memory is allocated or freed.
    fn memory(&self, row: AnnotationMemory);
    /// A range that is over.
    fn span(&self, row: AnnotationSpan);
    /// Recording pauses, or goes on.
    fn pause(&self, source: AnnotationSource, pauses: bool);
    /// The time on the session's clock.
    fn now(&self) -> u64;
}

/// What is recorded.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The interfaces.
    pub sources: Vec<AnnotationSource>,
    /// Patterns of domains, of which those with a minus are not recorded; empty: all are.
    pub domains: Vec<String>,
    /// Texts other than names of domains are not recorded.
    pub without_text: bool,
}

static CONNECTED: OnceLock<(&'static dyn Recorder, Settings)> = OnceLock::new();

/// Gives the interfaces their tracer. For the library's constructor.
pub fn connect(recorder: &'static dyn Recorder, settings: Settings) {
    let _ = CONNECTED.set((recorder, settings));
}

/// The settings, where the library is ready.
pub(crate) fn settings() -> Option<&'static Settings> {
    CONNECTED.get().map(|(_, settings)| settings)
}

/// The tracer; `None` before the library's constructor has run.
#[inline]
pub(crate) fn recorder() -> Option<&'static dyn Recorder> {
    CONNECTED.get().map(|(recorder, _)| *recorder)
}

/// The tracer, while it records annotations of the calling thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) recorder: &'static dyn Recorder,
    /// The session.
    pub(crate) session: u32,
}

/// The tracer, where it records annotations of the calling thread.
#[inline]
pub(crate) fn active() -> Option<Active> {
    let recorder = recorder()?;
    match recorder.recording() {
        0 => None,
        session => Some(Active { recorder, session }),
    }
}

/// Whether the interface is recorded.
pub(crate) fn hears(source: AnnotationSource) -> bool {
    settings().is_some_and(|settings| settings.sources.contains(&source))
}
