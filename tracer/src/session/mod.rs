//! A session: one trace file, its spool, its writer, from `initialize` to `finalize`.
//!
//! Sessions are never freed: a thread may be in a callback at any moment. A process has one at a time; a second one
//! follows when the OpenMP runtime is unloaded and loaded again, and a forked child that uses OpenMP has its own.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`spool`] | the file that threads share: free and full chunks |
//! | [`writer`] | the thread that takes full chunks |
//! | [`output`] | the trace file |
//! | [`metadata`], [`modules`] | what the trace says about process, runtime and libraries |
//! | [`signal`] | the signal at which a flight recorder writes what it keeps |
//! | [`control`] | `omp_control_tool` |
//! | [`fork`] | children |

pub(crate) mod control;
pub(crate) mod fork;
pub(crate) mod metadata;
pub(crate) mod modules;
pub(crate) mod output;
pub(crate) mod signal;
pub(crate) mod spool;
pub(crate) mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chrono::Local;
use omptrace_trace_format::Metadata;
use omptrace_trace_format::block::{Chunk, ChunkState, ClockPair};
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::{
    BufferFlush, DeviceStream, Lost, MAX_COMPACT_WORDS, Monitoring, ThreadInfo, WideRow,
};
use omptrace_trace_format::field::{MonitoringChange, Text, Ticks};
use omptrace_trace_format::metadata::Lock;
use omptrace_trace_format::predict::State;
use serde::Serialize;
use serde_json::json;

use crate::config::{CHUNK_BYTES, Compress, Config, Keep, OnFull};
use crate::devices::Devices;
use crate::hot::recorder::{self, Mode, Recorder};
use crate::hot::stream::Stream;
use crate::lockfree::header::Header;
use crate::os::clock::{self, ClockKind, Stopwatch};
use crate::os::lock::{self, Mutex};
use crate::os::log::{info, warning};
use crate::os::sanitizer;
use crate::os::system;
use crate::session::modules::{Loaded, Modules};
use crate::session::output::{Names, Output};
use crate::session::signal::Listener;
use crate::session::spool::{EVENT_WORDS, Growth, Spool};
use crate::session::writer::Writer;

/// How long the end of the program waits for threads that are storing an event at that moment.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long chunks are packed at the end of a session; the rest is written as it is.
const PACK_AT_END: Duration = Duration::from_millis(20);

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The process that it belongs to.
    pub(crate) pid: u32,
    /// The CPUs that it may use.
    pub(crate) cpus: Option<libc::cpu_set_t>,
    /// The settings.
    pub(crate) config: Config,
    /// The modules told of.
    pub(crate) modules: Modules,
    /// The devices that the runtime has initialized.
    pub(crate) devices: Devices,
    output: Output,
    spool: Spool,
    writer: Option<Writer>,
    /// What waits for the signal to write what is kept.
    listener: Mutex<Option<&'static Listener>>,
    /// Held to write a chunk that is kept, or to take it for new events.
    keeping: Mutex<()>,
    /// Streams that have begun.
    streams: AtomicU32,
    /// Events lost and told.
    lost: AtomicU64,
    told_begin: AtomicBool,
    /// The error number of the system that turned tracing off; 0 while none did.
    failure: AtomicI32,
    /// Something failed, and that was said: one line is enough, a full disk has many effects. The trace tells the rest.
    told_trouble: AtomicBool,
    asked_runtime: AtomicBool,
    /// What `initialize` found out, for the sessions of forked children.
    runtime: OnceLock<Metadata>,
    /// Words for the reader, all told so far.
    messages: Mutex<Vec<String>>,
}

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());
/// Numbers given to streams of this process, also over several sessions: ids stay unique.
static STREAMS: AtomicU32 = AtomicU32::new(0);

/// The session in progress: this process's, or, in a child that has none yet, its parent's.
pub(crate) fn current() -> Option<&'static Session> {
    // Acquire; pairs with Release in `install` and `finish`.
    // SAFETY: null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The session of this process, and not that of its parent; the id alone does not tell them apart, since both may be the first
/// process of a container.
pub(crate) fn of_this_process() -> Option<&'static Session> {
    let is_own = |session: &&Session| session.pid == system::process_id();
    current().filter(|session| is_own(session) && Mode::current() != Mode::Child)
}

/// In a forked child that will not be traced: its parent's session is none of its business.
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
/// What could not be done, with what to do about it.
pub(crate) fn start(config: Config) -> Result<&'static Session, String> {
    let registry = config.registry.clone();
    let session = Session::create(config, Vec::new()).inspect_err(|why| {
        if let Some(folder) = registry {
            metadata::register_failure(&folder, why);
        }
    })?;
    // Before any event: from here on a kill leaves a file that says whose it is.
    session.write_metadata(&metadata::process(session, false));
    session.tell_of_spool();
    Ok(session.install())
}

/// Starts the session of a forked child, with the settings and the runtime's facts of its parent.
pub(crate) fn start_in_child(is_paused: bool) {
    let Some(parent) = current() else { return };
    match Session::create(parent.config.clone(), parent.modules.told()) {
        Ok(session) => {
            // What was held back until now belongs to the session, too.
            let start = fork::asleep_since().unwrap_or_else(|| clock::pair().0);
            session.write_metadata_of(start, &metadata::process(session, true));
            session.tell_of_spool();
            if let Some(runtime) = parent.runtime.get() {
                session.tell_runtime(runtime.clone());
            }
            session.install().begin();
            if is_paused {
                Mode::Pause.set();
            }
        }
        Err(message) => {
            Mode::Off.set();
            warning!(
                "child process {} is not traced: {message}",
                system::process_id()
            );
        }
    }
}

/// The program ends, and the session of this process does not yet: `how`, for where nothing follows.
pub(crate) fn note_end(how: &str) {
    if let Some(session) = of_this_process() {
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
    if CURRENT
        .compare_exchange(session_ptr, null, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
    {
        session.end(how);
    }
}

impl Session {
    /// With the modules that a parent's session told of.
    fn create(config: Config, inherited: Vec<Loaded>) -> Result<&'static Session, String> {
        let pid = system::process_id();
        let (pair, _) = clock::pair();
        let number = session_number(pid, pair);
        let start = Local::now();
        let names = Names {
            program: &metadata::program_name(),
            host: &system::host(),
            pid,
            rank: metadata::rank(),
            start: &start.format("%Y%m%dT%H%M%S").to_string(),
        };
        let wanted = system::absolute(names.expand(&config.output).as_ref());
        let cannot = |what: &str, path: &Path, error: io::Error| {
            format!(
                "cannot {what} {}: {error}; choose another place by OMPTRACE_OUTPUT or OMPTRACE_SPOOL",
                path.display()
            )
        };
        let output =
            Output::create(&wanted, number).map_err(|error| cannot("create", &wanted, error))?;
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
        let level = match (config.keep, config.compress) {
            (Keep::All, Compress::Level(level)) => Some(level),
            (Keep::Newest, _) | (_, Compress::Off) => None,
        };
        if let Some(folder) = &config.registry {
            metadata::register(folder, output.path());
        }
        Ok(Box::leak(Box::new(Session {
            pid,
            cpus: system::affinity(),
            devices: Devices::new(config.device_buffer_bytes),
            modules: Modules::new(config.keep, inherited, config.registry.clone()),
            config,
            output,
            spool,
            writer: level.map(Writer::new),
            listener: Mutex::new(None),
            keeping: Mutex::new(()),
            streams: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            told_begin: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            told_trouble: AtomicBool::new(false),
            asked_runtime: AtomicBool::new(false),
            runtime: OnceLock::new(),
            messages: Mutex::default(),
        })))
    }

    fn install(&'static self) -> &'static Session {
        // Release; pairs with Acquire in `current`.
        CURRENT.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        self
    }

    /// Recording begins.
    pub(crate) fn begin(&'static self) {
        if self.config.keep == Keep::Newest && self.config.flush_on_signal {
            *self.listener.lock() = Listener::start(self);
        }
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
        std::ptr::eq(recorder.stream.session.get(), self)
    }

    /// True once, for the thread that shall ask the runtime for processors.
    pub(crate) fn shall_ask_runtime(&self) -> bool {
        // Relaxed: who comes first asks. Read before it is written: the answer is mostly no.
        !self.asked_runtime.load(Ordering::Relaxed)
            && !self.asked_runtime.swap(true, Ordering::Relaxed)
    }

    /// Says in the trace that there is no spool, where that is so.
    fn tell_of_spool(&self) {
        if self.spool.path().is_none() {
            let message = "files may not be mapped: events that were not written yet are lost where the program is killed";
            self.tell_messages(vec![message.to_owned()]);
        }
    }

    /// Says something in the trace in words, if there is anything to say.
    pub(crate) fn tell_messages(&self, news: Vec<String>) {
        if !news.is_empty() {
            // A list replaces the one before it.
            // Whoever has it may be this thread, interrupted by a signal handler that calls `exit`.
            let Some(mut messages) = self.messages.try_lock_for(PATIENCE) else {
                return;
            };
            messages.extend(news);
            self.write_metadata(&json!({ "messages": *messages }));
        }
    }

    /// Writes what is known of the runtime.
    pub(crate) fn tell_runtime(&self, facts: Metadata) {
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

    /// Gives the recorder a new chunk, and hands its old one over; `None` where there is none to be had.
    pub(crate) fn renew(&'static self, recorder: &Recorder) -> Option<()> {
        if self.pid != system::process_id() {
            fork::notice();
            return None;
        }
        let stream = &recorder.stream;
        if !self.owns(recorder) {
            recorder.end_chunk();
            stream.session.set(self);
            stream.kept.forget();
            stream.sequence.set(0);
            self.streams.fetch_add(1, Ordering::Relaxed);
            self.spool.allow(self.chunks_per_thread());
        }
        let old = recorder.has_chunk().then(|| stream.chunk.get());
        if let Some(writer) = &self.writer {
            // Whoever wants events dropped rather than written by the program's threads wants the writer to write.
            let drops = || self.config.on_full == OnFull::Drop && old.is_some();
            writer.start(self, || drops() || !system::has_one_thread());
        }
        let begin = clock::ticks();
        let next = match self.config.keep {
            Keep::All => self.next_chunk(old),
            Keep::Newest => self.next_kept(stream, old).map(|index| (index, None)),
        };
        recorder.end_chunk();
        let (index, flushed) = next?;
        self.begin_chunk(recorder, index);
        if let Some(bytes) = flushed {
            tell(
                recorder,
                BufferFlush {
                    begin: Ticks(begin),
                    bytes,
                },
            );
        }
        Some(())
    }

    /// The chunk that a thread goes on with when `old` is full, or that it begins with; and the bytes that it had to
    /// write itself to get it.
    fn next_chunk(&self, old: Option<u32>) -> Option<(u32, Option<u64>)> {
        let keeps_its_own = self.running_writer().is_none() && old.is_some();
        if !keeps_its_own && let Some(index) = self.take_chunk(Growth::Allowed) {
            old.into_iter().for_each(|old| self.hand_over(old));
            return Some((index, None));
        }
        if self.running_writer().is_some() && self.config.on_full == OnFull::Drop {
            old.into_iter().for_each(|old| self.hand_over(old));
            return None;
        }
        // Of threads that come and go, the writer may have all chunks: one of those does as well as an own one.
        match old.or_else(|| self.spool.queues.take_full()) {
            Some(index) => Some((index, Some(self.write_own(index)?))),
            None => Some((self.take_chunk(Growth::Beyond)?, None)),
        }
    }

    /// The same of a flight recorder: a new chunk while the thread has fewer than it may have, then one of a thread that is
    /// gone, then its own oldest.
    fn next_kept(&self, stream: &Stream, old: Option<u32>) -> Option<u32> {
        old.into_iter().for_each(|old| self.keep(stream, old));
        let may_have_more = stream.kept.len() < self.chunks_per_thread() as u32;
        let new = || {
            self.take_chunk(Growth::Allowed)
                .or_else(|| self.spool.queues.take_full())
        };
        let index = may_have_more
            .then(new)
            .flatten()
            .or_else(|| stream.kept.pop(&self.spool))
            .or_else(|| self.take_chunk(Growth::Beyond))?;
        let _nobody_writes_it = self.keeping();
        self.spool.chunk(index).header().set_state(ChunkState::FREE);
        Some(index)
    }

    /// A full chunk stays where it is.
    fn keep(&self, stream: &Stream, index: u32) {
        self.spool.chunk(index).header().set_state(ChunkState::FULL);
        stream.kept.push(&self.spool, index);
    }

    /// Writes what all threads keep, but for the chunks that they are writing into. The chunks stay theirs.
    pub(crate) fn write_kept(&self) {
        for (_, chunk) in self.spool.all() {
            let _nobody_takes_it = self.keeping();
            if chunk.header().is_full() {
                match self.output.write_chunk(chunk, None) {
                    Ok(_) => chunk.header().set_state(ChunkState::FREE),
                    Err(error) => return self.fail("write", &error),
                }
            }
        }
    }

    fn keeping(&self) -> lock::Guard<'_, ()> {
        self.keeping.lock()
    }

    /// The header of a chunk of its spool; `None` where there is no such chunk.
    pub(crate) fn header(&self, index: u32) -> Option<&Header> {
        let chunk = self.spool.reserved_chunk(index);
        chunk.map(spool::Chunk::header)
    }

    /// A chunk that nobody uses.
    fn take_chunk(&self, growth: Growth) -> Option<u32> {
        self.spool.take(growth).unwrap_or_else(|error| {
            // Threads that have chunks go on with those; this one loses its events, which are counted.
            if !self.told_trouble.swap(true, Ordering::Relaxed) {
                warning!(
                    "no more space for events in {}: {error}; some threads lose events",
                    self.spool_name()
                );
            }
            None
        })
    }

    fn chunks_per_thread(&self) -> i32 {
        let chunks = (self.config.buffer_bytes / CHUNK_BYTES) as i32;
        match (self.config.keep, &self.writer) {
            // One with old events while the other gets new ones.
            (Keep::Newest, _) => chunks.max(2),
            (Keep::All, Some(_)) => chunks,
            (Keep::All, None) => 1,
        }
    }

    /// The writer, once there is a thread.
    fn running_writer(&self) -> Option<&Writer> {
        self.writer.as_ref().filter(|writer| writer.is_running())
    }

    /// Gives a full chunk to the writer; without one, writes it.
    fn hand_over(&self, index: u32) {
        match self.running_writer() {
            Some(writer) => {
                let chunk = self.spool.chunk(index);
                self.spool.queues.hand_over(index, chunk.header());
                writer.wake();
            }
            // What cannot be written stays in the spool, where the reader finds it.
            None if self.write_own(index).is_some() => self.release(index),
            None => {}
        }
    }

    fn write_own(&self, index: u32) -> Option<u64> {
        self.output
            .write_chunk(self.spool.chunk(index), None)
            .inspect_err(|error| self.fail("write", error))
            .ok()
    }

    fn release(&self, index: u32) {
        let chunk = self.spool.chunk(index);
        self.spool.queues.release(index, chunk.header());
    }

    /// Writes the chunks that were handed over, until there is none.
    pub(crate) fn drain(&self, packer: &mut Option<Packer>) {
        while let Some(index) = self.spool.queues.take_full() {
            // Behind with its work, the writer packs nothing, which takes it a tenth of the time; sealing does that later.
            let packer = match self.spool.queues.are_short() {
                true => None,
                false => packer.as_mut(),
            };
            match self.output.write_chunk(self.spool.chunk(index), packer) {
                Ok(_) => self.release(index),
                // It stays in the spool, full, where the reader finds it.
                Err(error) => self.fail("write", &error),
            }
        }
    }

    /// True where no chunk waits to be written.
    pub(crate) fn is_drained(&self) -> bool {
        self.spool.queues.is_drained()
    }

    /// Starts the recorder's next chunk and tells what its stream must know.
    fn begin_chunk(&self, recorder: &Recorder, index: u32) {
        let stream = &recorder.stream;
        let first = stream.sequence.get() == 0;
        let alone = self.config.keep == Keep::Newest;
        if alone {
            stream.modules.forget();
        }
        let held = if first { stream.held.take() } else { None };
        let pair = held
            .as_ref()
            .map_or_else(|| clock::pair().0, |(pair, _)| *pair);
        let newest_id = if held.is_some() {
            stream.first_id()
        } else {
            recorder.state().next_id
        };
        let chunk = self.spool.chunk(index);
        chunk
            .header()
            .begin(stream.number.get(), stream.sequence.get(), pair, newest_id);
        stream.chunk.set(index);
        stream.sequence.set(stream.sequence.get() + 1);
        stream.stale.set(false);
        // SAFETY: the chunk came from the free ones, or is the thread's own that was just written: it is this
        // thread's alone.
        unsafe { recorder.begin_chunk(chunk.event_words(), EVENT_WORDS, pair.ticks, newest_id) };
        // What was held back is older than now, and comes behind what tells whose stream it is.
        let start = pair.ticks;
        if first && stream.is_device.get() {
            let device_num = stream.device_num.get();
            tell_at(start, recorder, DeviceStream { device_num });
        } else if first || alone {
            let name = system::thread_name();
            let info = ThreadInfo {
                os_tid: system::thread_id(),
                name: Text::new(&name),
            };
            tell_at(start, recorder, info);
            if !self.told_begin.swap(true, Ordering::Relaxed) {
                let change = MonitoringChange::begin;
                tell_at(start, recorder, Monitoring { change });
            }
        }
        for (ticks, event) in held.into_iter().flat_map(|(_, events)| events) {
            recorder.put_slowly(ticks, |state, ticks, out| event.encode(state, ticks, out));
        }
        let lost = self.count_lost(recorder);
        if lost > 0 {
            tell(
                recorder,
                Lost {
                    begin: Ticks(stream.lost_since.get()),
                    events: lost,
                },
            );
        }
        self.modules
            .refresh(&stream.modules, |module| tell(recorder, module));
    }

    /// Adds what a stream lost to what the session lost, once.
    fn count_lost(&self, recorder: &Recorder) -> u64 {
        let lost = recorder.stream.take_lost(Some(self));
        // Relaxed: only the sum counts.
        self.lost.fetch_add(lost, Ordering::Relaxed);
        lost
    }

    /// Tells of what was lost since the stream's last chunk began, in a chunk of its own: its thread will not come again.
    fn tell_last_lost(&self, recorder: &Recorder) {
        let (stream, lost) = (&recorder.stream, self.count_lost(recorder));
        if lost == 0 {
            return;
        }
        let place = Chunk {
            stream: stream.number.get(),
            sequence: stream.sequence.replace(stream.sequence.get() + 1),
            clock: clock::pair().0,
            first_id: 0,
        };
        let row = Lost {
            begin: Ticks(stream.lost_since.get()),
            events: lost,
        };
        let mut words = [0; 2 * MAX_COMPACT_WORDS];
        let len = row.encode(0, &mut words).unwrap_or(0);
        if let Err(error) = self.output.write_words(&place, &words[..len], None) {
            self.fail("write", &error);
        }
    }

    /// The thread of the recorder is gone.
    pub(crate) fn end_stream(&self, recorder: &Recorder) {
        self.spool.allow(-self.chunks_per_thread());
        let stream = &recorder.stream;
        let last = recorder.has_chunk().then(|| stream.chunk.get());
        match self.config.keep {
            Keep::All => last.into_iter().for_each(|last| self.hand_over(last)),
            Keep::Newest => {
                // New threads take them when they may have no others.
                let kept = std::iter::from_fn(|| stream.kept.pop(&self.spool));
                for index in kept.chain(last) {
                    let chunk = self.spool.chunk(index);
                    self.spool.queues.hand_over(index, chunk.header());
                }
            }
        }
        self.tell_last_lost(recorder);
    }

    /// What was recorded so far by this thread, and handed over by others, is in the file. The rest is in the spool,
    /// where it is as safe.
    pub(crate) fn flush(&self, recorder: &Recorder) {
        if !self.owns(recorder) || !recorder.has_chunk() {
            return;
        }
        let full = recorder.stream.chunk.get();
        if self.config.keep == Keep::Newest {
            self.keep(&recorder.stream, full);
            recorder.end_chunk();
            return self.write_kept();
        }
        self.hand_over(full);
        recorder.end_chunk();
        if let Some(writer) = self.running_writer() {
            writer.hurry();
            let waited = Stopwatch::start();
            while !self.is_drained() && waited.elapsed() < PATIENCE {
                writer.wake();
                system::sleep(Duration::from_micros(50));
            }
            writer.relax();
        }
    }

    /// Turns tracing off for good: one line, and the program runs on.
    fn fail(&self, what: &str, error: &io::Error) {
        Mode::Off.set();
        // What has no number is a descriptor that the program closed, see `ProtectedFd`.
        let number = error.raw_os_error().unwrap_or(libc::EBADF);
        // Relaxed: the number is all that is shared.
        let (ours, theirs) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_first = self.failure.compare_exchange(0, number, ours, theirs);
        if is_first.is_ok() {
            self.spool.tell_failure(number);
        }
        if !self.told_trouble.swap(true, Ordering::Relaxed) {
            warning!(
                "cannot {what} {}: {error}; tracing is off, the program goes on. What was recorded is kept in {}",
                self.output.path().display(),
                self.spool_name()
            );
        }
    }

    /// What turned tracing off.
    fn failure(&self) -> Option<io::Error> {
        // Relaxed: the number is all that is shared.
        let number = self.failure.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    /// What messages call the spool.
    fn spool_name(&self) -> std::path::Display<'_> {
        let memory = Path::new("the program's memory, until it ends");
        self.spool.path().unwrap_or(memory).display()
    }

    /// Ends the session. A thread that is on the cold path for longer than [`PATIENCE`], as in a slow write of its own,
    /// keeps its chunk, its cells and the spool: what it still records lies there, where the reader finds it, as after a
    /// kill.
    fn end(&'static self, how: &str) {
        let start = Stopwatch::start();
        Mode::Off.set();
        let is_quiet = recorder::wait_until_quiet(PATIENCE);
        if is_quiet {
            for recorder in recorder::all().filter(|recorder| self.owns(recorder)) {
                self.tell_last_lost(recorder);
            }
        }
        if let Some(listener) = self.listener.lock().take() {
            listener.stop();
        }
        // The thread that is not quiet may be this one, interrupted by a signal handler that calls `exit`, while it gives a
        // chunk to the writer, which waits for it.
        let most = if is_quiet { None } else { Some(PATIENCE) };
        let mut packer = self.writer.as_ref().and_then(|writer| writer.stop(most));
        if is_quiet {
            self.drain(&mut packer);
        }
        self.output.give_slots_back(PATIENCE);
        let stays_in_spool = !is_quiet && self.spool.path().is_some();
        if !stays_in_spool {
            self.write_rest(start, packer, is_quiet);
        }
        self.write_end(how);
        if !is_quiet {
            // The thread may go on writing, until the process ends.
            return;
        }
        if self.failure().is_some() {
            self.output.unlock();
            return;
        }
        self.output.give_space_back();
        sanitizer::plant_fault();
        self.spool.remove();
        if !self.output.can_be_found() {
            warning!(
                "{} was removed or replaced while the program ran: its trace is gone",
                self.output.path().display()
            );
        }
        // A program that loads its runtime again and again has a session each time.
        self.output.close();
        self.spool.close();
        info!("wrote {}", self.output.path().display());
    }

    /// Says how the session ended. What is said later replaces it.
    fn write_end(&self, how: &str) {
        // Relaxed: where the threads are quiet, all was counted before.
        let (streams, lost) = (
            self.streams.load(Ordering::Relaxed),
            self.lost.load(Ordering::Relaxed),
        );
        let raw_ns = system::clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let mut end = json!({
            "end": { "how": how, "streams": streams, "lost": lost, "raw_ns": raw_ns }
        });
        if let Some(failure) = self.failure() {
            end["failure"] = failure.to_string().into();
        }
        self.write_metadata(&end);
    }

    /// Writes the chunks that threads have not handed over, up to what they have published. Where a thread `is_quiet` not,
    /// it may have any of them: they are not given to others.
    fn write_rest(&self, start: Stopwatch, mut packer: Option<Packer>, is_quiet: bool) {
        for (index, chunk) in self.spool.all() {
            // Not waited for: a signal handler that calls `exit` may have interrupted the thread that has it.
            let nobody_takes_it = self.keeping.try_lock();
            // Kept, or handed over and not written.
            let is_left = self.config.keep == Keep::Newest || !is_quiet;
            let is_full = is_left && nobody_takes_it.is_some() && chunk.header().is_full();
            if is_full || chunk.header().take_over() {
                if start.elapsed() > PACK_AT_END {
                    packer = None;
                }
                match self.output.write_chunk(chunk, packer.as_mut()) {
                    Ok(_) if is_quiet => self.release(index),
                    Ok(_) => {}
                    Err(error) => self.fail("write", &error),
                }
            }
        }
    }
}

/// Records an event of ours; false where it does not fit.
fn tell(recorder: &Recorder, row: impl WideRow) -> bool {
    tell_at(clock::ticks(), recorder, row)
}

/// The same, of this time.
fn tell_at(ticks: u64, recorder: &Recorder, row: impl WideRow) -> bool {
    let encode = |_: &mut State, ticks, out: &mut [u64]| row.encode(ticks, out);
    recorder.put_slowly(ticks, encode).is_some()
}

/// Records a change of monitoring on this thread; the recorder is closed.
pub(crate) fn tell_monitoring(recorder: &Recorder, change: MonitoringChange) {
    tell(recorder, Monitoring { change });
}

/// The spool's path: beside the trace, or in the folder that the user chose.
fn spool_path(config: &Config, output: &Output) -> PathBuf {
    let mut name = output.path().file_name().unwrap_or_default().to_os_string();
    name.push(".spool");
    match &config.spool {
        Some(folder) => system::absolute(&folder.join(name)),
        None => output.path().with_file_name(name),
    }
}

/// A number that no other session has: process and start, mixed (the finalizer of SplitMix64).
fn session_number(pid: u32, start: ClockPair) -> u64 {
    let mut x = start.realtime_ns ^ (u64::from(pid) << 40) ^ start.ticks.rotate_left(17);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
