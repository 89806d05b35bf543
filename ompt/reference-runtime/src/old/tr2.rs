//! OMPT of 2014, Technical Report 2: the runtime finds a preloaded tool's `ompt_initialize`, offers it the report's
//! entry points, and plays [`Tr2`] steps.

#![allow(non_upper_case_globals, reason = "constants are spelled as in C")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard};

use libloading::os::unix::Library;
use ompt_sys::tr2::*;
use ompt_sys::tr6::omp_frame_t;
use ompt_sys::{ompt_callback_t, ompt_interface_fn_t};
use serde_json::{Value, json};

use crate::argument::Line;
pub use crate::script::steps::{Entry, Tr2};
use crate::tool::{Found, Place};

#[derive(Debug, Default)]
pub(crate) struct Runtime {
    may_register: bool,
    is_openuh: bool,
    has_data: bool,
    grants: BTreeMap<String, u32>,
    callbacks: BTreeMap<u32, usize>,
}

static RUNTIME: Mutex<Runtime> = Mutex::new(Runtime {
    may_register: false,
    is_openuh: false,
    has_data: false,
    grants: BTreeMap::new(),
    callbacks: BTreeMap::new(),
});

thread_local! {
    /// State and wait id.
    static STATE: Cell<(u32, u64)> = const { Cell::new((ompt_state_work_serial.0, 0)) };
    static REGION: Cell<u64> = const { Cell::new(0) };
}

const NOT_SUPPORTED: u32 = 0;
const ALWAYS: u32 = 4;
const SOMETIMES: u32 = 3;
/// Number of threads of every region.
const TEAM_SIZE: c_int = 2;
const EXIT_FRAME: usize = 0x1000;
const REENTER_FRAME: usize = 0x2000;

/// Initializes the tool in the process (6.1.1 and table 4).
pub(crate) fn activate(entry: Entry, version: &str, grants: &BTreeMap<String, u32>) -> Found {
    *at_rest() = Runtime {
        may_register: true,
        is_openuh: entry == Entry::OpenUh,
        has_data: entry == Entry::Omp4Buffer,
        grants: grants.clone(),
        callbacks: BTreeMap::new(),
    };
    search(entry, version)
}

/// Like [`activate`], in a forked child, with what its parent granted.
pub(crate) fn search_again(entry: Entry) -> Found {
    let mut runtime = at_rest();
    runtime.may_register = true;
    runtime.callbacks.clear();
    drop(runtime);
    search(entry, "")
}

/// Locks the runtime's state, so that no other thread uses it.
pub(crate) fn at_rest() -> MutexGuard<'static, Runtime> {
    RUNTIME.lock().expect("no thread panics with it")
}

fn search(entry: Entry, version: &str) -> Found {
    const REPORT: u32 = 1;

    match std::env::var("OMP_TOOL").as_deref() {
        Err(_) | Ok("enabled") => {}
        Ok(_) => return Found::Disabled,
    }
    let process = Library::this();
    // SAFETY: the report, and LLVM for `ompt_tool`, define these types for the symbols.
    let initialize = unsafe {
        match entry {
            Entry::Tool | Entry::Omp4Buffer => process
                .get::<unsafe extern "C" fn() -> Option<ompt_initialize_t>>(b"ompt_tool\0")
                .ok()
                .and_then(|tool| tool()),
            _ => process.get::<ompt_initialize_t>(b"ompt_initialize\0").ok().map(|initialize| *initialize),
        }
    };
    let Some(initialize) = initialize else {
        return Found::Nothing;
    };
    let version = CString::new(version).unwrap_or_default();
    // SAFETY: called as specified by the report.
    let is_active = unsafe { initialize(lookup, version.as_ptr(), REPORT) } != 0;
    let mut runtime = at_rest();
    runtime.may_register = false;
    if is_active {
        Found::Active(Place::AddressSpace)
    } else {
        runtime.callbacks.clear();
        Found::Declined(Place::AddressSpace)
    }
}

impl Tr2 {
    /// Calls the tool if it has registered the event; returns the line that the tool should record, if the event is
    /// recorded.
    pub(crate) fn play(&self) -> Option<Line> {
        let event = ompt_event_t(self.event);
        self.note(event);
        let callback = {
            let runtime = at_rest();
            *runtime.callbacks.get(&self.event)?
        };
        let frame =
            omp_frame_t { exit_frame: EXIT_FRAME as *mut c_void, enter_frame: REENTER_FRAME as *mut c_void };
        let mut words = self.words.clone();
        words.resize(6, 0xdead);
        let has_frame = matches!(event, ompt_event_parallel_begin | ompt_event_task_begin);
        if has_frame && words[1] != 0 {
            words[1] = &raw const frame as u64;
        }
        // SAFETY: all callbacks of the report take words in registers; a tool ignores those that it does not declare.
        let callback: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) =
            unsafe { std::mem::transmute(callback) };
        // SAFETY: as above.
        unsafe { callback(words[0], words[1], words[2], words[3], words[4], words[5]) };
        self.line(event)
    }

    /// Sets the values that the entry points return from now on.
    fn note(&self, event: ompt_event_t) {
        match event {
            ompt_event_implicit_task_begin => {
                REGION.set(self.words[0]);
                STATE.set((ompt_state_work_parallel.0, 0));
            }
            ompt_event_wait_critical => STATE.set((ompt_state_wait_critical.0, self.words[0])),
            ompt_event_acquired_critical => STATE.set((ompt_state_work_parallel.0, 0)),
            _ => {}
        }
    }

    fn line(&self, event: ompt_event_t) -> Option<Line> {
        let word = |index: usize| Value::from(format!("{:#x}", self.words[index]));
        // An address inside of the outlined function.
        let code = |index: usize| match self.words[index] {
            0 => Value::from("0x0"),
            function => format!("{:#x}", function + 1).into(),
        };
        let frames = |line: &mut Value| {
            let is_null = self.words[1] == 0;
            let place = |address| Value::from(format!("{:#x}", if is_null { 0 } else { address }));
            line["exit_frame"] = place(EXIT_FRAME);
            line["enter_frame"] = place(REENTER_FRAME);
            line["exit_frame_flags"] = "0x0".into();
            line["enter_frame_flags"] = "0x0".into();
        };
        let name = event.name().expect("events have names");
        let endpoint = if name.ends_with("_begin") { "begin" } else { "end" };
        let inside = |event: &str| json!({"event": event, "endpoint": endpoint, "parallel_data": word(0), "task_data": word(1), "codeptr_ra": "0x0"});
        let sync = |event: &str, kind: &str| {
            let mut line = inside(event);
            line["kind"] = kind.into();
            line
        };
        let work = |kind: &str| {
            let mut line = inside("work");
            line["work_type"] = kind.into();
            line["count"] = 0.into();
            if self.words.len() > 2 {
                line["codeptr_ra"] = code(2);
            }
            line
        };
        let mutex = |event: &str, kind: &str| {
            let mut line = json!({"event": event, "wait_id": word(0), "kind": kind, "codeptr_ra": "0x0"});
            if ["mutex_acquire", "lock_init"].contains(&event) {
                line["hint"] = 0.into();
                line["impl"] = 0.into();
            }
            line
        };
        let task = |region: Value, task: usize, flags: &str| {
            let size = if endpoint == "begin" { TEAM_SIZE } else { 0 };
            json!({
                "event": "implicit_task", "endpoint": endpoint, "parallel_data": region, "task_data": word(task),
                "actual_parallelism": size, "index": 0, "flags": flags,
            })
        };
        let kind = name.rsplit('_').next().unwrap_or_default();
        let line = match event {
            ompt_event_parallel_begin => {
                let mut line = json!({
                    "event": "parallel_begin", "encountering_task_data": word(0), "parallel_data": word(2),
                    "requested_parallelism": self.words[3], "flags": "0x0", "codeptr_ra": code(4),
                });
                frames(&mut line);
                line
            }
            ompt_event_parallel_end => json!({
                "event": "parallel_end", "parallel_data": word(0), "encountering_task_data": word(1), "flags": "0x0",
                "codeptr_ra": "0x0",
            }),
            ompt_event_task_begin => {
                let mut line = json!({
                    "event": "task_create", "encountering_task_data": word(0), "new_task_data": word(2), "flags": "0x4",
                    "has_dependences": 0, "codeptr_ra": code(3),
                });
                frames(&mut line);
                line
            }
            ompt_event_task_end => json!({
                "event": "task_schedule", "prior_task_data": word(0), "prior_task_status": "complete", "next_task_data": null,
            }),
            ompt_event_task_switch => json!({
                "event": "task_schedule", "prior_task_data": word(0), "prior_task_status": "switch", "next_task_data": word(1),
            }),
            ompt_event_thread_begin => {
                let kinds = ["unknown", "initial", "worker", "other"];
                json!({"event": "thread_begin", "thread_type": kinds[self.words[0] as usize], "thread_data": word(1)})
            }
            ompt_event_thread_end => json!({"event": "thread_end", "thread_data": word(1)}),
            ompt_event_control => json!({
                "event": "control_tool", "command": self.words[0], "modifier": self.words[1], "arg": "0x0", "text": null,
                "codeptr_ra": "0x0",
            }),
            ompt_event_idle_begin | ompt_event_idle_end => {
                json!({"event": "idle", "endpoint": endpoint})
            }
            ompt_event_implicit_task_begin | ompt_event_implicit_task_end => task(word(0), 1, "0x2"),
            ompt_event_initial_task_begin | ompt_event_initial_task_end => task(Value::Null, 0, "0x1"),
            ompt_event_loop_begin | ompt_event_loop_end => work("loop"),
            ompt_event_sections_begin | ompt_event_sections_end => work("sections"),
            ompt_event_single_in_block_begin | ompt_event_single_in_block_end => work("single_executor"),
            ompt_event_single_others_begin | ompt_event_single_others_end => work("single_other"),
            ompt_event_workshare_begin | ompt_event_workshare_end => work("workshare"),
            ompt_event_master_begin | ompt_event_master_end => inside("masked"),
            _ if name.starts_with("wait_") && self.words.len() == 2 => {
                sync("sync_region_wait", name.split('_').nth(1).unwrap_or_default())
            }
            _ if self.words.len() == 2 && event < ompt_event_release_nest_lock_prev => {
                sync("sync_region", name.split('_').next().unwrap_or_default())
            }
            ompt_event_release_nest_lock_prev | ompt_event_acquired_nest_lock_next => {
                let endpoint = if event == ompt_event_release_nest_lock_prev { "end" } else { "begin" };
                json!({"event": "nest_lock", "endpoint": endpoint, "wait_id": word(0), "codeptr_ra": "0x0"})
            }
            ompt_event_release_nest_lock_last => mutex("mutex_released", "nest_lock"),
            ompt_event_acquired_nest_lock_first => mutex("mutex_acquired", "nest_lock"),
            ompt_event_wait_nest_lock => mutex("mutex_acquire", "nest_lock"),
            ompt_event_init_nest_lock => mutex("lock_init", "nest_lock"),
            ompt_event_destroy_nest_lock => mutex("lock_destroy", "nest_lock"),
            _ if name.starts_with("release_") => mutex("mutex_released", kind),
            _ if name.starts_with("wait_") => mutex("mutex_acquire", kind),
            _ if name.starts_with("acquired_") => mutex("mutex_acquired", kind),
            ompt_event_init_lock => mutex("lock_init", "lock"),
            ompt_event_destroy_lock => mutex("lock_destroy", "lock"),
            ompt_event_flush => {
                json!({"event": "flush", "thread_data": word(0), "codeptr_ra": "0x0"})
            }
            ompt_event_task_dependence_pair => {
                json!({"event": "task_dependence", "src_task_data": word(0), "sink_task_data": word(1)})
            }
            ompt_event_task_dependences => {
                json!({"event": "dependences", "task_data": word(0), "deps": [], "ndeps": self.words[2]})
            }
            _ => return None,
        };
        match line {
            Value::Object(line) => Some(line),
            _ => unreachable!("each is an object"),
        }
    }
}

unsafe extern "C" fn lookup(name: *const c_char) -> Option<ompt_interface_fn_t> {
    // SAFETY: the report demands a C string.
    let name = unsafe { CStr::from_ptr(name) };
    let has_data = at_rest().has_data;
    let function = match name.to_str().ok()? {
        "ompt_get_parallel_id" if has_data => return None,
        "ompt_get_parallel_data" if has_data => get_parallel_id as *const c_void,
        "ompt_set_callback" => set_callback as *const c_void,
        "ompt_enumerate_state" => enumerate_state as *const c_void,
        "ompt_get_state" => get_state as *const c_void,
        "ompt_get_parallel_id" => get_parallel_id as *const c_void,
        "ompt_get_parallel_team_size" => get_parallel_team_size as *const c_void,
        _ => return None,
    };
    // SAFETY: the tool casts it back to the type that belongs to the name.
    Some(unsafe { std::mem::transmute::<*const c_void, ompt_interface_fn_t>(function) })
}

unsafe extern "C" fn set_callback(event: ompt_event_t, callback: Option<ompt_callback_t>) -> c_int {
    const OPENUH: c_int = 1;

    let mut runtime = at_rest();
    if runtime.is_openuh {
        return OPENUH;
    }
    let granted = match event.name() {
        Some(name) if runtime.may_register => runtime.grants.get(name).copied().unwrap_or(ALWAYS),
        _ => NOT_SUPPORTED,
    };
    if granted >= SOMETIMES {
        match callback {
            Some(callback) => runtime.callbacks.insert(event.0, callback as usize),
            None => runtime.callbacks.remove(&event.0),
        };
    }
    granted as c_int
}

unsafe extern "C" fn enumerate_state(
    current: c_int,
    next: *mut c_int,
    next_name: *mut *const c_char,
) -> c_int {
    const STATES: [(c_int, &CStr); 4] = [
        (ompt_state_first, c""),
        (ompt_state_work_serial.0 as c_int, c"ompt_state_work_serial"),
        (ompt_state_work_parallel.0 as c_int, c"ompt_state_work_parallel"),
        (ompt_state_wait_critical.0 as c_int, c"ompt_state_wait_critical"),
    ];
    let behind = STATES.iter().position(|(state, _)| *state == current);
    let Some((state, name)) = behind.and_then(|index| STATES.get(index + 1)) else {
        return 0;
    };
    // SAFETY: the report demands places that can be written.
    unsafe {
        next.write(*state);
        next_name.write(name.as_ptr());
    }
    1
}

unsafe extern "C" fn get_state(wait_id: *mut u64) -> c_int {
    let (state, waits_for) = STATE.get();
    if !wait_id.is_null() {
        // SAFETY: NULL, or a place that can be written.
        unsafe { wait_id.write(waits_for) };
    }
    state as c_int
}

unsafe extern "C" fn get_parallel_id(ancestor_level: c_int) -> u64 {
    if ancestor_level == 0 { REGION.get() } else { 0 }
}

unsafe extern "C" fn get_parallel_team_size(ancestor_level: c_int) -> c_int {
    if ancestor_level == 0 { TEAM_SIZE } else { -1 }
}
