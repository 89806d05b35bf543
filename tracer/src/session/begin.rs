//! Starts a session, in the process in which the runtime starts, and in a forked child.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

use omptrace_settings::value::{Compress, Folder, Keep};
use omptrace_trace_format::Metadata;
use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::spool::default_path;

use crate::config::Config;
use crate::launched_rank;
use crate::os::files::file_system;
use crate::os::log::{info, warning};
use crate::os::system;
use crate::os::threads::lock::Mutex;
use crate::os::time::clock;
use crate::recorder::held_events;
use crate::recorder::recorder::Mode;
use crate::session::current::{self, Session};
use crate::session::helper_threads::{Listener, Writer};
use crate::session::hooks;
use crate::session::loaded_modules::{Loaded, Modules};
use crate::session::metadata;
use crate::storage::spool::Spool;
use crate::storage::trace_file::{Names, Output};

/// Prepares a session; recording begins with [`Session::begin`].
///
/// # Errors
/// A message that says what failed, and what to do about it.
pub(crate) fn start(config: Config) -> Result<&'static Session, String> {
    let registry = config.registry.clone();
    let session = Session::create(config, Vec::new()).inspect_err(|why| {
        if let Some(Folder(folder)) = registry {
            metadata::register_failure(&folder, why);
        }
    })?;
    // Before any event: from here on, a kill leaves a file that identifies its process.
    session.write_metadata(&metadata::process(session, false));
    session.report_spool();
    Ok(session.install())
}

/// Starts the session of a forked child, with the settings and the runtime's description of its parent.
pub(crate) fn start_in_child(is_paused: bool) {
    let Some(parent) = current::current() else { return };
    match Session::create(parent.config.clone(), parent.modules.reported()) {
        Ok(session) => {
            // The events held back until now belong to the session, too.
            let start = held_events::asleep_since().unwrap_or_else(|| clock::pair().0);
            session.write_metadata_of(start, &metadata::process(session, true));
            session.report_spool();
            match parent.runtime.get() {
                Some(runtime) => session.report_runtime(runtime.clone()),
                None => {
                    let (first, uncertainty) = clock::pair();
                    let clock = Some(clock::describe(first, uncertainty));
                    session.write_metadata(&Metadata { clock, ..Metadata::default() });
                }
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

impl Session {
    /// Creates a session; `inherited` are the modules that the parent's session reported.
    fn create(config: Config, inherited: Vec<Loaded>) -> Result<&'static Session, String> {
        let pid = system::process_id();
        let (pair, _) = clock::pair();
        let number = session_number(pid, pair);
        let start = clock::local_time();
        let names = Names {
            program: &metadata::program_name(),
            host: &system::host(),
            pid,
            rank: launched_rank::rank(),
            start: &start.format("%Y%m%dT%H%M%S").to_string(),
        };
        let wanted = system::absolute(names.expand(&config.output.0).as_ref());
        make_folder_of_pattern(&config.output.0, &wanted);
        let cannot = |what: &str, path: &Path, error: io::Error| {
            format!(
                "cannot {what} {}: {error}; choose another location with OMPTRACE_OUTPUT or OMPTRACE_SPOOL",
                path.display()
            )
        };
        let output = Output::create(&wanted, number).map_err(|error| cannot("create", &wanted, error))?;
        let make_spool = || -> Result<Spool, String> {
            let create = |path: &Path| Spool::create(path, number, pid, output.path());
            let chosen = config.spool.as_ref().map(|Folder(folder)| &**folder);
            let path = spool_path(chosen, &output);
            let local = if chosen.is_none() { folder_on_this_host(&output) } else { None };
            let spool = local.and_then(|folder| create(&spool_path(Some(&folder), &output)).ok());
            let spool = match spool {
                Some(spool) => spool,
                None => create(&path).map_err(|error| cannot("create the spool", &path, error))?,
            };
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
        let session: &'static Session = Box::leak(Box::new(Session {
            pid,
            cpus: system::affinity(),
            modules: Modules::new(
                config.mode,
                inherited,
                config.registry.clone().map(|Folder(folder)| folder),
            ),
            config,
            output,
            spool,
            writer: level.map(Writer::new),
            listener: Mutex::new(None),
            keeping: Mutex::new(()),
            streams: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            reported_begin: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            reported_trouble: AtomicBool::new(false),
            asked_runtime: AtomicBool::new(false),
            reported_cost: AtomicBool::new(false),
            runtime: OnceLock::new(),
            messages: Mutex::default(),
        }));
        hooks::prepare(session);
        Ok(session)
    }

    fn install(&'static self) -> &'static Session {
        current::install(self);
        self
    }

    /// Starts recording.
    pub(crate) fn begin(&'static self) {
        if self.config.mode == Keep::Newest && self.config.flush_on.is_some() {
            *self.listener.lock() = Listener::start(self);
        }
        hooks::begin(self);
        self.record();
        info!("tracing into {}", self.output.path().display());
    }

    /// Reports in the trace if there is no spool.
    fn report_spool(&self) {
        if self.spool.path().is_none() {
            let message = "files cannot be mapped, so events that are not yet written are lost if the program is killed";
            self.report_messages(vec![message.to_owned()]);
        }
    }
}

/// The spool's path in this directory, or next to the trace.
fn spool_path(folder: Option<&Path>, output: &Output) -> PathBuf {
    let beside = default_path(output.path());
    match folder {
        Some(folder) => system::absolute(&folder.join(beside.file_name().unwrap_or_default())),
        None => beside,
    }
}

/// The directory for temporary files, if it is on a disk of this host and the trace is on a network file system: there, the
/// kernel would send each page of the spool through the network.
fn folder_on_this_host(output: &Output) -> Option<PathBuf> {
    let is_shared = file_system::is_shared_by_hosts(output.path()).unwrap_or(false);
    let folder = is_shared.then(std::env::temp_dir)?;
    file_system::is_local_disk(&folder).unwrap_or(false).then_some(folder)
}

/// A unique number for a session: a hash of process id and start time (the finalizer of SplitMix64).
fn session_number(pid: u32, start: ClockPair) -> u64 {
    let mut x = start.realtime_ns ^ (u64::from(pid) << 40) ^ start.ticks.rotate_left(17);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Creates the trace's directory if its name contains a pattern, as in `traces/%e.%r/%p.omptrace`, because it cannot be
/// created before the run. If that fails, creating the trace reports why.
fn make_folder_of_pattern(pattern: &OsStr, wanted: &Path) {
    let folder = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    if folder(Path::new(pattern)).as_os_str().as_encoded_bytes().contains(&b'%') {
        let _ = std::fs::create_dir_all(folder(wanted));
    }
}
