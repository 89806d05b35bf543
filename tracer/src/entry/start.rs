//! The tool's life, from `ompt_start_tool` to `finalize`.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use ompt_sys::{
    ompt_callback_sync_region_wait, ompt_data_t, ompt_function_lookup_t, ompt_set_callback_t,
    ompt_start_tool_result_t,
};
use omptrace_settings::value::{Sample, Switch};
use omptrace_trace_format::metadata::Registration;

use crate::config::{Config, STATE};
use crate::counters;
use crate::devices;
use crate::dialects::dialect::{Dialect, Wanted};
use crate::dialects::ending;
use crate::dialects::join_barrier_callbacks;
use crate::dialects::prepared::{Prepared, configured};
use crate::dialects::thread_state;
use crate::entry::libgomp_threads;
use crate::entry::preload;
use crate::os::loader;
use crate::os::log::warning;
use crate::os::threads::containment::contained;
use crate::os::threads::lock::Mutex;
use crate::os::threads::stack;
use crate::runtime::lookup::{Lookup, text};
use crate::runtime::replaced_libgomp;
use crate::runtime_faults::lock_after_exit;
use crate::runtime_faults::undeferred_dependences;
use crate::runtime_faults::withheld;
use crate::samples;
use crate::second_tool;
use crate::session::{self};

/// What `ompt_start_tool` learned, for `initialize`.
#[derive(Debug)]
struct Start {
    config: Config,
    omp_version: u32,
    runtime_version: String,
}

static START: Mutex<Option<Start>> = Mutex::new(None);

/// The structure that `ompt_start_tool` returns; the runtime reads it, and passes on the address of its last member.
#[repr(transparent)]
struct StartResult(ompt_start_tool_result_t);

// SAFETY: only written through `tool_data`, which belongs to the runtime and the tool in turn, and is not used.
unsafe impl Sync for StartResult {}

static RESULT: StartResult = StartResult(ompt_start_tool_result_t {
    // SAFETY: the functions differ only in arguments that `initialize` treats as numbers: see there.
    initialize: Some(unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(ompt_function_lookup_t, usize, usize) -> c_int,
            ompt_sys::ompt_initialize_t,
        >(initialize)
    }),
    finalize: Some(finalize),
    tool_data: ompt_data_t { value: 0 },
});

/// The runtime looks for this symbol (OpenMP 5.2, 19.2.1). Returns null to refuse tracing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut ompt_start_tool_result_t {
    if !loader::is_running() {
        return null_mut();
    }
    let start = || {
        // SAFETY: the runtime passes a C string of its own.
        let runtime_version = unsafe { text(runtime_version) };
        libgomp_threads::before_runtime(&runtime_version);
        report_second_runtime(&runtime_version);
        let Some(config) = configured() else {
            return null_mut();
        };
        *START.lock() = Some(Start { config, omp_version, runtime_version });
        (&raw const RESULT.0).cast_mut()
    };
    contained(|| stack::with_much(start)).unwrap_or(null_mut())
}

/// Called when the runtime is ready (OpenMP 5.2, 19.5.1.1); returns 0 to refuse tracing.
///
/// The generations of the interface differ in the arguments after the first, by which they are distinguished; see
/// [`Dialect::of_initialize`].
unsafe extern "C" fn initialize(lookup: ompt_function_lookup_t, second: usize, third: usize) -> c_int {
    let start = || initialize_traced(lookup, second, third);
    contained(|| stack::with_much(start)).unwrap_or(0)
}

/// [`initialize`], running with a large stack.
fn initialize_traced(lookup: ompt_function_lookup_t, second: usize, third: usize) -> c_int {
    let Some(dialect) = Dialect::of_initialize(&RESULT.0, second, third) else {
        warning!(
            "the program is not traced, because its OpenMP runtime has a tools interface that omptrace does not support"
        );
        return 0;
    };
    // SAFETY: the first argument of `ompt_initialize_t`, in all generations.
    let lookup = unsafe { Lookup::new(lookup) };
    let Some(start) = START.lock().take() else {
        warning!(
            "the program is not traced, because its OpenMP runtime called initialize before ompt_start_tool"
        );
        return 0;
    };
    let has_second_tool =
        dialect == Dialect::V5 && contained(|| has_second_tool(lookup, &start, second)).unwrap_or(false);
    match contained(|| begin(lookup, dialect, start, has_second_tool)) {
        Ok(Ok(())) => 1,
        Ok(Err(message)) => {
            warning!("{message}; the program runs without tracing");
            c_int::from(has_second_tool)
        }
        Err(_) => c_int::from(has_second_tool),
    }
}

/// Starts the next tool, if there is one.
fn has_second_tool(lookup: Lookup, start: &Start, initial_device: usize) -> bool {
    let Some(set_callback) = lookup.set_callback() else {
        return false;
    };
    let next = match start.config.chain {
        Switch::On => start.config.next_tool.as_ref(),
        Switch::Off => return false,
    };
    let runtime = second_tool::Runtime {
        set_callback,
        omp_version: start.omp_version,
        version: &start.runtime_version,
        initial_device: initial_device as c_int,
    };
    second_tool::begin(&runtime, next.map(|library| library.0.as_os_str()), preload::is_global())
}

/// Reports a second runtime, which is not traced, so that its events will be missing. If the traced runtime uses the
/// Collector API, which has no lookup function, the second one may be the same.
fn report_second_runtime(version: &str) {
    if let (Some(session), Some(_)) = (session::of_this_process(), Lookup::current()) {
        let message = format!("a second OpenMP runtime in this process is not traced: {version}");
        warning!("{message}");
        session.report_messages(vec![message]);
    }
}

fn begin(lookup: Lookup, dialect: Dialect, start: Start, has_second_tool: bool) -> Result<(), String> {
    let set_callback = lookup.set_callback().ok_or("the OpenMP runtime has no ompt_set_callback")?;
    // SAFETY: the runtime's entry point, called in `initialize`.
    let dialect = unsafe { dialect.refined(set_callback) };
    let events = start.config.events.clone();
    let insisted = start.config.insisted.clone();
    let prepared = Prepared::new(start.config)?;
    devices::of_runtime(prepared.session, &start.runtime_version);
    let mut results = BTreeMap::new();
    // The callbacks for a thread's begin and end are always needed: they open and close its stream.
    let mut withheld = withheld::callbacks(&start.runtime_version, &insisted);
    withheld.retain(|name, _| events.contains(&name.as_str()));
    let wanted = |name| {
        let is_asked = events.contains(&name) && !withheld.contains_key(name);
        is_asked || ["thread_begin", "thread_end"].contains(&name)
    };
    let states = events.contains(&STATE);
    thread_state::read_by(lookup.get_state().filter(|_| states));
    let sampling = match prepared.session.config.sample {
        Sample::On(wanted) if dialect == Dialect::V5 => Some(wanted),
        _ => None,
    };
    let asked = if has_second_tool { second_tool::our_lookup() } else { lookup };
    samples::ask_by(Some(asked).filter(|_| sampling.is_some()));
    let (set_callback, version): (ompt_set_callback_t, _) = match has_second_tool {
        // Workarounds that write data words are applied for both tools.
        true => (second_tool::set_ours, ""),
        false => (set_callback, &*start.runtime_version),
    };
    let wanted_besides = Wanted {
        states,
        samples: sampling.is_some(),
        task_stacks: sampling.is_some_and(|wanted| wanted.task_stacks),
        counters: counters::are_wanted(&prepared.session.config),
    };
    let callbacks = dialect.callbacks(version, wanted_besides);
    let registered = || callbacks.iter().filter(|callback| wanted(callback.name));
    lock_after_exit::watch(&start.runtime_version, set_callback, registered());
    let mut may_be_taken_back = registered().filter(|callback| !insisted.contains(&callback.name));
    undeferred_dependences::watch(
        &start.runtime_version,
        set_callback,
        may_be_taken_back.find(|callback| callback.name == "dependences").map(|callback| callback.number),
    );
    for callback in registered() {
        // SAFETY: an entry point of the runtime; the function has the signature that the dialect gives to the number.
        let result = unsafe { set_callback(callback.number, Some(callback.function)) };
        results.insert(
            callback.name.into(),
            Registration {
                number: callback.number.0,
                result: result.0,
                meaning: dialect.set_result(result).unwrap_or("unknown").into(),
            },
        );
    }
    if let Some(function) = join_barrier_callbacks::needs_wait(&start.runtime_version, &results)
        && !has_second_tool
    {
        // SAFETY: as above.
        unsafe { set_callback(ompt_callback_sync_region_wait, Some(function)) };
    }
    if replaced_libgomp::replaced().is_some() {
        replaced_libgomp::look_up_max_threads(lookup.address());
    }
    let runtime = lookup.describe(dialect.name(), &start.runtime_version, start.omp_version);
    prepared.begin(runtime, results, withheld);
    ending::finalize_is_due(true);
    Ok(())
}

/// Called when the runtime ends (OpenMP 5.2, 19.5.1.2).
unsafe extern "C" fn finalize(_: *mut ompt_data_t) {
    devices::process_ends();
    // Stop devices here, where entry points may still be called, for runtimes that do not finalize their devices first.
    let _ = contained(devices::stop_all);
    second_tool::end();
    ending::end("finalize");
    devices::process_has_ended();
}

/// Whether the runtime is loaded and has yet to call `finalize`. It can still do so, because this library stays mapped
/// (it is linked with `-z nodelete`).
fn runtime_comes_later() -> bool {
    let is_loaded = |lookup: Lookup| loader::library_of(lookup.address()).is_some();
    ending::is_finalize_due()
        && preload::is_global()
        && Lookup::current().is_some_and(is_loaded)
        && session::outlives_process()
}

/// Runs when the program ends, or the library is closed. `finalize` has not been called, and never will be if the
/// program called `exit` inside a parallel region or on a worker thread. But if the library was preloaded, the loader
/// runs this destructor before that of the runtime, which then reports the end of its threads and calls `finalize`. So
/// the session continues, and everything known so far is written to the trace in case nothing follows.
#[unsafe(link_section = ".fini_array")]
#[used]
static DESTRUCTOR: extern "C" fn() = {
    extern "C" fn destructor() {
        if !loader::is_running() {
            return;
        }
        if contained(runtime_comes_later).unwrap_or(false) {
            let _ = contained(|| session::note_end("destructor"));
        } else {
            ending::end("destructor");
        }
    }
    destructor
};

const _: fn() -> *const c_void = || DESTRUCTOR as *const c_void;
