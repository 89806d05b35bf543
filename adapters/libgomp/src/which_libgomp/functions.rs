//! A libgomp: its functions, and whether it is still loaded.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::real_dlclose;
use interpose::elf::{Library, Symbols};

use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::loaded_libraries::{Mark, Module};
use crate::which_libgomp::{old_locks, release};

/// The function into which GCC outlines the body of a region or task.
pub(crate) type Outlined = unsafe extern "C-unwind" fn(*mut c_void);
/// The function that GCC generates to copy a task's data: to, from.
pub(crate) type CopyFunction = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Declares [`Libgomp`], with a field for each function.
macro_rules! functions {
    ($( fn $name:ident($($type:ty),*) $(-> $result:ty)?; )*) => {
        /// A runtime that defines GOMP's entry points.
        pub(crate) struct Libgomp {
            /// The library of the runtime.
            pub(super) library: Candidate,
            /// Where the functions are looked up: the library, or the whole global scope.
            scope: &'static [Symbols],
            /// The library stays loaded until the process ends.
            is_kept: AtomicBool,
            /// The library was unloaded nevertheless: it was found while it was being unloaded, or the program unloaded
            /// it without being noticed.
            pub(super) is_gone: AtomicBool,
            /// The value of [`DOUBTS`] when a thread last checked that the library is loaded.
            seen: AtomicUsize,
            /// Identifies the library until it is pinned.
            pub(super) mark: Option<Mark>,
            /// The runtime has OMPT itself, as LLVM's and Intel's runtimes do, which also serve GCC's code. Then
            /// nothing is reported.
            pub(crate) has_ompt: bool,
            /// The version that tools get.
            pub(crate) version: &'static CStr,
            pub(super) next: Option<&'static Libgomp>,
            /// The same functions with the [old locks](crate::which_libgomp::old_locks), if a caller needed them.
            with_old_locks: OnceLock<&'static Libgomp>,
            $( pub(crate) $name: Option<unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>, )*
        }

        impl Libgomp {
            /// Describes this library, with each function taken from the first entry in `scope` that defines it.
            /// `is_kept` says that the library is never unloaded.
            pub(super) fn of(library: Candidate, scope: &'static [Symbols], is_kept: bool) -> Box<Libgomp> {
                // SAFETY: the library is loaded, because it serves a caller.
                let has_ompt = unsafe { library.has_ompt() };
                let find = |name: &CStr| scope.iter().find_map(|one| one.function(name));
                let version = release::of(|name| find(name).is_some());
                let mark = loaded_libraries::mark_at(library.module.place.start).flatten();
                let mut gomp = Box::<Libgomp>::new_uninit();
                let made = gomp.as_mut_ptr();
                // Fields are written one by one: to copy the whole value, the compiler would call `memcpy`, which the
                // program may replace.
                // SAFETY: each field is written before the value is used. Functions have the signatures that libgomp
                // gives them.
                unsafe {
                    $(
                        let name = interpose::c_name!($name);
                        let found = find(name).unwrap_or(0);
                        (&raw mut (*made).$name).cast::<usize>().write(found);
                    )*
                    (&raw mut (*made).has_ompt).write(has_ompt);
                    (&raw mut (*made).version).write(version);
                    (&raw mut (*made).next).write(None);
                    (&raw mut (*made).with_old_locks).write(OnceLock::new());
                    (&raw mut (*made).is_kept).write(AtomicBool::new(is_kept));
                    (&raw mut (*made).is_gone).write(AtomicBool::new(false));
                    (&raw mut (*made).seen).write(AtomicUsize::new(DOUBTS.load(Ordering::Relaxed)));
                    (&raw mut (*made).mark).write(mark);
                    (&raw mut (*made).library).write(library);
                    (&raw mut (*made).scope).write(scope);
                    gomp.assume_init()
                }
            }
        }
    };
}

/// A function of a [`Libgomp`]. If a program calls a function, its libgomp defines it.
macro_rules! real {
    ($gomp:expr, $name:ident) => {
        match $gomp.$name {
            Some(function) => function,
            None => $crate::which_libgomp::functions::missing(stringify!($name)),
        }
    };
}

type Reductions = *mut usize;
type Memory = *mut *mut c_void;
type Hosts = *mut *mut c_void;
type Ull = u64;

functions! {
    fn GOMP_parallel(Outlined, *mut c_void, c_uint, c_uint);
    fn GOMP_parallel_reductions(Outlined, *mut c_void, c_uint, c_uint) -> c_uint;
    fn GOMP_parallel_loop_static(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_dynamic(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_guided(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_nonmonotonic_dynamic(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_nonmonotonic_guided(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_runtime(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_nonmonotonic_runtime(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_loop_maybe_nonmonotonic_runtime(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_uint);
    fn GOMP_parallel_sections(Outlined, *mut c_void, c_uint, c_uint, c_uint);
    fn GOMP_parallel_start(Outlined, *mut c_void, c_uint);
    fn GOMP_parallel_end();
    fn GOMP_parallel_loop_static_start(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long);
    fn GOMP_parallel_loop_dynamic_start(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long);
    fn GOMP_parallel_loop_guided_start(Outlined, *mut c_void, c_uint, c_long, c_long, c_long, c_long);
    fn GOMP_parallel_loop_runtime_start(Outlined, *mut c_void, c_uint, c_long, c_long, c_long);
    fn GOMP_parallel_sections_start(Outlined, *mut c_void, c_uint, c_uint);
    fn GOMP_teams_reg(Outlined, *mut c_void, c_uint, c_uint, c_uint);

    fn GOMP_loop_static_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_dynamic_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_guided_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_dynamic_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_guided_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_static_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_dynamic_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_guided_start(c_long, c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_runtime_start(c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_runtime_start(c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_runtime_start(c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_maybe_nonmonotonic_runtime_start(c_long, c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ull_static_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_dynamic_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_guided_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_dynamic_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_guided_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_static_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_dynamic_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_guided_start(bool, Ull, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_runtime_start(bool, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_runtime_start(bool, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_runtime_start(bool, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_maybe_nonmonotonic_runtime_start(bool, Ull, Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_start(c_long, c_long, c_long, c_long, c_long, *mut c_long, *mut c_long, Reductions, Memory) -> bool;
    fn GOMP_loop_ordered_start(c_long, c_long, c_long, c_long, c_long, *mut c_long, *mut c_long, Reductions, Memory) -> bool;
    fn GOMP_loop_ull_start(bool, Ull, Ull, Ull, c_long, Ull, *mut Ull, *mut Ull, Reductions, Memory) -> bool;
    fn GOMP_loop_ull_ordered_start(bool, Ull, Ull, Ull, c_long, Ull, *mut Ull, *mut Ull, Reductions, Memory) -> bool;
    fn GOMP_loop_doacross_static_start(c_uint, *mut c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_doacross_dynamic_start(c_uint, *mut c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_doacross_guided_start(c_uint, *mut c_long, c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_doacross_runtime_start(c_uint, *mut c_long, *mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_doacross_start(c_uint, *mut c_long, c_long, c_long, *mut c_long, *mut c_long, Reductions, Memory) -> bool;
    fn GOMP_loop_ull_doacross_static_start(c_uint, *mut Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_doacross_dynamic_start(c_uint, *mut Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_doacross_guided_start(c_uint, *mut Ull, Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_doacross_runtime_start(c_uint, *mut Ull, *mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_doacross_start(c_uint, *mut Ull, c_long, Ull, *mut Ull, *mut Ull, Reductions, Memory) -> bool;
    fn GOMP_loop_static_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_dynamic_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_guided_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_runtime_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_dynamic_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_guided_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_nonmonotonic_runtime_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_maybe_nonmonotonic_runtime_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_static_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_dynamic_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_guided_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ordered_runtime_next(*mut c_long, *mut c_long) -> bool;
    fn GOMP_loop_ull_static_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_dynamic_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_guided_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_runtime_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_dynamic_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_guided_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_nonmonotonic_runtime_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_maybe_nonmonotonic_runtime_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_static_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_dynamic_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_guided_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_ull_ordered_runtime_next(*mut Ull, *mut Ull) -> bool;
    fn GOMP_loop_end();
    fn GOMP_loop_end_cancel() -> bool;
    fn GOMP_loop_end_nowait();
    fn GOMP_sections_start(c_uint) -> c_uint;
    fn GOMP_sections2_start(c_uint, Reductions, Memory) -> c_uint;
    fn GOMP_sections_next() -> c_uint;
    fn GOMP_sections_end();
    fn GOMP_sections_end_cancel() -> bool;
    fn GOMP_sections_end_nowait();
    fn GOMP_single_start() -> bool;
    fn GOMP_single_copy_start() -> *mut c_void;
    fn GOMP_single_copy_end(*mut c_void);
    fn GOMP_scope_start(Reductions);
    fn GOMP_workshare_task_reduction_unregister(bool);

    fn GOMP_barrier();
    fn GOMP_barrier_cancel() -> bool;

    fn GOMP_critical_start();
    fn GOMP_critical_end();
    fn GOMP_critical_name_start(*mut *mut c_void);
    fn GOMP_critical_name_end(*mut *mut c_void);
    fn GOMP_atomic_start();
    fn GOMP_atomic_end();
    fn GOMP_ordered_start();
    fn GOMP_ordered_end();
    fn omp_init_lock(*mut c_void);
    fn omp_init_lock_(*mut c_void);
    fn omp_destroy_lock(*mut c_void);
    fn omp_destroy_lock_(*mut c_void);
    fn omp_set_lock(*mut c_void);
    fn omp_set_lock_(*mut c_void);
    fn omp_unset_lock(*mut c_void);
    fn omp_unset_lock_(*mut c_void);
    fn omp_test_lock(*mut c_void) -> c_int;
    fn omp_test_lock_(*mut c_void) -> c_int;
    fn omp_init_nest_lock(*mut c_void);
    fn omp_init_nest_lock_(*mut c_void);
    fn omp_destroy_nest_lock(*mut c_void);
    fn omp_destroy_nest_lock_(*mut c_void);
    fn omp_set_nest_lock(*mut c_void);
    fn omp_set_nest_lock_(*mut c_void);
    fn omp_unset_nest_lock(*mut c_void);
    fn omp_unset_nest_lock_(*mut c_void);
    fn omp_test_nest_lock(*mut c_void) -> c_int;
    fn omp_test_nest_lock_(*mut c_void) -> c_int;

    fn GOMP_task(Outlined, *mut c_void, Option<CopyFunction>, c_long, c_long, bool, c_uint, *mut *mut c_void, c_int, *mut c_void);
    fn GOMP_taskloop(Outlined, *mut c_void, Option<CopyFunction>, c_long, c_long, c_uint, u64, c_int, c_long, c_long, c_long);
    fn GOMP_taskloop_ull(Outlined, *mut c_void, Option<CopyFunction>, c_long, c_long, c_uint, u64, c_int, Ull, Ull, Ull);
    fn GOMP_taskwait();
    fn GOMP_taskwait_depend(*mut *mut c_void);
    fn GOMP_taskwait_depend_nowait(*mut *mut c_void);
    fn GOMP_taskgroup_start();
    fn GOMP_taskgroup_reduction_register(*mut usize);
    fn GOMP_taskgroup_end();
    fn omp_fulfill_event(usize);
    fn omp_fulfill_event_(*mut usize);
    fn GOMP_doacross_post(*mut c_long);
    fn GOMP_doacross_ull_post(*mut Ull);
    fn GOMP_doacross_wait(c_long);
    fn GOMP_doacross_ull_wait(Ull);

    fn GOMP_cancel(c_int, bool) -> bool;
    fn GOMP_cancellation_point(c_int) -> bool;

    fn GOMP_target(c_int, *mut c_void, *const c_void, usize, Hosts, *mut usize, *mut u8);
    fn GOMP_target_ext(c_int, *mut c_void, usize, Hosts, *mut usize, *mut u16, c_uint, Hosts, Hosts);
    fn GOMP_target_data(c_int, *const c_void, usize, Hosts, *mut usize, *mut u8);
    fn GOMP_target_data_ext(c_int, usize, Hosts, *mut usize, *mut u16);
    fn GOMP_target_end_data();
    fn GOMP_target_update(c_int, *const c_void, usize, Hosts, *mut usize, *mut u8);
    fn GOMP_target_update_ext(c_int, usize, Hosts, *mut usize, *mut u16, c_uint, Hosts);
    fn GOMP_target_enter_exit_data(c_int, usize, Hosts, *mut usize, *mut u16, c_uint, Hosts);
    fn GOMP_warning(*const c_char, usize);
    fn GOMP_error(*const c_char, usize);

    fn omp_set_num_threads(c_int);
    fn omp_set_num_threads_(*const i32);
    fn omp_set_num_threads_8_(*const i64);
    fn omp_set_dynamic(c_int);
    fn omp_set_dynamic_(*const i32);
    fn omp_set_dynamic_8_(*const i64);
    fn omp_set_nested(c_int);
    fn omp_set_nested_(*const i32);
    fn omp_set_nested_8_(*const i64);
    fn omp_set_max_active_levels(c_int);
    fn omp_set_max_active_levels_(*const i32);
    fn omp_set_max_active_levels_8_(*const i64);
    fn omp_set_schedule(c_int, c_int);
    fn omp_set_schedule_(*const i32, *const i32);
    fn omp_set_schedule_8_(*const i32, *const i64);

    fn omp_get_num_threads() -> c_int;
    fn omp_get_thread_num() -> c_int;
    fn omp_get_max_threads() -> c_int;
    fn omp_get_level() -> c_int;
    fn omp_get_schedule(*mut c_int, *mut c_int);
    fn omp_in_final() -> c_int;
    fn omp_get_num_procs() -> c_int;
    fn omp_get_num_places() -> c_int;
    fn omp_get_place_num() -> c_int;
    fn omp_get_place_num_procs(c_int) -> c_int;
    fn omp_get_place_proc_ids(c_int, *mut c_int);
    fn omp_get_partition_num_places() -> c_int;
    fn omp_get_partition_place_nums(*mut c_int);
    fn omp_get_num_devices() -> c_int;
    fn omp_get_default_device() -> c_int;
}

// SAFETY: the fields never change once the value is in the list, except `with_old_locks`, which is set once.
unsafe impl Sync for Libgomp {}

// SAFETY: as above.
unsafe impl Send for Libgomp {}

/// Replaces lock functions by those of another version, if libgomp has that version.
macro_rules! replace_locks {
    ($gomp:ident, $library:ident, $version:expr, $($name:ident)*) => {$(
        let name = interpose::c_name!($name);
        if let Some(found) = $library.function_of_version(name, $version) {
            // SAFETY: both versions of a lock function have the same signature.
            $gomp.$name = unsafe { core::mem::transmute_copy(&found) };
        }
    )*};
}

impl Libgomp {
    /// This libgomp with the functions for callers of the [old locks](crate::which_libgomp::old_locks).
    pub(super) fn with_old_locks(&'static self) -> &'static Libgomp {
        if let Some(found) = self.with_old_locks.get() {
            return found;
        }
        let library = self.library.module.library;
        let is_kept = self.is_kept.load(Ordering::Relaxed);
        let mut gomp = Libgomp::of(self.library.clone(), self.scope, is_kept);
        replace_locks! {
            gomp, library, old_locks::VERSION,
            omp_init_lock omp_init_lock_ omp_destroy_lock omp_destroy_lock_ omp_set_lock omp_set_lock_
            omp_unset_lock omp_unset_lock_ omp_test_lock omp_test_lock_
            omp_init_nest_lock omp_init_nest_lock_ omp_destroy_nest_lock omp_destroy_nest_lock_ omp_set_nest_lock
            omp_set_nest_lock_ omp_unset_nest_lock omp_unset_nest_lock_ omp_test_nest_lock omp_test_nest_lock_
        }
        // If another thread was first, this thread's value stays unused.
        self.with_old_locks.get_or_init(|| Box::leak(gomp))
    }

    pub(super) fn is_of(&self, library: Library) -> bool {
        self.library.module.library == library
    }

    /// Pins the library until the process ends, because its functions are known by their addresses. This calls the
    /// loader, so only a thread that calls the loader anyway may do it.
    pub(super) fn keep(&self) {
        // Relaxed: the loader has its own locks.
        if self.is_kept.swap(true, Ordering::Relaxed) {
            return;
        }
        // The loader's current name of the library: an earlier one may have been freed.
        if let Some(module) = Module::of_code(self.library.module.place.start) {
            keep(module.name);
        }
    }

    /// Whether the library cannot have been unloaded since the last check.
    #[inline(always)]
    pub(super) fn is_as_seen(&self) -> bool {
        // Relaxed: a thread that unloads the library runs no code of the library's callers.
        self.seen.load(Ordering::Relaxed) == DOUBTS.load(Ordering::Relaxed)
    }

    /// Whether the library is still loaded. Takes no lock; true if this cannot be determined without a lock.
    pub(crate) fn is_there(&self) -> bool {
        // Relaxed, as below: the loader has its own locks.
        let doubts = DOUBTS.load(Ordering::Relaxed);
        let is_as_it_was = || {
            self.mark.is_none()
                || loaded_libraries::mark_at(self.library.module.place.start)
                    .is_none_or(|now| now == self.mark)
        };
        let is_there =
            !self.is_gone.load(Ordering::Relaxed) && (self.is_kept.load(Ordering::Relaxed) || is_as_it_was());
        if is_there {
            self.seen.store(doubts, Ordering::Relaxed);
        }
        is_there
    }
}

/// Pins a library until the process ends.
pub(super) fn keep(name: *const c_char) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the loader's own name of a loaded library.
    let handle = unsafe { libc::dlopen(name, flags) };
    if handle.is_null() {
        interpose::forget_error();
        return;
    }
    // SAFETY: the handle from above; the library stays loaded.
    unsafe { real_dlclose::close(handle) };
}

/// A library that defines entry points for GCC's code and may serve callers.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(super) module: Module,
    headers: *const [libc::Elf64_Phdr],
}

// SAFETY: it points to data of the loader, which do not change while the library is loaded.
unsafe impl Send for Candidate {}
// SAFETY: as above.
unsafe impl Sync for Candidate {}

impl Candidate {
    /// The library, if it defines such entry points.
    pub(crate) fn of(module: &Module, headers: &[libc::Elf64_Phdr]) -> Option<Candidate> {
        const KNOWN_NAMES: [&CStr; 4] =
            [c"GOMP_parallel", c"GOMP_critical_start", c"omp_set_lock", c"GOMP_barrier"];
        let symbols = module.library.symbols()?;
        let is_one = KNOWN_NAMES.iter().any(|name| symbols.function(name).is_some());
        is_one.then(|| Candidate { module: module.clone(), headers })
    }

    /// The library's function with this name, if it defines one.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        self.module.library.function(name)
    }

    /// Whether the runtime has OMPT itself: future versions of libgomp with OMPT will search for a tool themselves, as
    /// LLVM's and Intel's runtimes do.
    ///
    /// # Safety
    /// The library stays loaded meanwhile.
    pub(crate) unsafe fn has_ompt(&self) -> bool {
        let library = self.module.library;
        library.function(c"__kmpc_fork_call").is_some()
            // SAFETY: by the caller's promise, also for the headers.
            || unsafe { release::looks_for_tools(library.base, &*self.headers) }
    }

    /// Whether the library defines more than a few functions.
    pub(crate) fn is_whole(&self) -> bool {
        self.module.library.function(c"GOMP_parallel").is_some()
    }
}

impl core::fmt::Debug for Libgomp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Libgomp({:#x})", self.library.module.library.base)
    }
}

/// How often a libgomp may have been unloaded.
static DOUBTS: AtomicUsize = AtomicUsize::new(0);

/// A libgomp may be unloaded soon: callers must check whether theirs is still loaded.
pub(crate) fn doubt() {
    // Relaxed: see `Libgomp::is_as_seen`.
    DOUBTS.fetch_add(1, Ordering::Relaxed);
}

/// Aborts the program: it called `name`, which its libgomp does not define.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    eprintln!("libomptgomp: the program calls {name}, which the program's libgomp does not define");
    std::process::abort();
}
