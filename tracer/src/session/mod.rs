//! A session: one trace file, its spool, its writer, from `initialize` to `finalize`.
//!
//! Sessions are never freed: a thread may be in a callback at any moment. A process has one at a time. A second one follows
//! when the OpenMP runtime is unloaded and loaded again. A forked child that uses OpenMP has its own.
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | a session's beginning, and what it says in metadata |
//! | [`cold_path`] | does what the recorder leaves: no chunk, chunk full, an event inside an event |
//! | [`chunks`] | which chunk a thread goes on with, and who writes a full one |
//! | [`loss`], [`failure`] | events that found no chunk; what cannot be written |
//! | [`end`] | what is written when a session ends |
//! | [`writer`] | the thread that takes full chunks |
//! | [`metadata`], [`modules`] | what the trace says about process, runtime and libraries |
//! | [`signal`] | the signal at which a flight recorder writes what it keeps |
//! | [`fork`] | children |

mod chunks;
pub(crate) mod cold_path;
mod end;
mod failure;
pub(crate) mod fork;
mod loss;
pub(crate) mod metadata;
pub(crate) mod modules;
pub(crate) mod signal;
pub(crate) mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use omptrace_settings::value::{Compress, Folder, Keep};
use omptrace_trace_format::Metadata;
use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::metadata::Lock;
use omptrace_trace_format::spool::default_path;
use serde::Serialize;

use crate::config::Config;
use crate::counters::Counters;
use crate::devices::Devices;
use crate::os::clock::{self, ClockKind};
use crate::os::lock::Mutex;
use crate::os::log::{info, warning};
use crate::os::system;
use crate::recorder::held_events;
use crate::recorder::recorder::{Mode, Recorder};
use crate::samples::Samples;
use crate::session::modules::{Loaded, Modules};
use crate::session::signal::Listener;
use crate::session::writer::Writer;
use crate::storage::spool::Spool;
use crate::storage::trace_file::{Names, Output};

pub(crate) use chunks::report_monitoring;

/// How long the end of the program waits for threads that are storing an event at that moment.
const PATIENCE: Duration = Duration::from_millis(100);

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The one before it: see [`KEPT`].
    #[expect(dead_code, reason = "it only keeps the session reachable")]
    earlier: Option<&'static Session>,
    /// The process that it belongs to.
    pub(crate) pid: u32,
    /// The CPUs that it may use.
    pub(crate) cpus: Option<libc::cpu_set_t>,
    /// The settings.
    pub(crate) config: Config,
    /// The modules that were reported.
    pub(crate) modules: Modules,
    /// The devices that the runtime has initialized.
    pub(crate) devices: Devices,
    output: Output,
    pub(crate) spool: Spool,
    writer: Option<Writer>,
    /// The samples of its threads.
    pub(crate) samples: Samples,
    /// The counters of its threads.
    pub(crate) counters: Counters,
    /// The thread that waits for the signal to write what is kept.
    listener: Mutex<Option<&'static Listener>>,
    /// Held to write a chunk that is kept, or to take it for new events.
    keeping: Mutex<()>,
    /// Streams that have begun.
    streams: AtomicU32,
    /// Events lost and reported.
    lost: AtomicU64,
    reported_begin: AtomicBool,
    /// The error number of the system that turned tracing off; 0 while none did.
    failure: AtomicI32,
    /// Something failed, and that was said: one line is enough, a full disk has many effects. The trace has the rest.
    reported_trouble: AtomicBool,
    asked_runtime: AtomicBool,
    /// The facts that `initialize` found out, for the sessions of forked children.
    runtime: OnceLock<Metadata>,
    /// Words for the reader, all recorded so far.
    messages: Mutex<Vec<String>>,
}

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
/// The newest session. All are kept for good, as a thread may be using one that has ended.
static KEPT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
/// Numbers given to streams of this process, also over several sessions: ids stay unique.
static STREAMS: AtomicU32 = AtomicU32::new(0);

/// The session in progress: this process's, or, in a child that has none yet, its parent's.
pub(crate) fn current() -> Option<&'static Session> {
    // Acquire; pairs with Release in `install` and `finish`.
    // SAFETY: null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The session of this process, and not that of its parent. The id alone does not distinguish them, since both may be the
/// first process of a container.
pub(crate) fn of_this_process() -> Option<&'static Session> {
    let is_own = |session: &&Session| session.pid == system::process_id();
    current().filter(|session| is_own(session) && Mode::current() != Mode::Child)
}

/// In a forked child that will not be traced: it leaves its parent's session alone.
pub(crate) fn disown() {
    // Relaxed: the child has one thread.
    CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// True while this process has a session.
pub(crate) fn is_in_progress() -> bool {
    of_this_process().is_some()
}

/// A number for a new stream.
pub(crate) fn next_stream() -> u32 {
    // Relaxed: only the number counts.
    STREAMS.fetch_add(1, Ordering::Relaxed) + 1
}

/// A forked child numbers its streams from 1.
pub(crate) fn forget_streams() {
    STREAMS.store(0, Ordering::Relaxed);
}

/// Starts a session; recording begins with [`Session::begin`].
///
/// # Errors
/// A message that says what could not be done, and what to do about it.
pub(crate) fn start(config: Config) -> Result<&'static Session, String> {
    let registry = config.registry.clone();
    let session = Session::create(config, Vec::new()).inspect_err(|why| {
        if let Some(Folder(folder)) = registry {
            metadata::register_failure(&folder, why);
        }
    })?;
    // Before any event: from here on a kill leaves a file that says whose it is.
    session.write_metadata(&metadata::process(session, false));
    session.report_spool();
    Ok(session.install())
}

/// Starts the session of a forked child, with the settings and the runtime's facts of its parent.
pub(crate) fn start_in_child(is_paused: bool) {
    let Some(parent) = current() else { return };
    match Session::create(parent.config.clone(), parent.modules.reported()) {
        Ok(session) => {
            // What was held back until now belongs to the session, too.
            let start = held_events::asleep_since().unwrap_or_else(|| clock::pair().0);
            session.write_metadata_of(start, &metadata::process(session, true));
            session.report_spool();
            if let Some(runtime) = parent.runtime.get() {
                session.report_runtime(runtime.clone());
            }
            session.install().begin();
            if is_paused {
                Mode::Pause.set();
            }
        }
        Err(message) => {
            Mode::Off.set();
            warning!("child process {} is not traced: {message}", system::process_id());
        }
    }
}

/// The program ends, and the session of this process does not yet: `how`, for where nothing follows.
pub(crate) fn note_end(how: &str) {
    if let Some(session) = of_this_process() {
        session.samples.drain(session);
        session.write_end(how);
    }
}

/// True where the session's chunks stay in a file when the process ends, whatever becomes of the session.
pub(crate) fn outlives_process() -> bool {
    of_this_process().is_some_and(|session| session.spool.path().is_some())
}

/// Ends the session of this process, if it has one; `how` goes into the trace.
pub(crate) fn finish(how: &str) {
    let Some(session) = of_this_process() else {
        return;
    };
    // AcqRel; of `finalize` and the destructor one comes first.
    let (session_ptr, null) = (std::ptr::from_ref(session).cast_mut(), std::ptr::null_mut());
    if CURRENT.compare_exchange(session_ptr, null, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        session.end(how);
    }
}

impl Session {
    /// With the modules that a parent's session reported.
    fn create(config: Config, inherited: Vec<Loaded>) -> Result<&'static Session, String> {
        let pid = system::process_id();
        let (pair, _) = clock::pair();
        let number = session_number(pid, pair);
        let start = clock::local_time();
        let names = Names {
            program: &metadata::program_name(),
            host: &system::host(),
            pid,
            rank: metadata::rank(),
            start: &start.format("%Y%m%dT%H%M%S").to_string(),
        };
        let wanted = system::absolute(names.expand(&config.output.0).as_ref());
        let cannot = |what: &str, path: &Path, error: io::Error| {
            format!(
                "cannot {what} {}: {error}; choose another place by OMPTRACE_OUTPUT or OMPTRACE_SPOOL",
                path.display()
            )
        };
        let output = Output::create(&wanted, number).map_err(|error| cannot("create", &wanted, error))?;
        let make_spool = || -> Result<Spool, String> {
            let path = spool_path(&config, &output);
            let spool = Spool::create(&path, number, pid, output.path())
                .map_err(|error| cannot("make the spool", &path, error))?;
            let path = spool.path().unwrap_or(Path::new(""));
            let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
            output.write_header(pid, bytes).map_err(|error| {
                spool.remove();
                cannot("write", output.path(), error)
            })?;
            Ok(spool)
        };
        let spool = make_spool().inspect_err(|_| {
            output.remove_name();
        })?;
        let level = match (config.mode, config.compress) {
            (Keep::All, Compress::Level(level)) => Some(level),
            (Keep::Newest, _) | (_, Compress::Off) => None,
        };
        if let Some(Folder(folder)) = &config.registry {
            metadata::register(folder, output.path());
        }
        // Relaxed: it is followed by nobody but LeakSanitizer, which counts as lost what no static leads to.
        let session = Box::leak(Box::new(Session {
            // SAFETY: null or a leaked box.
            earlier: unsafe { KEPT.load(Ordering::Relaxed).as_ref() },
            pid,
            cpus: system::affinity(),
            devices: Devices::new(config.device_buffer.0, &config.cupti),
            modules: Modules::new(
                config.mode,
                inherited,
                config.registry.clone().map(|Folder(folder)| folder),
            ),
            config,
            output,
            spool,
            writer: level.map(Writer::new),
            samples: Samples::new(),
            counters: Counters::new(),
            listener: Mutex::new(None),
            keeping: Mutex::new(()),
            streams: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            reported_begin: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            reported_trouble: AtomicBool::new(false),
            asked_runtime: AtomicBool::new(false),
            runtime: OnceLock::new(),
            messages: Mutex::default(),
        }));
        // Relaxed: as above.
        KEPT.store(session, Ordering::Relaxed);
        Ok(session)
    }

    fn install(&'static self) -> &'static Session {
        // Release; pairs with Acquire in `current`.
        CURRENT.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        self
    }

    /// Recording begins.
    pub(crate) fn begin(&'static self) {
        if self.config.mode == Keep::Newest && self.config.flush_on.is_some() {
            *self.listener.lock() = Listener::start(self);
        }
        self.samples.begin(self);
        self.counters.begin(self);
        self.record();
        info!("tracing into {}", self.output.path().display());
    }

    /// The lock on the trace.
    pub(crate) fn lock(&self) -> Option<Lock> {
        self.output.lock().cloned()
    }

    /// In a forked child: the parent's files are closed, so that its lock ends with it.
    pub(crate) fn let_go(&self) {
        self.output.let_go();
        self.spool.let_go();
    }

    /// See [`crate::os::protected_fd::ProtectedFd::move_up`].
    pub(crate) fn move_output_up(&self) {
        self.output.move_up();
    }

    /// Recording goes on, unless it was turned off for good.
    pub(crate) fn record(&self) {
        if self.failure().is_some() {
            return;
        }
        let fast = clock::kind() == ClockKind::Counter;
        if fast {
            Mode::Record.set()
        } else {
            Mode::RecordSlowly.set()
        };
    }

    /// True where the recorder's chunk belongs to this session.
    pub(crate) fn owns(&self, recorder: &Recorder) -> bool {
        std::ptr::eq(recorder.stream.spool.get(), &raw const self.spool)
    }

    /// True once, for the thread that shall ask the runtime for processors.
    pub(crate) fn shall_ask_runtime(&self) -> bool {
        // Relaxed: who comes first asks. Read before it is written: the answer is mostly no.
        !self.asked_runtime.load(Ordering::Relaxed) && !self.asked_runtime.swap(true, Ordering::Relaxed)
    }

    /// Says in the trace that there is no spool, where that is so.
    fn report_spool(&self) {
        if self.spool.path().is_none() {
            let message = "files may not be mapped: events that were not written yet are lost where the program is killed";
            self.report_messages(vec![message.to_owned()]);
        }
    }

    /// Says something in the trace in words, if there is anything to say.
    pub(crate) fn report_messages(&self, news: Vec<String>) {
        if !news.is_empty() {
            // A list replaces the one before it.
            // Whoever has it may be this thread, interrupted by a signal handler that calls `exit`.
            let Some(mut messages) = self.messages.try_lock_for(PATIENCE) else {
                return;
            };
            messages.extend(news);
            self.write_metadata(&Metadata { messages: messages.clone(), ..Metadata::default() });
        }
    }

    /// Says that a callback is not recorded any more, and why, beside what was withheld from the start.
    pub(crate) fn report_withheld(&self, callback: &str, why: &str) {
        let before = self.runtime.get().map(|facts| facts.withheld.clone());
        let mut withheld = before.unwrap_or_default();
        withheld.insert(callback.to_owned(), why.to_owned());
        self.write_metadata(&Metadata { withheld, ..Metadata::default() });
    }

    /// Writes what is known of the runtime.
    pub(crate) fn report_runtime(&self, facts: Metadata) {
        self.write_metadata(&facts);
        let _ = self.runtime.set(facts);
    }

    /// Appends a metadata block; a failure turns tracing off.
    pub(crate) fn write_metadata(&self, object: &impl Serialize) {
        self.write_metadata_of(clock::pair().0, object);
    }

    fn write_metadata_of(&self, time: ClockPair, object: &impl Serialize) {
        if let Err(error) = self.output.write_metadata(time, object) {
            self.fail("write", &error);
        }
    }
}

/// The spool's path: beside the trace, or in the folder that the user chose.
fn spool_path(config: &Config, output: &Output) -> PathBuf {
    let beside = default_path(output.path());
    match &config.spool {
        Some(Folder(folder)) => system::absolute(&folder.join(beside.file_name().unwrap_or_default())),
        None => beside,
    }
}

/// A number that no other session has: process and start, mixed (the finalizer of SplitMix64).
fn session_number(pid: u32, start: ClockPair) -> u64 {
    let mut x = start.realtime_ns ^ (u64::from(pid) << 40) ^ start.ticks.rotate_left(17);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
