//! A libgomp: its functions, and whether it is still there.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::real_dlclose;
use interpose::elf::{Library, Symbols};

use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::loaded_libraries::{Mark, Module};
use crate::which_libgomp::{old_locks, release};

/// The function that GCC makes of a region's or task's body.
pub(crate) type Outlined = unsafe extern "C-unwind" fn(*mut c_void);
/// The function that GCC makes of the copy constructors of a task's data: to, from.
pub(crate) type CopyFunction = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Declares [`Libgomp`], with a field for each function.
macro_rules! functions {
    ($( fn $name:ident($($type:ty),*) $(-> $result:ty)?; )*) => {
        /// A runtime that defines GOMP's entry points.
        pub(crate) struct Libgomp {
            /// Its library.
            pub(super) library: Candidate,
            /// Where its functions are looked for: the library, or all of the global scope.
            scope: &'static [Symbols],
            /// It stays loaded until the process ends.
            is_kept: AtomicBool,
            /// It was unloaded all the same: it was found while that was under way, or the program unloaded it unseen.
            pub(super) is_gone: AtomicBool,
            /// [`DOUBTS`] when somebody saw that it is there.
            seen: AtomicUsize,
            /// By which it is recognised until it is kept.
            pub(super) mark: Option<Mark>,
            /// It has OMPT itself, as LLVM's and Intel's runtimes have, which serve GCC's code, too. Nothing is reported.
            pub(crate) has_ompt: bool,
            /// The version for tools.
            pub(crate) version: &'static CStr,
            pub(super) next: Option<&'static Libgomp>,
            /// The same functions with the [old locks](crate::which_libgomp::old_locks), where a caller wanted them.
            with_old_locks: OnceLock<&'static Libgomp>,
            $( pub(crate) $name: Option<unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>, )*
        }

        impl Libgomp {
            /// The one of this library, with the functions of the first in `scope` that defines them. `is_kept`: it is never
            /// unloaded.
            pub(super) fn of(library: Candidate, scope: &'static [Symbols], is_kept: bool) -> Box<Libgomp> {
                // SAFETY: a library that is loaded, for it serves a caller.
                let has_ompt = unsafe { library.has_ompt() };
                let find = |name: &CStr| scope.iter().find_map(|one| one.function(name));
                let version = release::of(|name| find(name).is_some());
                let mark = loaded_libraries::mark_at(library.module.place.start).flatten();
                let mut gomp = Box::<Libgomp>::new_uninit();
                let made = gomp.as_mut_ptr();
                // Each field by itself: to copy the whole, the compiler calls `memcpy`, which may be the program's.
                // SAFETY: each field is written, before the value is one. A function of a name has the signature that libgomp
                // gives it.
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

/// A function of a [`Libgomp`]. A program that calls a function has a libgomp that defines it.
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

// SAFETY: its fields never change once it is in the list, but for `with_old_locks`, which is set once.
unsafe impl Sync for Libgomp {}

// SAFETY: as above.
unsafe impl Send for Libgomp {}

/// Replaces lock functions by those of another version, where libgomp has them.
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
    /// This libgomp for callers of the [old locks](crate::which_libgomp::old_locks).
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
        // Whoever comes second leaves its own unused.
        self.with_old_locks.get_or_init(|| Box::leak(gomp))
    }

    pub(super) fn is_of(&self, library: Library) -> bool {
        self.library.module.library == library
    }

    /// Keeps it loaded until the process ends, for its functions are known by their addresses. This asks the loader: only a
    /// thread that calls the loader anyway may do so.
    pub(super) fn keep(&self) {
        // Relaxed: the loader has locks of its own.
        if self.is_kept.swap(true, Ordering::Relaxed) {
            return;
        }
        // The name that the loader has now: an earlier one may be gone.
        if let Some(module) = Module::of_code(self.library.module.place.start) {
            keep(module.name);
        }
    }

    /// Whether it cannot have gone since somebody looked.
    #[inline(always)]
    pub(super) fn is_as_seen(&self) -> bool {
        // Relaxed: who unloads it runs none of its callers' code.
        self.seen.load(Ordering::Relaxed) == DOUBTS.load(Ordering::Relaxed)
    }

    /// Whether it is loaded, as it was when it was found. Without a lock; true where that cannot be known so.
    pub(crate) fn is_there(&self) -> bool {
        // Relaxed, as below: the loader has locks of its own.
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

/// Keeps a library loaded until the process ends.
pub(super) fn keep(name: *const c_char) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the loader's own name of a loaded library.
    let handle = unsafe { libc::dlopen(name, flags) };
    if handle.is_null() {
        interpose::forget_error();
        return;
    }
    // SAFETY: the handle from above; the library stays all the same.
    unsafe { real_dlclose::close(handle) };
}

/// A library that defines entry points of GCC's, and may serve callers.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(super) module: Module,
    headers: *const [libc::Elf64_Phdr],
}

// SAFETY: what it points to is the loader's, and stays as it is while the library is loaded.
unsafe impl Send for Candidate {}
// SAFETY: as above.
unsafe impl Sync for Candidate {}

impl Candidate {
    /// The library, if it is one.
    pub(crate) fn of(module: &Module, headers: &[libc::Elf64_Phdr]) -> Option<Candidate> {
        const KNOWN_NAMES: [&CStr; 4] =
            [c"GOMP_parallel", c"GOMP_critical_start", c"omp_set_lock", c"GOMP_barrier"];
        let symbols = module.library.symbols()?;
        let is_one = KNOWN_NAMES.iter().any(|name| symbols.function(name).is_some());
        is_one.then(|| Candidate { module: module.clone(), headers })
    }

    /// The function of this name, if it defines one.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        self.module.library.function(name)
    }

    /// Whether it has OMPT itself: GCC's runtime finds a tool itself once it has OMPT; so do LLVM's and Intel's.
    ///
    /// # Safety
    /// It is loaded, and stays so meanwhile.
    pub(crate) unsafe fn has_ompt(&self) -> bool {
        let library = self.module.library;
        library.function(c"__kmpc_fork_call").is_some()
            // SAFETY: by the caller's promise, also for the headers.
            || unsafe { release::looks_for_tools(library.base, &*self.headers) }
    }

    /// Whether it has more than a few functions.
    pub(crate) fn is_whole(&self) -> bool {
        self.module.library.function(c"GOMP_parallel").is_some()
    }
}

impl core::fmt::Debug for Libgomp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Libgomp({:#x})", self.library.module.library.base)
    }
}

/// How often a libgomp may have begun to go.
static DOUBTS: AtomicUsize = AtomicUsize::new(0);

/// A libgomp may be about to go: whoever calls one looks whether it is there.
pub(crate) fn doubt() {
    // Relaxed: see `Libgomp::is_as_seen`.
    DOUBTS.fetch_add(1, Ordering::Relaxed);
}

/// Ends the program: it called `name`, which its libgomp does not define.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    eprintln!("libomptgomp: the program calls {name}, which its libgomp does not define");
    std::process::abort();
}
