//! `libomptconformance.so`: an OMPT tool that checks what an OpenMP runtime reports against the specification (OpenMP
//! 5.2, chapter 19): nesting, ids of tasks and regions, frames, code addresses, and that each end is reported once.
//!
//! Any runtime can load it: `OMP_TOOL_LIBRARIES=libomptconformance.so ./program`. At the end of the program, it writes
//! a report to stderr, or to the file named by `OMPT_CONFORMANCE_OUTPUT`. The report contains the number of events and,
//! for each violated rule of [`rule`], the number of violations with the first example.

#![allow(non_upper_case_globals, reason = "the numbers are those of OMPT's header")]

mod rule;

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;
use std::cell::Cell;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ompt_sys::*;
use rule::{Rule, check};

/// The functions that the runtime's lookup found.
struct EntryPoints {
    task_info: ompt_get_task_info_t,
    parallel_info: ompt_get_parallel_info_t,
    thread_data: ompt_get_thread_data_t,
}

static ENTRY_POINTS: OnceLock<EntryPoints> = OnceLock::new();
/// Address of the module that contains the runtime.
static RUNTIME: OnceLock<usize> = OnceLock::new();
static EVENTS: AtomicU64 = AtomicU64::new(0);
static CREATED: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// A region, task or mutex that a thread has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Parallel,
    ImplicitTask,
    Task,
    SyncRegion(u32),
    Wait(u32),
    Work(u32),
    Masked,
    /// A mutex, by its kind and wait id.
    Mutex(u32, u64),
}

/// Maximum nesting depth per thread for which constructs are checked.
const MAX_DEPTH: usize = 256;

/// What a thread has begun and not ended, each with its task. The stack has no destructor, which would run before the
/// last events of its thread.
struct Stack {
    depth: Cell<usize>,
    open: [Cell<(Open, usize)>; MAX_DEPTH],
}

impl Stack {
    fn push(&self, open: Open, task: usize) {
        let depth = self.depth.get();
        if let Some(place) = self.open.get(depth) {
            place.set((open, task));
        }
        self.depth.set(depth + 1);
    }

    /// Removes the innermost one. Beyond [`MAX_DEPTH`] it is unknown, and `or` is returned.
    fn pop(&self, or: (Open, usize)) -> Option<(Open, usize)> {
        let depth = self.depth.get().checked_sub(1)?;
        self.depth.set(depth);
        Some(self.open.get(depth).map_or(or, Cell::get))
    }

    /// The innermost one.
    fn last(&self) -> Option<(Open, usize)> {
        let depth = self.depth.get().checked_sub(1)?;
        self.open.get(depth).map(Cell::get)
    }
}

thread_local! {
    static HAS_BEGUN: Cell<bool> = const { Cell::new(false) };
    static STACK: Stack = const {
        Stack { depth: Cell::new(0), open: [const { Cell::new((Open::Parallel, 0)) }; MAX_DEPTH] }
    };
}

/// A unique number for a task, region or thread.
fn mark() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Counts an event of the calling thread.
fn event(name: &str) {
    EVENTS.fetch_add(1, Ordering::Relaxed);
    check(Rule::ThreadHasBegun, HAS_BEGUN.get(), || name.to_owned());
}

/// The value of a data word; 0 for NULL.
fn value(data: *const ompt_data_t) -> u64 {
    if data.is_null() {
        return 0;
    }
    // SAFETY: the runtime passes NULL or a valid data word.
    unsafe { (*data).value }
}

/// Writes a data word, unless it is NULL.
fn set(data: *mut ompt_data_t, value: u64) {
    if !data.is_null() {
        // SAFETY: as in `value`; the word is the tool's.
        unsafe { (*data).value = value };
    }
}

fn begin(open: Open, task: *const ompt_data_t) {
    STACK.with(|stack| stack.push(open, task as usize));
}

fn end(name: &str, open: Open, task: *const ompt_data_t) {
    let expected = (open, task as usize);
    let last = STACK.with(|stack| stack.pop(expected));
    check(Rule::Nesting, last == Some(expected), || {
        format!("{name}: {expected:x?} ends, but {last:x?} began later and is still open")
    });
}

/// Checks that an event's task and region are the current ones. `parallel` may be NULL.
fn check_current(name: &str, parallel: *const ompt_data_t, task: *const ompt_data_t) {
    event(name);
    let Some(entry_points) = ENTRY_POINTS.get() else {
        return;
    };
    if task.is_null() {
        return;
    }
    check(Rule::TaskBegins, value(task) != 0, || format!("{name}: the task is unknown"));
    let (mut current, mut region) = (ptr::null_mut(), ptr::null_mut());
    let (mut number, mut size, mut same_region) = (-1, -1, ptr::null_mut());
    // SAFETY: valid pointers for the requested values, NULL for the others.
    let (has_task, has_region) = unsafe {
        (
            (entry_points.task_info)(
                0,
                ptr::null_mut(),
                &raw mut current,
                ptr::null_mut(),
                &raw mut region,
                &raw mut number,
            ),
            (entry_points.parallel_info)(0, &raw mut same_region, &raw mut size),
        )
    };
    check(Rule::CurrentTask, has_task == 2 && ptr::eq(current, task), || {
        format!(
            "{name}: the event has task {task:p}, but ompt_get_task_info returned {has_task} with task {current:p}"
        )
    });
    let is_region = |known: *const ompt_data_t| parallel.is_null() || ptr::eq(known, parallel);
    check(Rule::CurrentRegion, is_region(region) && has_region == 2 && ptr::eq(region, same_region), || {
        format!(
            "{name}: the event has region {parallel:p}, but ompt_get_task_info returned region {region:p}, and ompt_get_parallel_info returned region {same_region:p}"
        )
    });
    check(Rule::ThreadNumber, number < size.max(1), || {
        format!("{name}: thread number {number} in a team of {size} threads")
    });
}

fn check_code(name: &str, code: *const c_void) {
    check(Rule::CodeAddress, !code.is_null(), || name.to_owned());
    if code.is_null() {
        return;
    }
    let module = module_of(code);
    check(Rule::CodeOfProgram, RUNTIME.get() != Some(&module), || format!("{name}: {code:p}"));
}

/// The load address of the module that contains `address`; 0 if there is none.
fn module_of(address: *const c_void) -> usize {
    // SAFETY: all zeros is a value of this structure, and any address may be asked about.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        match libc::dladdr(address, &raw mut info) {
            0 => 0,
            _ => info.dli_fbase as usize,
        }
    }
}

unsafe extern "C" fn thread_begin(_: ompt_thread_t, data: *mut ompt_data_t) {
    EVENTS.fetch_add(1, Ordering::Relaxed);
    check(Rule::ThreadBeginsOnce, !HAS_BEGUN.replace(true), String::new);
    set(data, mark());
    if let Some(entry_points) = ENTRY_POINTS.get() {
        // SAFETY: no arguments.
        let own = unsafe { (entry_points.thread_data)() };
        check(Rule::ThreadData, ptr::eq(own, data), || {
            format!("ompt_get_thread_data returned {own:p} instead of {data:p}")
        });
    }
}

unsafe extern "C" fn thread_end(_: *mut ompt_data_t) {
    event("thread_end");
    HAS_BEGUN.set(false);
    let (open, last) = STACK.with(|stack| (stack.depth.get(), stack.last()));
    check(Rule::ThreadEndsLast, open == 0, || {
        format!("{open} regions and tasks are still open; {last:x?} began last")
    });
    STACK.with(|stack| stack.depth.set(0));
}

unsafe extern "C" fn parallel_begin(
    task: *mut ompt_data_t,
    frame: *const ompt_frame_t,
    parallel: *mut ompt_data_t,
    _: c_uint,
    _: c_int,
    code: *const c_void,
) {
    check_current("parallel_begin", ptr::null(), task);
    check_enter_frame("parallel_begin", frame);
    check_code("parallel_begin", code);
    set(parallel, mark());
    begin(Open::Parallel, task);
}

fn check_enter_frame(name: &str, frame: *const ompt_frame_t) {
    // SAFETY: the runtime passes NULL or the frame of the encountering task.
    let has_frame = !frame.is_null() && unsafe { !(*frame).enter_frame.ptr.is_null() };
    check(Rule::EnterFrame, has_frame, || name.to_owned());
}

unsafe extern "C" fn parallel_end(
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    _: c_int,
    code: *const c_void,
) {
    check_current("parallel_end", ptr::null(), task);
    check_code("parallel_end", code);
    check(Rule::ParallelBegins, value(parallel) != 0, || {
        "parallel_end of a region that has not begun".to_owned()
    });
    set(parallel, 0);
    end("parallel_end", Open::Parallel, task);
}

unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    _: c_uint,
    _: c_uint,
    _: c_int,
) {
    if endpoint == ompt_scope_begin {
        check(Rule::ImplicitTaskHasRegion, !parallel.is_null(), String::new);
        set(task, mark());
        check_current("implicit_task", parallel, task);
        begin(Open::ImplicitTask, task);
    } else {
        event("implicit_task");
        check(Rule::TaskBegins, value(task) != 0, || {
            "the end of an implicit task that has not begun".to_owned()
        });
        end("implicit_task", Open::ImplicitTask, task);
        set(task, 0);
    }
}

unsafe extern "C" fn task_create(
    task: *mut ompt_data_t,
    frame: *const ompt_frame_t,
    new: *mut ompt_data_t,
    flags: c_int,
    _: c_int,
    code: *const c_void,
) {
    if flags as u32 & ompt_task_initial.0 != 0 {
        // Runtimes of OpenMP 5.0 report the initial task like this.
        event("task_create");
        set(new, mark());
        return;
    }
    check_current("task_create", ptr::null(), task);
    if flags as u32 & ompt_task_taskwait.0 == 0 {
        check_enter_frame("task_create", frame);
        set(new, mark());
    }
    check_code("task_create", code);
    CREATED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn task_schedule(
    prior: *mut ompt_data_t,
    status: ompt_task_status_t,
    next: *mut ompt_data_t,
) {
    event("task_schedule");
    match status {
        ompt_task_early_fulfill | ompt_task_late_fulfill => return,
        ompt_taskwait_complete => {
            ENDED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        _ => {}
    }
    if let Some(entry_points) = ENTRY_POINTS.get() {
        let mut current = ptr::null_mut();
        // SAFETY: a valid pointer for the task's data, NULL for the other values.
        unsafe {
            (entry_points.task_info)(
                0,
                ptr::null_mut(),
                &raw mut current,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        check(Rule::PriorTask, ptr::eq(current, prior), || {
            format!("the prior task is {prior:p}, but the current task is {current:p}")
        });
    }
    check(Rule::TaskBegins, value(prior) != 0, || "the prior task is unknown".to_owned());
    check(Rule::TaskBegins, next.is_null() || value(next) != 0, || "the next task is unknown".to_owned());
    match status {
        ompt_task_complete | ompt_task_cancel | ompt_task_detach => {
            ENDED.fetch_add(1, Ordering::Relaxed);
            end("task_schedule", Open::Task, prior);
            if status != ompt_task_detach {
                set(prior, 0);
            }
        }
        // An untied task may continue on another thread, where its constructs are then open.
        ompt_task_yield | ompt_task_switch => begin(Open::Task, next),
        _ => {}
    }
}

unsafe extern "C" fn sync_region(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    code: *const c_void,
) {
    if endpoint == ompt_scope_begin {
        check_current("sync_region", parallel, task);
        if kind != ompt_sync_region_barrier_implicit_parallel {
            check_code("sync_region", code);
        }
        begin(Open::SyncRegion(kind.0), task);
    } else {
        event("sync_region");
        end("sync_region", Open::SyncRegion(kind.0), task);
    }
}

unsafe extern "C" fn sync_region_wait(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    _: *const c_void,
) {
    if endpoint == ompt_scope_begin {
        check_current("sync_region_wait", parallel, task);
        begin(Open::Wait(kind.0), task);
    } else {
        event("sync_region_wait");
        end("sync_region_wait", Open::Wait(kind.0), task);
    }
}

unsafe extern "C" fn work(
    kind: ompt_work_t,
    endpoint: ompt_scope_endpoint_t,
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    _: u64,
    code: *const c_void,
) {
    check_current("work", parallel, task);
    check_code("work", code);
    match endpoint {
        ompt_scope_begin => begin(Open::Work(kind.0), task),
        ompt_scope_end => end("work", Open::Work(kind.0), task),
        _ => {}
    }
}

unsafe extern "C" fn masked(
    endpoint: ompt_scope_endpoint_t,
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    code: *const c_void,
) {
    check_current("masked", parallel, task);
    check_code("masked", code);
    match endpoint {
        ompt_scope_begin => begin(Open::Masked, task),
        ompt_scope_end => end("masked", Open::Masked, task),
        _ => {}
    }
}

/// Whether a thread that requests a mutex of this kind continues without it if another thread holds it.
fn is_test(kind: ompt_mutex_t) -> bool {
    matches!(kind, ompt_mutex_test_lock | ompt_mutex_test_nest_lock)
}

unsafe extern "C" fn mutex_acquire(
    kind: ompt_mutex_t,
    _: c_uint,
    _: c_uint,
    wait_id: ompt_wait_id_t,
    code: *const c_void,
) {
    event("mutex_acquire");
    check_code("mutex_acquire", code);
    if !is_test(kind) {
        begin(Open::Mutex(kind.0, wait_id), ptr::null());
    }
}

unsafe extern "C" fn mutex_acquired(kind: ompt_mutex_t, wait_id: ompt_wait_id_t, _: *const c_void) {
    event("mutex_acquired");
    if !is_test(kind) {
        end("mutex_acquired", Open::Mutex(kind.0, wait_id), ptr::null());
    }
}

unsafe extern "C" fn nest_lock(endpoint: ompt_scope_endpoint_t, wait_id: ompt_wait_id_t, _: *const c_void) {
    event("nest_lock");
    if endpoint == ompt_scope_begin {
        // Testing a lock does not begin a wait.
        STACK.with(|stack| {
            if matches!(stack.last(), Some((Open::Mutex(_, id), _)) if id == wait_id) {
                stack.depth.set(stack.depth.get() - 1);
            }
        });
    }
}

unsafe extern "C" fn dispatch(
    parallel: *mut ompt_data_t,
    task: *mut ompt_data_t,
    _: ompt_dispatch_t,
    _: ompt_data_t,
) {
    check_current("dispatch", parallel, task);
}

unsafe extern "C" fn initialize(lookup: ompt_function_lookup_t, _: c_int, _: *mut ompt_data_t) -> c_int {
    /// Looks up an entry point with its own type.
    macro_rules! entry_point {
        ($name:literal as $type:ty) => {
            // SAFETY: the runtime's own lookup.
            match unsafe { lookup($name.as_ptr()) } {
                // SAFETY: the specification defines this type for the name.
                Some(function) => unsafe { core::mem::transmute::<ompt_interface_fn_t, $type>(function) },
                None => return 0,
            }
        };
    }
    let set_callback = entry_point!(c"ompt_set_callback" as ompt_set_callback_t);
    let _ = RUNTIME.set(module_of(set_callback as *const c_void));
    let _ = ENTRY_POINTS.set(EntryPoints {
        task_info: entry_point!(c"ompt_get_task_info" as ompt_get_task_info_t),
        parallel_info: entry_point!(c"ompt_get_parallel_info" as ompt_get_parallel_info_t),
        thread_data: entry_point!(c"ompt_get_thread_data" as ompt_get_thread_data_t),
    });
    /// Registers callbacks: number, signature, function.
    macro_rules! register {
        ($($event:ident as $type:ident: $function:ident;)*) => {$(
            let function: $type = $function;
            // SAFETY: a function of the signature of its number.
            unsafe { set_callback($event, Some(core::mem::transmute::<$type, ompt_callback_t>(function))) };
        )*};
    }
    register! {
        ompt_callback_thread_begin as ompt_callback_thread_begin_t: thread_begin;
        ompt_callback_thread_end as ompt_callback_thread_end_t: thread_end;
        ompt_callback_parallel_begin as ompt_callback_parallel_begin_t: parallel_begin;
        ompt_callback_parallel_end as ompt_callback_parallel_end_t: parallel_end;
        ompt_callback_implicit_task as ompt_callback_implicit_task_t: implicit_task;
        ompt_callback_task_create as ompt_callback_task_create_t: task_create;
        ompt_callback_task_schedule as ompt_callback_task_schedule_t: task_schedule;
        ompt_callback_sync_region as ompt_callback_sync_region_t: sync_region;
        ompt_callback_sync_region_wait as ompt_callback_sync_region_t: sync_region_wait;
        ompt_callback_work as ompt_callback_work_t: work;
        ompt_callback_masked as ompt_callback_masked_t: masked;
        ompt_callback_mutex_acquire as ompt_callback_mutex_acquire_t: mutex_acquire;
        ompt_callback_mutex_acquired as ompt_callback_mutex_t: mutex_acquired;
        ompt_callback_nest_lock as ompt_callback_nest_lock_t: nest_lock;
        ompt_callback_dispatch as ompt_callback_dispatch_t: dispatch;
    }
    1
}

unsafe extern "C" fn finalize(_: *mut ompt_data_t) {
    let (broken, lines) = rule::report();
    let report = format!(
        "ompt-conformance: {} events, {} tasks created, {} tasks ended, {broken} faults\n{lines}",
        EVENTS.load(Ordering::Relaxed),
        CREATED.load(Ordering::Relaxed),
        ENDED.load(Ordering::Relaxed),
    );
    let written = match std::env::var_os("OMPT_CONFORMANCE_OUTPUT") {
        Some(path) => std::fs::write(path, report),
        None => std::io::stderr().write_all(report.as_bytes()),
    };
    if let Err(error) = written {
        // There is no other way to report this.
        let _ = writeln!(std::io::stderr(), "ompt-conformance: the report cannot be written: {error}");
    }
}

/// Called by the runtime (OpenMP 5.2, 19.3.1).
#[unsafe(no_mangle)]
extern "C" fn ompt_start_tool(_: c_uint, _: *const c_char) -> *mut ompt_start_tool_result_t {
    static mut RESULT: ompt_start_tool_result_t = ompt_start_tool_result_t {
        initialize: Some(initialize),
        finalize: Some(finalize),
        tool_data: ompt_data_none,
    };
    &raw mut RESULT
}
