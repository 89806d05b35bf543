//! The calling thread: its OMPT state, and the reports of its begin and end.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::OnceLock;

use ompt_sys::*;

use crate::model::thread_pool::{Pool, Pooled};
use crate::model::{Task, Team, sync_region, thread_words};
use crate::sanitizer;
use crate::which_libgomp::functions::Libgomp;

/// A registered thread: one whose begin was reported and whose end was not. Only the thread itself uses it.
pub(crate) struct Thread {
    data: UnsafeCell<ompt_data_t>,
    /// The task that the thread runs; `None` for a worker between regions.
    current: Cell<Option<&'static Task>>,
    /// An implicit task whose end has not been reported: the thread waits in libgomp until its next region.
    pub(crate) pending: Cell<Option<&'static Task>>,
    /// The region that the thread begins, until its own implicit task begins.
    pub(crate) starting: Cell<*const Team>,
    /// The libgomp that the thread last called or by which it was called.
    pub(crate) gomp: Cell<&'static Libgomp>,
    /// The outlined function that the thread runs, which is the code address for the function's tail calls.
    pub(crate) function: Cell<*const c_void>,
    pub(crate) state: Cell<ompt_state_t>,
    pub(crate) wait_id: Cell<ompt_wait_id_t>,
    pub(crate) tasks: Pool<Task>,
    pub(crate) teams: Pool<Team>,
    /// Size of the last team that the thread led outside of other regions: its thread pool has at most this many
    /// threads.
    pub(crate) led: Cell<c_uint>,
    /// The libgomp of that team.
    pub(crate) led_of: Cell<&'static Libgomp>,
    /// libgomp may have created a team of one thread for a construct outside of all regions. The next region then hangs
    /// at times.
    pub(crate) has_artificial_team: Cell<bool>,
    /// The initial task of a thread that is not a worker.
    initial: Option<&'static Task>,
}

/// The calling thread, if it is registered.
#[inline(always)]
pub(crate) fn existing() -> Option<&'static Thread> {
    // SAFETY: NULL, or a `Thread` that only this thread frees, in `end`, and does not use afterwards.
    unsafe { thread_words::get().cast::<Thread>().as_ref() }
}

/// The calling thread as a tool sees it: also while the thread is being registered.
pub(crate) fn of_tool() -> Option<&'static Thread> {
    // SAFETY: as above.
    existing().or_else(|| unsafe { (*thread_words::beginning()).cast::<Thread>().as_ref() })
}

/// The destructor of this key reports a thread's end.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Makes threads report their ends automatically; called before the first thread is registered.
pub(crate) fn prepare() {
    KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the function outlives all threads, because the library is never unloaded (`tool`).
        unsafe { libc::pthread_key_create(&raw mut key, Some(on_thread_exit)) };
        key
    });
}

unsafe extern "C" fn on_thread_exit(_: *mut c_void) {
    end();
}

/// Registers the calling thread (OpenMP 5.2, 19.5.2.1) and the initial task of a thread that is not a worker. `None` if
/// the thread is already being registered: the report to the tool, or a function that the program replaces, may use
/// OpenMP and would register the thread again.
#[cold]
#[inline(never)]
pub(crate) fn begin(kind: ompt_thread_t, gomp: &'static Libgomp) -> Option<&'static Thread> {
    // SAFETY: the thread's own word.
    if !unsafe { *thread_words::beginning() }.is_null() {
        return None;
    }
    let initial = (kind == ompt_thread_initial).then(|| {
        let (team, task): (&Team, &Task) = (Team::leaked(), Task::leaked());
        team.gomp.set(Some(gomp));
        task.begin(team, None, ompt_task_initial, 0);
        task
    });
    let thread: &Thread = Box::leak(Box::new(Thread {
        data: UnsafeCell::new(ompt_data_none),
        current: Cell::new(initial),
        pending: Cell::new(None),
        starting: Cell::new(ptr::null()),
        gomp: Cell::new(gomp),
        function: Cell::new(ptr::null()),
        state: Cell::new(ompt_state_work_serial),
        wait_id: Cell::new(ompt_wait_id_none),
        tasks: Pool::new(),
        teams: Pool::new(),
        led: Cell::new(0),
        led_of: Cell::new(gomp),
        has_artificial_team: Cell::new(false),
        initial,
    }));
    // SAFETY: as above.
    unsafe { *thread_words::beginning() = ptr::from_ref(thread).cast() };
    if let Some(key) = KEY.get() {
        // SAFETY: the key exists; for any value other than NULL the destructor is called.
        unsafe { libc::pthread_setspecific(*key, ptr::from_ref(thread).cast()) };
    }
    report!(ompt_callback_thread_begin as ompt_callback_thread_begin_t, kind, thread.data());
    if let Some(task) = initial {
        report!(
            ompt_callback_implicit_task as ompt_callback_implicit_task_t,
            ompt_scope_begin,
            task.parallel_data(),
            task.data(),
            1,
            1,
            ompt_task_initial.0 as c_int,
        );
    }
    thread_words::set(ptr::from_ref(thread).cast());
    // SAFETY: as above.
    unsafe { *thread_words::beginning() = ptr::null() };
    Some(thread)
}

/// Lets the calling thread of a forked child be registered as the child's first thread when it next uses OpenMP. The
/// child has none of the threads that its parent's thread led. Within a region, the thread continues as the parent's
/// thread.
pub(crate) fn begin_again() {
    let Some(thread) = existing() else { return };
    thread.led.set(0);
    if thread.is_outside_regions() {
        // The parent's object stays: callers of this function may still use it.
        thread_words::set(ptr::null());
    }
}

/// Reports the end of the calling thread, if it is registered, and of its open tasks and waits.
pub(crate) fn end() {
    let Some(thread) = existing() else { return };
    thread.report_late_end();
    if let Some(task) = thread.initial
        && thread.current.get().is_some_and(|current| ptr::eq(current, task))
    {
        thread.report_implicit_task_end(task, 0, 1, ompt_task_initial);
    }
    report!(ompt_callback_thread_end as ompt_callback_thread_end_t, thread.data());
    thread_words::set(ptr::null());
    if let Some(task) = thread.initial {
        if let Some(team) = task.team.get() {
            thread.teams.give_back(team);
        }
        thread.tasks.give_back(task);
    }
    thread.tasks.leave_to_others();
    thread.teams.leave_to_others();
    // SAFETY: `begin` created it by `Box::leak`; no other thread refers to it, and this thread does not refer to it any
    // more.
    drop(unsafe { Box::from_raw(ptr::from_ref(thread).cast_mut()) });
}

impl Thread {
    /// The data word that the tool associates with the thread.
    pub(crate) fn data(&self) -> *mut ompt_data_t {
        self.data.get()
    }

    /// Notes that libgomp creates a team of one thread for the construct that begins, if the thread is outside of all
    /// regions.
    pub(crate) fn note_artificial_team(&self) {
        if self.is_outside_regions() {
            self.has_artificial_team.set(true);
        }
    }

    /// Whether the thread runs its initial task, outside of all regions.
    pub(crate) fn is_outside_regions(&self) -> bool {
        match (self.initial, self.current.get()) {
            (Some(initial), Some(current)) => ptr::eq(initial, current),
            _ => false,
        }
    }

    /// The task that the thread runs, if any.
    pub(crate) fn current(&self) -> Option<&'static Task> {
        self.current.get()
    }

    /// The task that the thread runs. A thread that calls libgomp's entry points always runs one.
    #[inline(always)]
    pub(crate) fn task(&self) -> &'static Task {
        match self.current.get() {
            Some(task) => task,
            None => self.adopt_initial_task(),
        }
    }

    /// Creates a task for a worker that calls libgomp outside of all regions, e.g. in the destructor of a thread-local
    /// variable. The task is not reported.
    #[cold]
    fn adopt_initial_task(&self) -> &'static Task {
        let (team, task): (&Team, &Task) = (self.teams.take(), self.tasks.take());
        team.gomp.set(Some(self.gomp.get()));
        task.begin(team, None, ompt_task_initial, 0);
        self.current.set(Some(task));
        task
    }

    /// The team of the task that the thread runs.
    #[inline(always)]
    pub(crate) fn team(&self) -> &'static Team {
        match self.task().team.get() {
            Some(team) => team,
            None => self.teams.take(),
        }
    }

    /// Sets the task that the thread runs.
    #[inline(always)]
    pub(crate) fn set_current(&self, task: Option<&'static Task>) {
        self.current.set(task);
    }

    /// Reports the end of an initial or implicit task.
    pub(crate) fn report_implicit_task_end(
        &self,
        task: &Task,
        size: c_uint,
        index: c_uint,
        flags: ompt_task_flag_t,
    ) {
        report!(
            ompt_callback_implicit_task as ompt_callback_implicit_task_t,
            ompt_scope_end,
            ptr::null_mut(),
            task.data(),
            size,
            index,
            flags.0 as c_int,
        );
    }

    /// Reports the end of the implicit task that is [`Thread::pending`]. Its team may not exist any more, so
    /// `parallel_data` is NULL, as the specification allows (OpenMP 5.2, 19.5.2.11 and 19.5.2.13).
    pub(crate) fn report_late_end(&self) {
        let Some(task) = self.pending.take() else {
            return;
        };
        if let Some(team) = task.team.take() {
            sanitizer::acquire(team);
        }
        sync_region::report_end(
            ompt_sync_region_barrier_implicit_parallel,
            ptr::null_mut(),
            task,
            ptr::null(),
        );
        self.report_implicit_task_end(task, 0, task.thread_num.get() as c_uint, ompt_task_implicit);
        self.set_current(None);
        self.tasks.give_back(task);
    }

    /// Drops a reference to an explicit task, and if it was the last one, the task's reference to its parent, and so
    /// on.
    pub(crate) fn release(&self, task: &'static Task) {
        let mut task = task;
        while task.is_explicit() && task.release() {
            let parent = task.held_parent.get();
            self.tasks.give_back(task);
            match parent {
                Some(parent) => task = parent,
                None => return,
            }
        }
    }
}
