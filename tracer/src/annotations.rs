//! Records the annotations of programs (NVTX, ITT, Kokkos Tools, OpenACC and rocTX) as events.
//!
//! The interfaces are in `adapters/annotations`, which is linked into this library. For a program without an OpenMP
//! runtime, the first annotation starts a session.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use omptrace_settings::value::{AnnotationList, DomainList, Keep, Switch, Value};
use omptrace_trace_format::event::{
    AnnotationBegin, AnnotationEnd, AnnotationMark, AnnotationMemory, AnnotationPause, AnnotationSpan,
    AnnotationValue, ObjectDefined,
};
use omptrace_trace_format::field::{Address, AnnotationSource, MonitoringChange, ObjectKind, Text, domain};
use omptrace_trace_format::metadata::Metadata;

use crate::callbacks::control_tool;
use crate::calls::{put, put_often};
use crate::os::system;
use crate::os::threads::stack;
use crate::os::time::clock::{self, Stopwatch};
use crate::recorder::guarded::guarded;
use crate::recorder::recorder::Mode;
use crate::session::hooks::SessionHooks;
use crate::session::{self, Session, cold_path};

/// Starts a session without an OpenMP runtime; returns whether there is a session now.
type BeginSession = fn() -> bool;

static BEGIN_SESSION: OnceLock<BeginSession> = OnceLock::new();

/// Makes the interfaces available to programs. `begin_session` starts a session if no OpenMP runtime has. Called by the
/// library's constructor.
pub(crate) fn connect(begin_session: BeginSession) {
    let _ = BEGIN_SESSION.set(begin_session);
    let of = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    let list = |value: Option<std::ffi::OsString>, default: &str| {
        value
            .and_then(|value| AnnotationList::parse(&value))
            .or_else(|| AnnotationList::parse(OsStr::new(default)))
    };
    let sources = list(of("OMPTRACE_ANNOTATIONS"), "all").map_or(Vec::new(), |list| list.sources());
    let domains = of("OMPTRACE_ANNOTATION_DOMAINS").and_then(|value| DomainList::parse(&value));
    let text = of("OMPTRACE_ANNOTATION_TEXT").and_then(|value| Switch::parse(&value));
    // The linker exports only functions that it considers used.
    std::hint::black_box(annotations::exported());
    annotations::connect(
        &TRACER,
        annotations::Settings {
            sources: sources.into_iter().map(AnnotationSource).collect(),
            domains: domains.map_or(Vec::new(), |list| list.0),
            without_text: text == Some(Switch::Off),
        },
    );
}

/// Number of sessions in this process and in the processes it was forked from.
static SESSIONS: AtomicU32 = AtomicU32::new(0);
/// The number of the session whose metadata state that there are annotations.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// The part of a session for annotations.
#[derive(Debug)]
pub(crate) struct Annotations;

pub(crate) static SESSION_HOOKS: Annotations = Annotations;

impl SessionHooks for Annotations {
    fn begin(&self, _: &'static Session) {
        // Release; pairs with Acquire in `session`, so that texts are defined again in the new session.
        SESSIONS.fetch_add(1, Ordering::Release);
    }

    fn note_end(&self, session: &'static Session) {
        tell_again(session);
    }

    fn end(&self, session: &'static Session) {
        tell_again(session);
    }
}

/// Defines all texts again at the end: a flight recorder may have overwritten their definitions.
fn tell_again(session: &'static Session) {
    // Relaxed: written only by this process.
    if session.config.mode == Keep::Newest && NOTED.load(Ordering::Relaxed) != 0 {
        annotations::tell_all();
    }
}

#[derive(Debug)]
struct Tracer;

static TRACER: Tracer = Tracer;

/// Whether annotations are recorded. The first one of a process begins its session.
#[inline]
fn is_on() -> bool {
    match Mode::current() {
        Mode::Record => true,
        Mode::Pause => false,
        Mode::Child => wakes_up(),
        Mode::Off => begins(),
    }
}

impl annotations::Recorder for Tracer {
    #[inline]
    fn recording(&self) -> u32 {
        if is_on() { self.session() } else { 0 }
    }

    #[inline]
    fn session(&self) -> u32 {
        // Acquire; pairs with Release in `begin`.
        SESSIONS.load(Ordering::Acquire)
    }

    fn define(&self, kind: ObjectKind, number: u32, parent: u32, text: Option<&[u8]>) -> bool {
        let row = ObjectDefined {
            domain: domain::ANNOTATIONS,
            kind,
            handle: Address(number.into()),
            parent: Address(parent.into()),
            facts: Cow::Borrowed(&[]),
            name: Text(text.map(Cow::Borrowed)),
        };
        note();
        guarded(|| cold_path::try_wide(|_| row)).unwrap_or(false)
    }

    fn begin(&self, row: AnnotationBegin) {
        put(row);
    }

    fn end(&self, row: AnnotationEnd) {
        put(row);
    }

    fn mark(&self, row: AnnotationMark) {
        put_often(row);
    }

    fn value(&self, row: AnnotationValue) {
        put_often(row);
    }

    fn memory(&self, row: AnnotationMemory) {
        put_often(row);
    }

    fn span(&self, row: AnnotationSpan) {
        put_often(row);
    }

    fn pause(&self, source: AnnotationSource, pauses: bool) {
        const START: u64 = 1;
        const PAUSE: u64 = 2;
        let (change, command) = match pauses {
            true => (MonitoringChange::pause, PAUSE),
            false => (MonitoringChange::resume, START),
        };
        if self.session() == 0 && !is_on() {
            return;
        }
        let says = || guarded(|| cold_path::wide(|_| AnnotationPause { source, change }));
        let switches =
            || guarded(|| control_tool::control(command, 0, std::ptr::null_mut(), std::ptr::null()));
        if pauses {
            says();
            switches();
        } else {
            switches();
            says();
        }
    }

    fn now(&self) -> u64 {
        clock::ticks()
    }
}

/// Sets `annotations` in the metadata, once per session.
fn note() {
    let session = SESSIONS.load(Ordering::Relaxed);
    // Relaxed: any thread may be the first.
    if NOTED.swap(session, Ordering::Relaxed) != session
        && let Some(session) = session::of_this_process()
    {
        guarded(|| {
            stack::with_much(|| {
                session.write_metadata(&Metadata { annotations: true, ..Metadata::default() });
            });
        });
    }
}

/// How long a thread waits for another one that starts the session. The thread's annotations until then would be lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// In a forked child, the first annotation starts the child's session.
#[cold]
fn wakes_up() -> bool {
    guarded(cold_path::wake_up);
    wait_while(|| Mode::current() == Mode::Child);
    Mode::current() == Mode::Record
}

/// The thread that starts the session for the first annotation; 0 if there is none yet.
static BEGINNER: AtomicU32 = AtomicU32::new(0);
/// The session was started, or could not be.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The first annotation of a process starts its session. After the session's end, no other is started.
#[cold]
fn begins() -> bool {
    // Acquire; pairs with Release below.
    if HAS_BEGUN.load(Ordering::Acquire) {
        return false;
    }
    let own = system::thread_id() as u32;
    match BEGINNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            // Relaxed: a session is counted before it records.
            if SESSIONS.load(Ordering::Relaxed) == 0 {
                let begin = || BEGIN_SESSION.get().is_some_and(|begin| begin());
                guarded(|| stack::with_much(begin));
            }
            HAS_BEGUN.store(true, Ordering::Release);
        }
        // Starting the session may call functions of the program, which may contain annotations.
        Err(beginner) if beginner == own => return false,
        Err(_) => {
            wait_while(|| !HAS_BEGUN.load(Ordering::Acquire));
            // If the process was forked in the meantime, that thread does not exist here.
            HAS_BEGUN.store(true, Ordering::Release);
        }
    }
    Mode::current() == Mode::Record
}

fn wait_while(goes_on: impl Fn() -> bool) {
    let start = Stopwatch::start();
    while goes_on() && start.elapsed() < PATIENCE {
        system::yield_now();
    }
}
