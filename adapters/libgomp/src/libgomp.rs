//! The libgomp that serves a caller, and its functions.
//!
//! A process may hold several libgomps: a Python wheel brings a renamed copy of its own, beside the system's. A caller
//! must get the one that the loader would have bound it to. That is the same for all call sites of a library. The answer is kept for
//! each library, and for each call site, where it is found at once.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use core::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use omptrace_runtimes::Vendor;

use crate::elf::{Library, Symbols, begins_with};
use crate::loaded::{self, Mark, Module};
use crate::{old_locks, release, start, thread, unload};

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
            library: Candidate,
            /// Where its functions are looked for: the library, or all of the global scope.
            scope: &'static [Symbols],
            /// It stays loaded until the process ends.
            is_kept: AtomicBool,
            /// It was unloaded all the same: it was found while that was under way, or the program unloaded it unseen.
            is_gone: AtomicBool,
            /// [`DOUBTS`] when somebody saw that it is there.
            seen: AtomicUsize,
            /// By which it is recognised until it is kept.
            mark: Option<Mark>,
            /// It has OMPT itself, as LLVM's and Intel's runtimes have, which serve GCC's code, too. Nothing is reported.
            pub(crate) has_ompt: bool,
            /// The version for tools.
            pub(crate) version: &'static CStr,
            next: Option<&'static Libgomp>,
            /// The same functions with the [old locks](crate::old_locks), where a caller wanted them.
            with_old_locks: OnceLock<&'static Libgomp>,
            $( pub(crate) $name: Option<unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>, )*
        }

        impl Libgomp {
            /// The one of this library, with the functions of the first in `scope` that defines them. `is_kept`: it is never
            /// unloaded.
            fn of(library: Candidate, scope: &'static [Symbols], is_kept: bool) -> Box<Libgomp> {
                // SAFETY: a library that is loaded, for it serves a caller.
                let has_ompt = unsafe { library.has_ompt() };
                let find = |name: &CStr| scope.iter().find_map(|one| one.function(name));
                let version = release::of(|name| find(name).is_some());
                let mark = loaded::mark_at(library.module.place.start).flatten();
                let mut gomp = Box::<Libgomp>::new_uninit();
                let made = gomp.as_mut_ptr();
                // Each field by itself: to copy the whole, the compiler calls `memcpy`, which may be the program's.
                // SAFETY: each field is written, before the value is one. A function of a name has the signature that libgomp
                // gives it.
                unsafe {
                    $(
                        let name = const {
                            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name holds no NUL"),
                            }
                        };
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
            None => $crate::libgomp::missing(stringify!($name)),
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
        let name = const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no NUL"),
            }
        };
        if let Some(found) = $library.function_of_version(name, $version) {
            // SAFETY: both versions of a lock function have the same signature.
            $gomp.$name = unsafe { core::mem::transmute_copy(&found) };
        }
    )*};
}

impl Libgomp {
    /// This libgomp for callers of the [old locks](crate::old_locks).
    fn with_old_locks(&'static self) -> &'static Libgomp {
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

    fn is_of(&self, library: Library) -> bool {
        self.library.module.library == library
    }

    /// Keeps it loaded until the process ends, for its functions are known by their addresses. This asks the loader: only a
    /// thread that calls the loader anyway may do so.
    fn keep(&self) {
        // Relaxed: the loader has locks of its own.
        if self.is_kept.swap(true, Ordering::Relaxed) {
            return;
        }
        // The name that the loader has now: an earlier one may be gone.
        if let Some(module) = Module::of_code(self.library.module.place.start) {
            keep(module.name);
        }
    }

    /// Whether it is loaded, as it was when it was found. Without a lock; true where that cannot be known so.
    pub(crate) fn is_there(&self) -> bool {
        // Relaxed, as below: the loader has locks of its own.
        let doubts = DOUBTS.load(Ordering::Relaxed);
        let is_as_it_was = || {
            self.mark.is_none()
                || loaded::mark_at(self.library.module.place.start).is_none_or(|now| now == self.mark)
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
fn keep(name: *const c_char) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the loader's own name of a loaded library.
    let handle = unsafe { libc::dlopen(name, flags) };
    if !handle.is_null() {
        // SAFETY: the handle from above; the library stays all the same.
        unsafe { unload::close(handle) };
    }
}

/// A library that defines entry points of GCC's, and may serve callers.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    module: Module,
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

/// A caller's libgomp.
#[derive(Clone, Copy)]
pub(crate) enum Serving {
    /// This one.
    Libgomp(&'static Libgomp),
    /// The return address lies in this library: an outlined function ended with a jump to the entry point. So the
    /// call seems to come from the function here that called the outlined one.
    TailCall,
}

/// Call sites of which the libgomp is known: open addressing, for as long as the process lives.
const SITES: usize = 8192;
/// How far from its place a site may lie.
const MAX_PROBES: usize = 64;
/// Values in place of a return address. Searches go on behind them.
mod no_site {
    /// A site that was forgotten.
    pub(super) const FORGOTTEN: usize = 1;
    /// A place that a thread has taken for a new site.
    pub(super) const TAKEN: usize = 2;
}

struct Site {
    return_address: AtomicUsize,
    /// NULL: [`Serving::TailCall`].
    serving: AtomicPtr<Libgomp>,
}

static CACHE: [Site; SITES] =
    [const { Site { return_address: AtomicUsize::new(0), serving: AtomicPtr::new(ptr::null_mut()) } }; SITES];

/// The libgomps found: the last one, which names the others. No lock guards them, since a forked child could find it held by
/// a thread that it does not have. A library's constructor calls libgomp while its thread holds the loader's lock.
static FOUND: AtomicPtr<Libgomp> = AtomicPtr::new(ptr::null_mut());

fn place_of(return_address: usize) -> usize {
    return_address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - SITES.trailing_zeros())
}

/// The libgomp of the code that `return_address` belongs to.
#[inline(always)]
pub(crate) fn serving(return_address: *const c_void) -> Serving {
    let address = return_address as usize;
    let place = place_of(address);
    for place in place..place + MAX_PROBES {
        let site = &CACHE[place % SITES];
        // Acquire: pairs with the release in `find_serving`, behind which the site's libgomp is.
        let known = site.return_address.load(Ordering::Acquire);
        if known == address {
            let serving = Serving::of(site.serving.load(Ordering::Relaxed));
            if serving.is_sure() || serving.is_there() {
                return serving;
            }
            break;
        }
        if known == 0 {
            break;
        }
    }
    find_serving(address)
}

/// The libgomp that was found last, if any.
pub(crate) fn any() -> Option<&'static Libgomp> {
    // SAFETY: NULL, or a libgomp that was leaked. Acquire: pairs with the release in `add`.
    from(unsafe { FOUND.load(Ordering::Acquire).as_ref() }).next()
}

/// The libgomps of the list from `first` on.
fn from(first: Option<&'static Libgomp>) -> impl Iterator<Item = &'static Libgomp> {
    let all = std::iter::successors(first, |gomp| gomp.next);
    // Relaxed: whoever asks for one that goes meanwhile runs code that goes, too.
    all.filter(|gomp| gomp.is_there())
}

/// The libgomp of the list from `first` on that this library is.
fn of_library(library: Library, first: Option<&'static Libgomp>) -> Option<&'static Libgomp> {
    from(first).find(|gomp| gomp.is_of(library))
}

/// Keeps all libgomps loaded until the process ends. The calling thread is about to unload a library, whose destructor may be
/// the first to call one. Then it would be too late, and its threads would run on in code that is gone.
pub(crate) fn keep_all() {
    from(any()).for_each(Libgomp::keep);
    let mut others = Vec::new();
    loaded::each(|module, headers| {
        let is_known = module.library.is_own() || of_library(module.library, any()).is_some();
        let is_of_llvm = || module.library.function(c"__kmpc_fork_call").is_some();
        if !is_known && !is_of_llvm() {
            others.extend(Candidate::of(module, headers));
        }
    });
    others.iter().for_each(|library| keep(library.module.name));
}

/// The program may hold a lock of its own in this call. What it has in the place of the C library's functions may take the same lock. So
/// nothing of the C library is called here, except where several libgomps may serve.
#[cold]
#[inline(never)]
fn find_serving(address: usize) -> Serving {
    if let Some(serving) = served::of(address) {
        if serving.is_there() {
            remember(address, serving);
            return serving;
        }
        // The program has unloaded it by a way that is not seen here, and its caller, too: there is another one now.
        forget_unloaded();
    }
    let Some(_searching) = thread::Searching::begin() else {
        // A function of the program's that the search below has called.
        return Serving::Libgomp(any().unwrap_or_else(|| search(address, None)));
    };
    let module = Module::of_code(address);
    let serving = match &module {
        Some(module) if module.library.is_own() => Serving::TailCall,
        Some(module) => Serving::Libgomp(match of_library(module.library, any()) {
            // A tail call of a function that libgomp itself runs.
            Some(gomp) => gomp,
            None => {
                let gomp = search(address, Some(module));
                match old_locks::are_called_by(module.library) {
                    true => gomp.with_old_locks(),
                    false => gomp,
                }
            }
        }),
        None => Serving::Libgomp(search(address, None)),
    };
    if let Some(module) = module {
        served::remember(module.place, serving);
    }
    remember(address, serving);
    serving
}

impl Serving {
    fn of(gomp: *const Libgomp) -> Serving {
        // SAFETY: NULL, or a libgomp that was leaked.
        unsafe { gomp.as_ref() }.map_or(Serving::TailCall, Serving::Libgomp)
    }

    /// Whether its libgomp cannot have gone since somebody looked.
    #[inline(always)]
    fn is_sure(self) -> bool {
        match self {
            // Relaxed: who unloads it runs none of its callers' code.
            Serving::Libgomp(gomp) => gomp.seen.load(Ordering::Relaxed) == DOUBTS.load(Ordering::Relaxed),
            Serving::TailCall => true,
        }
    }

    #[cold]
    fn is_there(self) -> bool {
        match self {
            Serving::Libgomp(gomp) => gomp.is_there(),
            Serving::TailCall => true,
        }
    }

    fn libgomp(self) -> *mut Libgomp {
        match self {
            Serving::Libgomp(gomp) => ptr::from_ref(gomp).cast_mut(),
            Serving::TailCall => ptr::null_mut(),
        }
    }
}

/// The libraries that have called, and what serves each. A library's call sites are served alike.
mod served {
    use core::ops::Range;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    use super::{Libgomp, Serving, no_site};

    struct Caller {
        begin: AtomicUsize,
        end: AtomicUsize,
        /// NULL: [`Serving::TailCall`].
        serving: AtomicPtr<Libgomp>,
    }

    /// Further ones are searched for at each call site that has no place of its own.
    const CALLERS: usize = 256;

    static CALLERS_KNOWN: [Caller; CALLERS] = [const {
        Caller {
            begin: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            serving: AtomicPtr::new(core::ptr::null_mut()),
        }
    }; CALLERS];

    /// The one that `address` lies in.
    fn caller_of(address: usize) -> Option<&'static Caller> {
        for caller in &CALLERS_KNOWN {
            // Acquire: pairs with the release in `remember`. So do the next ones, so that the last look comes last.
            let begin = caller.begin.load(Ordering::Acquire);
            if begin == 0 {
                return None;
            }
            let end = caller.end.load(Ordering::Acquire);
            if begin > no_site::TAKEN && (begin..end).contains(&address) {
                return Some(caller);
            }
        }
        None
    }

    pub(super) fn of(address: usize) -> Option<Serving> {
        let caller = caller_of(address)?;
        let begin = caller.begin.load(Ordering::Acquire);
        let serving = caller.serving.load(Ordering::Acquire);
        // Relaxed: behind the acquire above. Another library may have taken the place meanwhile.
        let is_same = begin > no_site::TAKEN && caller.begin.load(Ordering::Relaxed) == begin;
        is_same.then(|| Serving::of(serving))
    }

    pub(super) fn remember(place: Range<usize>, serving: Serving) {
        for caller in &CALLERS_KNOWN {
            let known = caller.begin.load(Ordering::Relaxed);
            // Relaxed: nothing is read behind it, and what is written is released below.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if (known == 0 || known == no_site::FORGOTTEN)
                && caller.begin.compare_exchange(known, no_site::TAKEN, success, failure).is_ok()
            {
                // Release: pairs with the acquire in `of`, as the next ones.
                caller.end.store(place.end, Ordering::Release);
                caller.serving.store(serving.libgomp(), Ordering::Release);
                caller.begin.store(place.start, Ordering::Release);
                return;
            }
        }
    }

    /// Forgets the libraries that `is_gone` says are not loaded any more, or that are served by one that is not.
    pub(super) fn forget(is_gone: impl Fn(usize) -> bool) {
        for caller in &CALLERS_KNOWN {
            let begin = caller.begin.load(Ordering::Acquire);
            let is_served = || Serving::of(caller.serving.load(Ordering::Acquire)).is_there();
            if begin > no_site::TAKEN && (is_gone(begin) || !is_served()) {
                // Relaxed: what is put here later is released by itself.
                let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = caller.begin.compare_exchange(begin, no_site::FORGOTTEN, success, failure);
            }
        }
    }

    /// Whether `address` lies in one of them.
    pub(super) fn knows(address: usize) -> bool {
        caller_of(address).is_some()
    }
}

/// Keeps what serves a call site, where there is a place for it.
fn remember(address: usize, serving: Serving) {
    let place = place_of(address);
    for place in place..place + MAX_PROBES {
        let site = &CACHE[place % SITES];
        let known = site.return_address.load(Ordering::Relaxed);
        if known == address {
            // Relaxed: whoever finds the former one sees that it is not there.
            site.serving.store(serving.libgomp(), Ordering::Relaxed);
            break;
        }
        // Relaxed: nothing is read behind it, and what is written is released below.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if (known == 0 || known == no_site::FORGOTTEN)
            && site.return_address.compare_exchange(known, no_site::TAKEN, success, failure).is_ok()
        {
            site.serving.store(serving.libgomp(), Ordering::Relaxed);
            // Release: pairs with the acquire in `serving`.
            site.return_address.store(address, Ordering::Release);
            break;
        }
    }
}

/// How often a libgomp may have begun to go.
static DOUBTS: AtomicUsize = AtomicUsize::new(0);

/// A libgomp may be about to go: whoever calls one looks whether it is there.
pub(crate) fn doubt() {
    // Relaxed: see `Serving::is_sure`.
    DOUBTS.fetch_add(1, Ordering::Relaxed);
}

/// Forgets call sites in libraries that are not loaded any more.
///
/// Nobody looks for such a site meanwhile: its code is gone.
pub(crate) fn forget_unloaded() {
    // SAFETY: NULL, or a libgomp that was leaked. Acquire: pairs with the release in `add`.
    let Some(last) = (unsafe { FOUND.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let is_gone = |address: usize| Module::of_code(address).is_none();
    for gomp in std::iter::successors(Some(last), |gomp| gomp.next) {
        if !gomp.is_there() || gomp.mark.is_none() && is_gone(gomp.library.module.place.start) {
            gomp.is_gone.store(true, Ordering::Relaxed);
        }
    }
    served::forget(is_gone);
    for site in &CACHE {
        let address = site.return_address.load(Ordering::Relaxed);
        if address > no_site::TAKEN && !served::knows(address) && is_gone(address) {
            // Relaxed: what is put here later is released by itself.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = site.return_address.compare_exchange(address, no_site::FORGOTTEN, success, failure);
        }
    }
}

/// The libgomp that the loader would have bound the caller to: the global scope's, else that of the caller's own module.
fn search(address: usize, caller: Option<&Module>) -> &'static Libgomp {
    let start = start::get();
    if let Some(library) = &start.libgomp {
        let known = of_library(library.module.library, any());
        return known.unwrap_or_else(|| add(Libgomp::of(library.clone(), &start.behind, true)));
    }
    let mut candidates = Vec::new();
    loaded::each(|module, headers| {
        if !module.library.is_own() {
            candidates.extend(Candidate::of(module, headers));
        }
    });
    let found = match candidates.as_slice() {
        [] => None,
        [only] => Some(only),
        several => caller.and_then(|caller| bound_to(caller, several)).or_else(|| by_default(several)),
    };
    if let Some(found) = found {
        let known = of_library(found.module.library, any());
        return known.unwrap_or_else(|| {
            let scope: Vec<Symbols> = found.module.library.symbols().into_iter().collect();
            add(Libgomp::of(found.clone(), scope.leak(), false))
        });
    }
    // Nothing can serve the call.
    eprintln!("libomptgomp: no libgomp is loaded that could serve the caller at {address:#x}");
    std::process::abort();
}

/// The candidate that the loader has bound the caller to, or would.
fn bound_to<'a>(caller: &Module, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
    let at = |address: usize| {
        let mut candidates = candidates.iter();
        candidates.find(|candidate| candidate.module.place.contains(&address))
    };
    // Functions that are not wrapped are bound past this library.
    let is_openmp = |name: &CStr| {
        let name = name.to_bytes();
        begins_with(name, b"omp_") || begins_with(name, b"GOMP_")
    };
    if let Some(bound) = caller.library.bindings(is_openmp).find_map(at) {
        return Some(bound);
    }
    // The loader alone knows which libraries were opened with RTLD_GLOBAL.
    let find = |handle| {
        // SAFETY: `RTLD_NEXT` or a handle of `dlopen`, and a string.
        let found = unsafe { libc::dlsym(handle, c"GOMP_parallel".as_ptr()) } as usize;
        if found == 0 {
            // No error of ours is left for the program's `dlerror`. The first call takes the text, the second one frees it.
            // SAFETY: no arguments; the texts are not read.
            unsafe {
                libc::dlerror();
                libc::dlerror();
            }
        }
        at(found)
    };
    find(libc::RTLD_NEXT).or_else(|| {
        // SAFETY: the loader's own name of a loaded library.
        unsafe { unload::with(caller.name, find) }.flatten()
    })
}

/// The one for code that is bound to none: a just-in-time compiler's, and that of modules that took the address by `dlsym`.
fn by_default(candidates: &[Candidate]) -> Option<&Candidate> {
    let is_known = |candidate: &&Candidate| any().is_some_and(|gomp| gomp.is_of(candidate.module.library));
    let is_gnu = |candidate: &&Candidate| Vendor::Gnu.makes(candidate.module.name().to_bytes());
    let mut all = candidates.iter();
    let found = all.clone().find(is_known).or_else(|| all.clone().find(is_gnu));
    found.or_else(|| all.next())
}

/// Adds a libgomp to those found. Another thread may have done so meanwhile: then its one serves, and no list has both.
fn add(gomp: Box<Libgomp>) -> &'static Libgomp {
    let gomp = Box::into_raw(gomp);
    let mut last = FOUND.load(Ordering::Acquire);
    loop {
        // SAFETY: NULL, or a libgomp that was leaked.
        let known = unsafe { last.as_ref() };
        // SAFETY: from `into_raw`, and nothing else has it yet.
        unsafe {
            if let Some(other) = of_library((*gomp).library.module.library, known) {
                drop(Box::from_raw(gomp));
                return other;
            }
            (*gomp).next = known;
        }
        // Release: pairs with the acquire in `any`. Acquire: what another thread has added is read.
        match FOUND.compare_exchange_weak(last, gomp, Ordering::Release, Ordering::Acquire) {
            // SAFETY: it is in the list now, and never freed.
            Ok(_) => return unsafe { &*gomp },
            Err(other) => last = other,
        }
    }
}

/// Ends the program: it called `name`, which its libgomp does not define.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    eprintln!("libomptgomp: the program calls {name}, and its libgomp does not define it");
    std::process::abort();
}
