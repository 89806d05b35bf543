//! Starts a session, for all generations of the tools interface.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::metadata::{Metadata, Registration, Runtime};

use crate::callbacks::control_tool;
use crate::calls;
use crate::config::Config;
use crate::dialects::dialect::recordable;
use crate::dialects::hooks::HOOKS;
use crate::os::log::warning;
use crate::os::threads::thread_word;
use crate::os::time::clock;
use crate::os::{panics, system};
use crate::runtime::metadata;
use crate::session::{self, Session, fork, hooks};

/// Whether the session was started by another interface, and no OpenMP runtime takes part in it yet.
static AWAITS_RUNTIME: AtomicBool = AtomicBool::new(false);

/// The settings; `None` if the program should not be traced.
pub(crate) fn configured() -> Option<Config> {
    panics::report_panics();
    // A runtime may have two interfaces, and a process two runtimes: the first one found is traced. Relaxed: runtimes
    // are initialised one after the other, and a session starts before `MPI_Init` returns.
    if session::is_in_progress() && !AWAITS_RUNTIME.load(Ordering::Relaxed) {
        return None;
    }
    if !thread_word::is_usable() {
        warning!("the program is not traced, because it uses all thread-specific keys (PTHREAD_KEYS_MAX)");
        return None;
    }
    // The variables are controlled by the user, but the files would be written with the program's privileges.
    if system::has_more_rights_than_its_user() {
        warning!(
            "the program is not traced, because it has more privileges than its user (setuid, capabilities)"
        );
        return None;
    }
    let config = Config::from_environment(recordable());
    calls::configure(&config);
    config.is_enabled().then(|| {
        hooks::register(&HOOKS);
        fork::watch();
        config
    })
}

/// A session that has its file, but does not record yet: the runtime is still being queried.
pub(crate) struct Prepared {
    pub(crate) session: &'static Session,
    /// The session is already in progress.
    goes_on: bool,
    first: ClockPair,
    uncertainty: u64,
}

impl Prepared {
    /// Creates the trace file.
    ///
    /// # Errors
    /// A message that says what failed, and what to do about it.
    pub(crate) fn new(config: Config) -> Result<Prepared, String> {
        // Relaxed: as in `configured`.
        let goes_on = AWAITS_RUNTIME.swap(false, Ordering::Relaxed);
        if let Some(session) = session::of_this_process().filter(|_| goes_on) {
            control_tool::reset();
            let (first, uncertainty) = clock::pair();
            return Ok(Prepared { session, goes_on, first, uncertainty });
        }
        clock::choose();
        control_tool::reset();
        let (first, uncertainty) = clock::pair();
        Ok(Prepared { session: session::start(config)?, goes_on: false, first, uncertainty })
    }

    /// Starts recording what `runtime` reports. `callbacks` are the registered callbacks, and `withheld` those not
    /// registered, with the reasons.
    pub(crate) fn begin(
        self,
        runtime: Runtime,
        callbacks: BTreeMap<String, Registration>,
        withheld: BTreeMap<String, String>,
    ) {
        let clock = clock::describe(self.first, self.uncertainty);
        let mut facts = metadata::runtime(runtime, callbacks, clock);
        facts.withheld = withheld;
        self.session.report_runtime(facts);
        match self.goes_on {
            true => hooks::runtime_joins(),
            false => self.session.begin(),
        }
    }

    /// Starts recording without a runtime, until one is initialized.
    fn begin_without_runtime(self) {
        let clock = Some(clock::describe(self.first, self.uncertainty));
        self.session.write_metadata(&Metadata { clock, ..Metadata::default() });
        // Relaxed: as in `configured`.
        AWAITS_RUNTIME.store(true, Ordering::Relaxed);
        self.session.begin();
    }
}

/// Starts a session for calls of another interface, unless there is one. Returns whether there is a session now.
pub(crate) fn begin_without_runtime() -> bool {
    if session::is_in_progress() {
        return true;
    }
    let Some(config) = configured() else { return false };
    match Prepared::new(config) {
        Ok(prepared) => {
            prepared.begin_without_runtime();
            true
        }
        Err(message) => {
            warning!("{message}; the program runs without tracing");
            false
        }
    }
}
