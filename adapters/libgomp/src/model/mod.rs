//! Threads, teams and tasks as OMPT sees them (OpenMP 5.2, 19.3 and 19.4.4).

pub(crate) mod argument_copies;
mod created_tasks;
pub(crate) mod sync_region;
pub(crate) mod task_block;
pub(crate) mod taskloop_tasks;
pub(crate) mod thread;
pub(crate) mod thread_pool;
pub(crate) mod thread_words;

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use ompt_sys::*;

use crate::model::argument_copies::Copies;
use crate::model::thread_pool::{Batch, Pooled};
use crate::which_libgomp::functions::{Libgomp, Outlined};

/// A worksharing region.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) kind: ompt_work_t,
    /// Number of iterations or sections.
    pub(crate) count: u64,
    /// Value of the loop variable in the first iteration.
    pub(crate) first: i64,
    /// Difference of the loop variable between consecutive iterations; never 0.
    pub(crate) step: i64,
}

/// The flags for [`Task::set_enter_frame`]: the runtime's frame, given by its canonical frame address.
const ENTER_FLAGS: c_int = (ompt_frame_runtime.0 | ompt_frame_cfa.0) as c_int;
/// The flags for [`Task::set_exit_frame`]: the runtime's frame, given by an address within it.
const EXIT_FLAGS: c_int = (ompt_frame_runtime.0 | ompt_frame_stackaddress.0) as c_int;

/// A team of threads, or a league of teams.
///
/// Only its primary thread writes to it, before libgomp wakes the others.
#[repr(C)]
pub(crate) struct Team {
    /// The first word, because `GOMP_parallel_reductions` reads it as the first word of the region's data.
    pub(crate) reductions: Cell<*mut c_void>,
    pub(crate) function: Cell<Option<Outlined>>,
    pub(crate) argument: Cell<*mut c_void>,
    pub(crate) gomp: Cell<Option<&'static Libgomp>>,
    data: UnsafeCell<ompt_data_t>,
    pub(crate) parent: Cell<Option<&'static Team>>,
    pub(crate) encountering: Cell<Option<&'static Task>>,
    pub(crate) code: Cell<*const c_void>,
    pub(crate) requested: Cell<c_uint>,
    /// The number of threads, which is known only within the region. Every member stores the same number.
    pub(crate) size: AtomicI32,
    /// The worksharing construct that the region consists of.
    pub(crate) work: Cell<Option<Work>>,
    /// The primary thread calls the region's function itself, as code of GCC before 4.9 does.
    pub(crate) leader_calls: Cell<bool>,
    /// The tasks that a cancellation may discard.
    pub(crate) created: Created,
    /// The team belongs to a parallel region: it is neither the initial team nor a league.
    pub(crate) is_region: Cell<bool>,
    /// The number of teams of a league that have begun.
    pub(crate) begun: Cell<c_uint>,
    pub(crate) copies: Copies,
    next: Cell<Option<&'static Team>>,
}

// SAFETY: see the type: fields that are not atomic are written before other threads know the team.
unsafe impl Sync for Team {}

static FREE_TEAMS: Mutex<Vec<Batch<Team>>> = Mutex::new(Vec::new());

impl Pooled for Team {
    fn new() -> Team {
        Team {
            reductions: Cell::new(ptr::null_mut()),
            function: Cell::new(None),
            argument: Cell::new(ptr::null_mut()),
            gomp: Cell::new(None),
            data: UnsafeCell::new(ompt_data_none),
            parent: Cell::new(None),
            encountering: Cell::new(None),
            code: Cell::new(ptr::null()),
            requested: Cell::new(0),
            size: AtomicI32::new(1),
            work: Cell::new(None),
            leader_calls: Cell::new(false),
            is_region: Cell::new(false),
            created: Created::new(),
            begun: Cell::new(0),
            copies: Copies::new(),
            next: Cell::new(None),
        }
    }

    fn reset(&self) {
        self.reductions.set(ptr::null_mut());
        // SAFETY: nothing else uses an object from the pool.
        unsafe { *self.data.get() = ompt_data_none };
        self.parent.set(None);
        self.size.store(1, Ordering::Relaxed);
        self.work.set(None);
        self.leader_calls.set(false);
        self.is_region.set(false);
        self.created.reset();
        self.begun.set(0);
        self.copies.reset();
        self.next.set(None);
    }

    fn next(&self) -> &Cell<Option<&'static Team>> {
        &self.next
    }

    fn left() -> &'static Mutex<Vec<Batch<Team>>> {
        &FREE_TEAMS
    }
}

impl Team {
    /// The data word that the tool associates with the region.
    pub(crate) fn data(&self) -> *mut ompt_data_t {
        self.data.get()
    }

    /// The state of the team's threads when they do not wait. A region with one thread counts as parallel, a league
    /// does not.
    pub(crate) fn working(&self) -> ompt_state_t {
        if self.is_region.get() { ompt_state_work_parallel } else { ompt_state_work_serial }
    }
}

/// Number of tasks in a list above which the tasks that have run are removed.
const MIN_TASKS: usize = 1024;

/// The tasks of a team that were created and that a cancellation may discard: a list linked by [`Task::sibling`]. Any
/// thread may add tasks; a thread that removes the list owns it exclusively.
#[derive(Debug)]
pub(crate) struct Created {
    list: AtomicPtr<Task>,
    /// Approximate number of tasks in the list.
    count: AtomicUsize,
    /// Number of tasks at which those that have run are removed.
    limit: AtomicUsize,
}

impl Created {
    pub(crate) const fn new() -> Created {
        Created {
            list: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            limit: AtomicUsize::new(MIN_TASKS),
        }
    }

    /// Resets a list that nothing else uses.
    pub(crate) fn reset(&self) {
        self.list.store(ptr::null_mut(), Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.limit.store(MIN_TASKS, Ordering::Relaxed);
    }
}

/// The kind of an open construct with task reductions, which ends with `GOMP_workshare_task_reduction_unregister`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithReductions {
    Worksharing = 1,
    Scope = 2,
}

/// The event of a detachable task (OpenMP 5.2, 12.5.1).
pub(crate) mod event {
    /// The task has no event.
    pub(crate) const NONE: u8 = 0;
    /// The event is not fulfilled, and the task's body has not completed.
    pub(crate) const OPEN: u8 = 1;
    /// The event was fulfilled before the body completed.
    pub(crate) const FULFILLED: u8 = 2;
    /// The body completed before the event was fulfilled.
    pub(crate) const DETACHED: u8 = 3;
}

/// A task.
///
/// It is written by the thread that creates it and then by the thread that runs it. Other threads read only fields that
/// do not change meanwhile.
pub(crate) struct Task {
    data: UnsafeCell<ompt_data_t>,
    frame: UnsafeCell<ompt_frame_t>,
    pub(crate) team: Cell<Option<&'static Team>>,
    /// The task that created this one or encountered its region.
    pub(crate) parent: Cell<Option<&'static Task>>,
    flags: Cell<ompt_task_flag_t>,
    pub(crate) thread_num: Cell<c_int>,
    /// The number of references to an explicit task.
    references: AtomicU32,
    /// A value of [`event`].
    pub(crate) event: AtomicU8,
    /// The innermost open worksharing region. `work_code` is its code address.
    pub(crate) work: Cell<Option<Work>>,
    pub(crate) work_code: Cell<*const c_void>,
    /// Code address of a `single` that the task executes. libgomp is not called at its end.
    pub(crate) single: Cell<Option<*const c_void>>,
    /// The last construct was a `single`, so a barrier that follows belongs to it.
    pub(crate) after_single: Cell<bool>,
    /// The number of `single` regions with `copyprivate` that the task has reached (see [`Copies`]).
    pub(crate) copies: Cell<u32>,
    /// A stack of [`WithReductions`], two bits each.
    with_reductions: Cell<u64>,
    /// A thread has begun to run the task. Relaxed: the flag guards no data.
    pub(crate) ran: AtomicBool,
    /// The next task in the list of [`Created`] tasks.
    pub(crate) sibling: Cell<*mut Task>,
    /// The parent to which the task [holds](Task::hold_parent) a reference.
    pub(crate) held_parent: Cell<Option<&'static Task>>,
    next: Cell<Option<&'static Task>>,
}

// SAFETY: see the type.
unsafe impl Sync for Task {}

static FREE_TASKS: Mutex<Vec<Batch<Task>>> = Mutex::new(Vec::new());

const NO_FRAME: ompt_frame_t = ompt_frame_t {
    exit_frame: ompt_data_none,
    enter_frame: ompt_data_none,
    exit_frame_flags: EXIT_FLAGS,
    enter_frame_flags: ENTER_FLAGS,
};

impl Pooled for Task {
    fn new() -> Task {
        Task {
            data: UnsafeCell::new(ompt_data_none),
            frame: UnsafeCell::new(NO_FRAME),
            team: Cell::new(None),
            parent: Cell::new(None),
            flags: Cell::new(ompt_task_flag_t(0)),
            thread_num: Cell::new(0),
            references: AtomicU32::new(1),
            event: AtomicU8::new(event::NONE),
            work: Cell::new(None),
            work_code: Cell::new(ptr::null()),
            single: Cell::new(None),
            after_single: Cell::new(false),
            copies: Cell::new(0),
            with_reductions: Cell::new(0),
            ran: AtomicBool::new(false),
            sibling: Cell::new(ptr::null_mut()),
            held_parent: Cell::new(None),
            next: Cell::new(None),
        }
    }

    #[inline(always)]
    fn reset(&self) {
        // SAFETY: nothing else uses an object from the pool.
        unsafe {
            *self.data.get() = ompt_data_none;
            *self.frame.get() = NO_FRAME;
        }
        self.references.store(1, Ordering::Relaxed);
        self.event.store(event::NONE, Ordering::Relaxed);
        self.work.set(None);
        self.single.set(None);
        self.after_single.set(false);
        self.copies.set(0);
        self.with_reductions.set(0);
        self.ran.store(false, Ordering::Relaxed);
        self.held_parent.set(None);
        self.next.set(None);
    }

    fn next(&self) -> &Cell<Option<&'static Task>> {
        &self.next
    }

    fn left() -> &'static Mutex<Vec<Batch<Task>>> {
        &FREE_TASKS
    }
}

impl Task {
    /// Initializes a new object as a task.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        team: &'static Team,
        parent: Option<&'static Task>,
        flags: ompt_task_flag_t,
        thread_num: c_int,
    ) {
        self.team.set(Some(team));
        self.parent.set(parent);
        self.flags.set(flags);
        self.thread_num.set(thread_num);
    }

    /// The data word that the tool associates with the task.
    pub(crate) fn data(&self) -> *mut ompt_data_t {
        self.data.get()
    }

    pub(crate) fn frame(&self) -> *mut ompt_frame_t {
        self.frame.get()
    }

    pub(crate) fn flags(&self) -> ompt_task_flag_t {
        self.flags.get()
    }

    pub(crate) fn is_explicit(&self) -> bool {
        self.flags.get().contains(ompt_task_explicit)
    }

    pub(crate) fn is_initial(&self) -> bool {
        self.flags.get().contains(ompt_task_initial)
    }

    /// The data of the task's region; NULL if the end of the task is reported late.
    pub(crate) fn parallel_data(&self) -> *mut ompt_data_t {
        self.team.get().map_or(ptr::null_mut(), Team::data)
    }

    /// The program entered the runtime from this frame; NULL: the program has returned from the runtime.
    #[inline(always)]
    pub(crate) fn set_enter_frame(&self, frame: *mut c_void) {
        // SAFETY: only the thread that runs the task writes its frame; the tool only reads it.
        unsafe { (*self.frame.get()).enter_frame.ptr = frame };
    }

    /// The runtime called the task's code from this frame; NULL: the task's code has returned.
    #[inline(always)]
    pub(crate) fn set_exit_frame(&self, frame: *mut c_void) {
        // SAFETY: as in `set_enter_frame`.
        unsafe { (*self.frame.get()).exit_frame.ptr = frame };
    }

    /// The frame from which the program entered the runtime.
    pub(crate) fn enter_frame(&self) -> *mut c_void {
        // SAFETY: as in `set_enter_frame`; a frame's address is always read as a pointer.
        unsafe { (*self.frame.get()).enter_frame.ptr }
    }

    /// Adds a reference to an explicit task.
    #[inline(always)]
    pub(crate) fn hold(&self) {
        if self.is_explicit() {
            // Relaxed: the caller already has a reference.
            self.references.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a reference to the parent until this object is freed, if the parent is an explicit task.
    ///
    /// An implicit task's object may be reused for another task by then, which must not be released.
    #[inline(always)]
    pub(crate) fn hold_parent(&self, parent: &'static Task) {
        parent.hold();
        self.held_parent.set(parent.is_explicit().then_some(parent));
    }

    /// Drops a reference to an explicit task; true if it was the last one.
    #[inline(always)]
    pub(crate) fn release(&self) -> bool {
        // Release, and acquire for the last reference: all uses of the task precede its reuse.
        self.references.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn open_with_reductions(&self, construct: WithReductions) {
        self.with_reductions.set(self.with_reductions.get() << 2 | construct as u64);
    }

    /// Removes the innermost construct with task reductions, which ends, and returns its kind.
    pub(crate) fn close_with_reductions(&self) -> Option<WithReductions> {
        let all = self.with_reductions.get();
        self.with_reductions.set(all >> 2);
        match all & 3 {
            1 => Some(WithReductions::Worksharing),
            2 => Some(WithReductions::Scope),
            _ => None,
        }
    }
}
