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
    /// How many iterations or sections.
    pub(crate) count: u64,
    /// The first iteration's value of the loop variable.
    pub(crate) first: i64,
    /// From one iteration's value to the next's; never 0.
    pub(crate) step: i64,
}

/// The flags for [`Task::set_enter_frame`]: the runtime's frame, by its canonical address.
const ENTER_FLAGS: c_int = (ompt_frame_runtime.0 | ompt_frame_cfa.0) as c_int;
/// The flags for [`Task::set_exit_frame`]: the runtime's frame, by an address within it.
const EXIT_FLAGS: c_int = (ompt_frame_runtime.0 | ompt_frame_stackaddress.0) as c_int;

/// A team of threads, or a league of teams.
///
/// Only the thread that leads it writes it, before libgomp wakes others.
#[repr(C)]
pub(crate) struct Team {
    /// The first word, since `GOMP_parallel_reductions` reads it as that of the region's data.
    pub(crate) reductions: Cell<*mut c_void>,
    pub(crate) function: Cell<Option<Outlined>>,
    pub(crate) argument: Cell<*mut c_void>,
    pub(crate) gomp: Cell<Option<&'static Libgomp>>,
    data: UnsafeCell<ompt_data_t>,
    pub(crate) parent: Cell<Option<&'static Team>>,
    pub(crate) encountering: Cell<Option<&'static Task>>,
    pub(crate) code: Cell<*const c_void>,
    pub(crate) requested: Cell<c_uint>,
    /// How many threads there are, which is only known within the region. Every member stores the same number.
    pub(crate) size: AtomicI32,
    /// The worksharing construct that the region consists of.
    pub(crate) work: Cell<Option<Work>>,
    /// The leader calls the function itself, as code of GCC before 4.9 does.
    pub(crate) leader_calls: Cell<bool>,
    /// Where tasks may be discarded by cancellation.
    pub(crate) created: Created,
    /// It is that of a parallel region: not the one outside of all, nor a league.
    pub(crate) is_region: Cell<bool>,
    /// How many teams of a league have begun.
    pub(crate) begun: Cell<c_uint>,
    pub(crate) copies: Copies,
    next: Cell<Option<&'static Team>>,
}

// SAFETY: see the type: what is not atomic is written before other threads learn of the team.
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
        // SAFETY: nothing else uses an object of the pool.
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
    /// The word that the tool keeps with the region.
    pub(crate) fn data(&self) -> *mut ompt_data_t {
        self.data.get()
    }

    /// The state of the team's threads when they do not wait. A region of one thread is a region, too; a league is none.
    pub(crate) fn working(&self) -> ompt_state_t {
        if self.is_region.get() { ompt_state_work_parallel } else { ompt_state_work_serial }
    }
}

/// How many tasks are in a list before those are looked for that have run meanwhile.
const MIN_TASKS: usize = 1024;

/// The tasks of a team that were created and may be discarded by a cancellation: a list by [`Task::sibling`]. Threads add to it; whoever takes it out has it alone.
#[derive(Debug)]
pub(crate) struct Created {
    list: AtomicPtr<Task>,
    /// About how many are in the list.
    count: AtomicUsize,
    /// At how many those that have run are left out.
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

    /// Makes a list that nothing else uses as a new one.
    pub(crate) fn reset(&self) {
        self.list.store(ptr::null_mut(), Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.limit.store(MIN_TASKS, Ordering::Relaxed);
    }
}

/// A construct with task reductions that is open, and ends with `GOMP_workshare_task_reduction_unregister`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithReductions {
    Worksharing = 1,
    Scope = 2,
}

/// The event of a detachable task (OpenMP 5.2, 12.5.1).
pub(crate) mod event {
    /// The task has none.
    pub(crate) const NONE: u8 = 0;
    /// It is not fulfilled, and the task has not completed its body.
    pub(crate) const OPEN: u8 = 1;
    /// It was fulfilled before the body's end.
    pub(crate) const FULFILLED: u8 = 2;
    /// The body ended before.
    pub(crate) const DETACHED: u8 = 3;
}

/// A task.
///
/// The thread that runs it writes it; the thread that created it did before. Others read what does not change then.
pub(crate) struct Task {
    data: UnsafeCell<ompt_data_t>,
    frame: UnsafeCell<ompt_frame_t>,
    pub(crate) team: Cell<Option<&'static Team>>,
    /// The task that created it, or that encountered the region.
    pub(crate) parent: Cell<Option<&'static Task>>,
    flags: Cell<ompt_task_flag_t>,
    pub(crate) thread_num: Cell<c_int>,
    /// The number of holders of an explicit task.
    references: AtomicU32,
    /// One of [`event`].
    pub(crate) event: AtomicU8,
    /// The innermost worksharing region that is open, and its code.
    pub(crate) work: Cell<Option<Work>>,
    pub(crate) work_code: Cell<*const c_void>,
    /// The code of a `single` that the thread executes. libgomp is not called at its end.
    pub(crate) single: Cell<Option<*const c_void>>,
    /// A `single` was the last construct, so that a barrier that follows is its own.
    pub(crate) after_single: Cell<bool>,
    /// The [`Copies`] that it has come to.
    pub(crate) copies: Cell<u32>,
    /// A stack of [`WithReductions`], two bits each.
    with_reductions: Cell<u64>,
    /// A thread has begun to run it. Relaxed: what others read of a task, they get by other ways.
    pub(crate) ran: AtomicBool,
    /// The next of the list of [`Created`] tasks.
    pub(crate) sibling: Cell<*mut Task>,
    /// The parent that it [holds](Task::hold_parent).
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
        // SAFETY: nothing else uses an object of the pool.
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
    /// Makes a new object a task.
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

    /// The word that the tool keeps with the task.
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

    /// The region that it belongs to; NULL at its late end.
    pub(crate) fn parallel_data(&self) -> *mut ompt_data_t {
        self.team.get().map_or(ptr::null_mut(), Team::data)
    }

    /// The program entered the runtime from this frame; NULL: it has left it again.
    #[inline(always)]
    pub(crate) fn set_enter_frame(&self, frame: *mut c_void) {
        // SAFETY: only the thread that runs the task writes its frame; the tool only reads it.
        unsafe { (*self.frame.get()).enter_frame.ptr = frame };
    }

    /// The runtime called the task's code from this frame; NULL: it has returned.
    #[inline(always)]
    pub(crate) fn set_exit_frame(&self, frame: *mut c_void) {
        // SAFETY: as in `set_enter_frame`.
        unsafe { (*self.frame.get()).exit_frame.ptr = frame };
    }

    /// The frame that the program entered the runtime from.
    pub(crate) fn enter_frame(&self) -> *mut c_void {
        // SAFETY: as in `set_enter_frame`; a frame's address is always read as a pointer.
        unsafe { (*self.frame.get()).enter_frame.ptr }
    }

    /// One more knows an explicit task.
    #[inline(always)]
    pub(crate) fn hold(&self) {
        if self.is_explicit() {
            // Relaxed: whoever counts up knows it already.
            self.references.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Knows its parent until its own object is free, if that is an explicit task.
    ///
    /// The object of an implicit task may be another task by then, which must not be released.
    #[inline(always)]
    pub(crate) fn hold_parent(&self, parent: &'static Task) {
        parent.hold();
        self.held_parent.set(parent.is_explicit().then_some(parent));
    }

    /// One fewer knows an explicit task; true where it was the last.
    #[inline(always)]
    pub(crate) fn release(&self) -> bool {
        // Release, and acquire by the last: all uses of the task come before its next life.
        self.references.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn open_with_reductions(&self, construct: WithReductions) {
        self.with_reductions.set(self.with_reductions.get() << 2 | construct as u64);
    }

    /// The innermost construct with task reductions, which ends.
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
