//! Parallel regions and leagues of teams on the host (OpenMP 5.2, 10.1 and 10.2; 19.5.2.3, 19.5.2.4, 19.5.2.11).
//!
//! libgomp runs [`member`] instead of the region's function on each thread of the team. A worker returns from the
//! region's last barrier only when its next region begins. So the ends of the wait and of the implicit task are
//! reported late, as LLVM's runtime does, too.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;
use std::sync::atomic::Ordering;

use ompt_sys::*;

use crate::entries::call::{Call, code_of};
use crate::entries::worksharing;
use crate::model::thread;
use crate::model::thread::Thread;
use crate::model::{Task, Team, Work, sync_region};
use crate::sanitizer;
use crate::tool::state;
use crate::which_libgomp::functions::{Libgomp, Outlined};

const REGION_FLAGS: c_int = (ompt_parallel_invoker_runtime.0 | ompt_parallel_team.0) as c_int;
const LEAGUE_FLAGS: c_int = (ompt_parallel_invoker_runtime.0 | ompt_parallel_league.0) as c_int;

/// Begins a region of which the thread is the primary thread.
fn begin(
    thread: &Thread,
    call: &Call,
    function: Outlined,
    argument: *mut c_void,
    requested: c_uint,
    work: Option<Work>,
) -> &'static Team {
    let team = thread.teams.take();
    let task = thread.task();
    team.function.set(Some(function));
    team.argument.set(argument);
    team.gomp.set(Some(call.gomp));
    team.encountering.set(Some(task));
    team.parent.set(task.team.get());
    team.code.set(code_of(function));
    team.work.set(work);
    team.is_region.set(true);
    team.requested.set(match requested {
        // SAFETY: libgomp's function, without arguments.
        0 => unsafe { real!(call.gomp, omp_get_max_threads)() as c_uint },
        requested => requested,
    });
    task.set_enter_frame(call.frame);
    report!(
        ompt_callback_parallel_begin as ompt_callback_parallel_begin_t,
        task.data(),
        task.frame(),
        team.data(),
        team.requested.get(),
        REGION_FLAGS,
        team.code.get(),
    );
    thread.starting.set(team);
    team
}

/// The argument of [`member`]: a team that is set up completely.
fn argument(team: &'static Team) -> *mut c_void {
    sanitizer::release(team);
    ptr::from_ref(team).cast_mut().cast()
}

/// Ends a region after its primary thread has returned from the last barrier.
fn end(thread: &Thread, team: &'static Team) {
    let code = team.code.get();
    sanitizer::acquire(team);
    let task = thread.task();
    let size = team.size.load(Ordering::Relaxed);
    if !state::has_exact_ends() || team.leader_calls.get() {
        sync_region::report_end(ompt_sync_region_barrier_implicit_parallel, task.parallel_data(), task, code);
    }
    thread.report_implicit_task_end(task, size as c_uint, 0, ompt_task_implicit);
    if state::is_cancellable() {
        discard_tasks(thread, team);
    }
    thread.tasks.give_back(task);
    let gomp = team.gomp.get();
    if let Some(gomp) = gomp {
        thread.gomp.set(gomp);
    }
    let Some(encountering) = team.encountering.get() else {
        return;
    };
    thread.set_current(Some(encountering));
    thread.state.set(thread.team().working());
    if encountering.is_initial()
        && size > 1
        && let Some(gomp) = gomp
    {
        thread.led.set(size as c_uint);
        thread.led_of.set(gomp);
    }
    report!(
        ompt_callback_parallel_end as ompt_callback_parallel_end_t,
        team.data(),
        encountering.data(),
        REGION_FLAGS,
        code,
    );
    encountering.set_enter_frame(ptr::null_mut());
    thread.teams.give_back(team);
}

/// Reports the tasks of a cancelled region that never ran.
fn discard_tasks(thread: &Thread, team: &Team) {
    team.created.take(|task| {
        if !task.ran.load(Ordering::Relaxed) {
            report!(
                ompt_callback_cancel as ompt_callback_cancel_t,
                task.data(),
                (ompt_cancel_taskgroup | ompt_cancel_discarded_task).0 as c_int,
                ptr::null(),
            );
        }
        thread.release(task);
    });
}

/// Begins the calling thread's implicit task of `team`.
fn begin_implicit_task(thread: &Thread, team: &'static Team, gomp: &'static Libgomp) -> &'static Task {
    // SAFETY: libgomp's functions, without arguments.
    let (size, number) = unsafe { (real!(gomp, omp_get_num_threads)(), real!(gomp, omp_get_thread_num)()) };
    team.size.store(size, Ordering::Relaxed);
    interpose::plant_race!();
    let task = thread.tasks.take();
    task.begin(team, team.encountering.get(), ompt_task_implicit, number);
    thread.gomp.set(gomp);
    thread.set_current(Some(task));
    thread.state.set(team.working());
    report!(
        ompt_callback_implicit_task as ompt_callback_implicit_task_t,
        ompt_scope_begin,
        team.data(),
        task.data(),
        size as c_uint,
        number as c_uint,
        ompt_task_implicit.0 as c_int,
    );
    if let Some(work) = team.work.get() {
        thread.begin_work(work, team.code.get());
    }
    task
}

/// The calling thread arrives at the last barrier of its region.
fn begin_last_barrier(thread: &Thread, team: &Team) {
    thread.end_open_work();
    let task = thread.task();
    task.set_exit_frame(ptr::null_mut());
    sync_region::report_begin(ompt_sync_region_barrier_implicit_parallel, team.data(), task, team.code.get());
    thread.state.set(ompt_state_wait_barrier_implicit_parallel);
    sanitizer::release(team);
}

/// Runs a region's function on a thread of its team. `team` points to the [`Team`].
unsafe extern "C-unwind" fn member(team: *mut c_void) {
    // SAFETY: the entry points below pass a team that lives at least as long as the region.
    let team: &'static Team = unsafe { &*team.cast() };
    sanitizer::acquire(team);
    let (Some(gomp), Some(function)) = (team.gomp.get(), team.function.get()) else {
        return;
    };
    let (thread, leads) = match thread::existing() {
        Some(thread) if ptr::eq(thread.starting.get(), team) => {
            thread.starting.set(ptr::null());
            (thread, true)
        }
        Some(thread) => {
            thread.report_late_end();
            (thread, false)
        }
        None => match thread::begin(ompt_thread_worker, gomp) {
            Some(thread) => (thread, false),
            // SAFETY: the region's function and its data.
            None => return unsafe { function(team.argument.get()) },
        },
    };
    let task = begin_implicit_task(thread, team, gomp);
    let here = 0u8;
    task.set_exit_frame((&raw const here).cast_mut().cast());
    let outer = thread.function.replace(function as *const c_void);
    // SAFETY: the region's function and its data.
    unsafe { function(team.argument.get()) };
    thread.function.set(outer);
    begin_last_barrier(thread, team);
    if state::has_exact_ends() {
        // SAFETY: all members arrive here, since regions cannot be cancelled in this case.
        unsafe { real!(gomp, GOMP_barrier)() };
        sync_region::report_end(
            ompt_sync_region_barrier_implicit_parallel,
            team.data(),
            task,
            team.code.get(),
        );
        if !leads {
            thread.report_implicit_task_end(task, 0, task.thread_num.get() as c_uint, ompt_task_implicit);
            thread.state.set(ompt_state_idle);
            thread.set_current(None);
            thread.tasks.give_back(task);
        }
    } else if !leads {
        thread.pending.set(Some(task));
    }
}

/// Calls libgomp's function for a region between the reports of its begin and end. `$work` is the worksharing construct
/// that the region consists of.
macro_rules! region {
    ($call:ident, $name:ident, $function:ident, $data:ident, $threads:ident, $work:expr $(, $rest:expr)*) => {{
        let real = real!($call.gomp, $name);
        let Some(thread) = $call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real($function, $data, $threads $(, $rest)*) };
        };
        let team = begin(thread, &$call, $function, $data, $threads, $work);
        // SAFETY: the program's own call, with a function of the same type.
        let result = unsafe { real(member, argument(team), $threads $(, $rest)*) };
        end(thread, team);
        result
    }};
}

entry! {
    fn GOMP_parallel(function: Outlined, data: *mut c_void, threads: c_uint, flags: c_uint), call => {
        region!(call, GOMP_parallel, function, data, threads, None, flags)
    }
}

entry! {
    fn GOMP_parallel_reductions(function: Outlined, data: *mut c_void, threads: c_uint, flags: c_uint) -> c_uint, call => {
        let real = real!(call.gomp, GOMP_parallel_reductions);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(function, data, threads, flags) };
        };
        let team = begin(thread, &call, function, data, threads, None);
        // SAFETY: the first word of the data points to the reductions. libgomp reads it from the team instead.
        team.reductions.set(unsafe { data.cast::<*mut c_void>().read() });
        // SAFETY: the program's own call, with a function of the same type.
        let threads = unsafe { real(member, argument(team), threads, flags) };
        end(thread, team);
        threads
    }
}

/// Regions that consist of one loop: `NAME: kind of schedule`, and whether a chunk size follows the step.
macro_rules! parallel_loops {
    ($($name:ident: $kind:expr $(, $chunk:ident)?;)*) => {$(
        entry_in_memory! {
            fn $name(function: Outlined, data: *mut c_void, threads: c_uint, first: c_long, end_: c_long, step: c_long $(, $chunk: c_long)?, flags: c_uint), call => {
                let work = worksharing::signed($kind(call.gomp), first, end_, step);
                region!(call, $name, function, data, threads, Some(work), first, end_, step $(, $chunk)?, flags)
            }
        }
    )*};
}

parallel_loops! {
    GOMP_parallel_loop_static: worksharing::is_static, chunk;
    GOMP_parallel_loop_dynamic: worksharing::is_dynamic, chunk;
    GOMP_parallel_loop_guided: worksharing::is_guided, chunk;
    GOMP_parallel_loop_nonmonotonic_dynamic: worksharing::is_dynamic, chunk;
    GOMP_parallel_loop_nonmonotonic_guided: worksharing::is_guided, chunk;
    GOMP_parallel_loop_runtime: worksharing::of_environment;
    GOMP_parallel_loop_nonmonotonic_runtime: worksharing::of_environment;
    GOMP_parallel_loop_maybe_nonmonotonic_runtime: worksharing::of_environment;
}

entry_in_memory! {
    fn GOMP_parallel_sections(function: Outlined, data: *mut c_void, threads: c_uint, count: c_uint, flags: c_uint), call => {
        let work = worksharing::sections(count);
        region!(call, GOMP_parallel_sections, function, data, threads, Some(work), count, flags)
    }
}

// For GCC before 4.9: the primary thread calls the function itself, between GOMP_parallel_start and GOMP_parallel_end.

/// Begins a region whose primary thread continues in the program.
macro_rules! start_region {
    ($call:ident, $name:ident, $function:ident, $data:ident, $threads:ident, $work:expr $(, $rest:expr)*) => {{
        let real = real!($call.gomp, $name);
        let Some(thread) = $call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real($function, $data, $threads $(, $rest)*) };
        };
        let team = begin(thread, &$call, $function, $data, $threads, $work);
        team.leader_calls.set(true);
        // SAFETY: the program's own call, with a function of the same type.
        unsafe { real(member, argument(team), $threads $(, $rest)*) };
        thread.starting.set(ptr::null());
        let task = begin_implicit_task(thread, team, $call.gomp);
        let encountering = team.encountering.get();
        task.set_exit_frame(encountering.map_or(ptr::null_mut(), Task::enter_frame));
    }};
}

entry! {
    fn GOMP_parallel_start(function: Outlined, data: *mut c_void, threads: c_uint), call => {
        start_region!(call, GOMP_parallel_start, function, data, threads, None)
    }
}

macro_rules! parallel_loop_starts {
    ($($name:ident: $kind:expr $(, $chunk:ident)?;)*) => {$(
        entry_in_memory! {
            fn $name(function: Outlined, data: *mut c_void, threads: c_uint, first: c_long, end_: c_long, step: c_long $(, $chunk: c_long)?), call => {
                let work = worksharing::signed($kind(call.gomp), first, end_, step);
                start_region!(call, $name, function, data, threads, Some(work), first, end_, step $(, $chunk)?)
            }
        }
    )*};
}

parallel_loop_starts! {
    GOMP_parallel_loop_static_start: worksharing::is_static, chunk;
    GOMP_parallel_loop_dynamic_start: worksharing::is_dynamic, chunk;
    GOMP_parallel_loop_guided_start: worksharing::is_guided, chunk;
    GOMP_parallel_loop_runtime_start: worksharing::of_environment;
}

entry! {
    fn GOMP_parallel_sections_start(function: Outlined, data: *mut c_void, threads: c_uint, count: c_uint), call => {
        let work = worksharing::sections(count);
        start_region!(call, GOMP_parallel_sections_start, function, data, threads, Some(work), count)
    }
}

entry! {
    fn GOMP_parallel_end(), call => {
        let real = real!(call.gomp, GOMP_parallel_end);
        let region = call.observed().and_then(|thread| Some((thread, thread.task().team.get()?)));
        let Some((thread, team)) = region.filter(|(_, team)| team.leader_calls.get()) else {
            // SAFETY: the program's own call.
            return unsafe { real() };
        };
        begin_last_barrier(thread, team);
        if state::has_exact_ends() {
            // SAFETY: the other members arrive at the same barrier in `member`.
            unsafe { real!(call.gomp, GOMP_barrier)() };
        }
        // SAFETY: the program's own call.
        unsafe { real() };
        end(thread, team);
    }
}

/// Runs the function of a league once for each team, one after another on the calling thread.
unsafe extern "C-unwind" fn initial_team(league: *mut c_void) {
    // SAFETY: `GOMP_teams_reg` passes a team that lives at least as long as the league.
    let league: &'static Team = unsafe { &*league.cast() };
    let (Some(thread), Some(function)) = (thread::existing(), league.function.get()) else {
        return;
    };
    let index = league.begun.get();
    league.begun.set(index + 1);
    let task = thread.tasks.take();
    task.begin(league, league.encountering.get(), ompt_task_initial, 0);
    thread.set_current(Some(task));
    report!(
        ompt_callback_implicit_task as ompt_callback_implicit_task_t,
        ompt_scope_begin,
        league.data(),
        task.data(),
        league.requested.get(),
        index,
        ompt_task_initial.0 as c_int,
    );
    let here = 0u8;
    task.set_exit_frame((&raw const here).cast_mut().cast());
    let outer = thread.function.replace(function as *const c_void);
    // SAFETY: the league's function and its data.
    unsafe { function(league.argument.get()) };
    thread.function.set(outer);
    thread.end_open_work();
    thread.report_implicit_task_end(task, 0, index, ompt_task_initial);
    thread.set_current(league.encountering.get());
    thread.tasks.give_back(task);
}

/// The number of teams that libgomp creates if neither the program nor the environment gives one.
const DEFAULT_TEAMS: c_uint = 3;

entry_in_memory! {
    fn GOMP_teams_reg(function: Outlined, data: *mut c_void, teams: c_uint, limit: c_uint, flags: c_uint), call => {
        let real = real!(call.gomp, GOMP_teams_reg);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(function, data, teams, limit, flags) };
        };
        let league = thread.teams.take();
        let task = thread.task();
        league.function.set(Some(function));
        league.argument.set(data);
        league.gomp.set(Some(call.gomp));
        league.encountering.set(Some(task));
        league.parent.set(task.team.get());
        league.code.set(code_of(function));
        league.requested.set(if teams == 0 { DEFAULT_TEAMS } else { teams });
        task.set_enter_frame(call.frame);
        report!(
            ompt_callback_parallel_begin as ompt_callback_parallel_begin_t,
            task.data(), task.frame(), league.data(), league.requested.get(), LEAGUE_FLAGS, league.code.get(),
        );
        // SAFETY: the program's own call, with a function of the same type.
        unsafe { real(initial_team, ptr::from_ref(league).cast_mut().cast(), teams, limit, flags) };
        report!(
            ompt_callback_parallel_end as ompt_callback_parallel_end_t,
            league.data(), task.data(), LEAGUE_FLAGS, league.code.get(),
        );
        task.set_enter_frame(ptr::null_mut());
        thread.teams.give_back(league);
    }
}
