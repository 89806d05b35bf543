//! The libgomp that serves a caller, and its functions.
//!
//! A process may hold several libgomps: a Python wheel brings a renamed copy of its own, beside the system's. A caller
//! must get the one that the loader would have bound it to. The answer is kept for each call site.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use core::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use omptrace_runtimes::Vendor;

use crate::{loaded, old_locks, release, unload};

/// The function that GCC makes of a region's or task's body.
pub(crate) type Outlined = unsafe extern "C-unwind" fn(*mut c_void);
/// The function that GCC makes of the copy constructors of a task's data: to, from.
pub(crate) type CopyFunction = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Declares [`Libgomp`], with a field for each function.
macro_rules! functions {
    ($( fn $name:ident($($type:ty),*) $(-> $result:ty)?; )*) => {
        /// A runtime that defines GOMP's entry points.
        pub(crate) struct Libgomp {
            /// Where it is loaded.
            base: usize,
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
            /// The functions that `handle` finds outside of this library.
            fn with_functions(base: usize, has_ompt: bool, handle: *mut c_void) -> Libgomp {
                Libgomp {
                    base,
                    has_ompt,
                    version: release::of(|name| !find(handle, name).is_null()),
                    next: None,
                    with_old_locks: OnceLock::new(),
                    $( $name: {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name holds no NUL"),
                        };
                        let found = find(handle, NAME);
                        // SAFETY: a function of this name has the signature that libgomp gives it; NULL is `None`.
                        unsafe { core::mem::transmute::<*mut c_void, Option<unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>>(found) }
                    }, )*
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

/// Replaces lock functions by those of another version, where libgomp has them.
macro_rules! replace_locks {
    ($gomp:ident, $handle:ident, $version:expr, $($name:ident)*) => {$(
        // SAFETY: a handle of `dlopen`, and strings.
        let found = unsafe { libc::dlvsym($handle, concat!(stringify!($name), "\0").as_ptr().cast(), $version.as_ptr()) };
        if !found.is_null() {
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
        let function = self
            .omp_set_lock
            .map_or(ptr::null(), |set| set as *const c_void);
        let (_, file) = module_of(function);
        let with_old_locks = |handle| {
            let mut gomp = Box::new(Libgomp::with_functions(self.base, self.has_ompt, handle));
            replace_locks! {
                gomp, handle, old_locks::VERSION,
                omp_init_lock omp_init_lock_ omp_destroy_lock omp_destroy_lock_ omp_set_lock omp_set_lock_
                omp_unset_lock omp_unset_lock_ omp_test_lock omp_test_lock_
                omp_init_nest_lock omp_init_nest_lock_ omp_destroy_nest_lock omp_destroy_nest_lock_ omp_set_nest_lock
                omp_set_nest_lock_ omp_unset_nest_lock omp_unset_nest_lock_ omp_test_nest_lock omp_test_nest_lock_
            }
            gomp
        };
        // SAFETY: the loader's own name of a loaded library, or NULL for the program.
        let Some(gomp) = (unsafe { loaded::with(file, with_old_locks) }) else {
            return self;
        };
        // Not under a lock: the loader was asked. Whoever comes second leaves its own unused.
        self.with_old_locks.get_or_init(|| Box::leak(gomp))
    }
}

impl core::fmt::Debug for Libgomp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Libgomp({:#x})", self.base)
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

static CACHE: [Site; SITES] = [const {
    Site {
        return_address: AtomicUsize::new(0),
        serving: AtomicPtr::new(ptr::null_mut()),
    }
}; SITES];

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
            let gomp = site.serving.load(Ordering::Relaxed);
            // SAFETY: NULL, or a libgomp that was leaked.
            return unsafe { gomp.as_ref() }.map_or(Serving::TailCall, Serving::Libgomp);
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
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }
}

/// The libgomp of the list from `first` on that is loaded at `base`.
fn loaded_at(base: usize, first: Option<&'static Libgomp>) -> Option<&'static Libgomp> {
    std::iter::successors(first, |gomp| gomp.next).find(|gomp| gomp.base == base)
}

#[cold]
#[inline(never)]
fn find_serving(address: usize) -> Serving {
    let (base, file) = module_of(address as *const c_void);
    let serving = if base == own_base() {
        Serving::TailCall
    } else if let Some(gomp) = loaded_at(base, any()) {
        // A tail call of a function that libgomp itself runs.
        Serving::Libgomp(gomp)
    } else {
        let gomp = search(address, file);
        match old_locks::are_called_by_library_of(address as *const c_void, base) {
            true => Serving::Libgomp(gomp.with_old_locks()),
            false => Serving::Libgomp(gomp),
        }
    };
    remember(address, serving);
    serving
}

/// Keeps what serves a call site, where there is a place for it.
fn remember(address: usize, serving: Serving) {
    let gomp: *const Libgomp = match serving {
        Serving::Libgomp(gomp) => gomp,
        Serving::TailCall => ptr::null(),
    };
    let place = place_of(address);
    for place in place..place + MAX_PROBES {
        let site = &CACHE[place % SITES];
        let known = site.return_address.load(Ordering::Relaxed);
        if known == address {
            break;
        }
        // Relaxed: nothing is read behind it, and what is written is released below.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if (known == 0 || known == no_site::FORGOTTEN)
            && site
                .return_address
                .compare_exchange(known, no_site::TAKEN, success, failure)
                .is_ok()
        {
            site.serving.store(gomp.cast_mut(), Ordering::Relaxed);
            // Release: pairs with the acquire in `serving`.
            site.return_address.store(address, Ordering::Release);
            break;
        }
    }
}

/// Forgets call sites in libraries that are not loaded any more.
///
/// Nobody looks for such a site meanwhile: its code is gone.
pub(crate) fn forget_unloaded() {
    if any().is_none() {
        return;
    }
    old_locks::forget_unloaded();
    for site in &CACHE {
        let address = site.return_address.load(Ordering::Relaxed);
        if address > no_site::TAKEN && module_of(address as *const c_void).0 == 0 {
            // Relaxed: what is put here later is released by itself.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ =
                site.return_address
                    .compare_exchange(address, no_site::FORGOTTEN, success, failure);
        }
    }
}

/// The libgomp that the loader would have bound the caller to: the global scope's, else that of the caller's own module.
fn search(address: usize, file: *const c_char) -> &'static Libgomp {
    if let Some(gomp) = of_handle(libc::RTLD_NEXT) {
        return gomp;
    }
    if !file.is_null()
        && let Some(gomp) = of_file(file)
    {
        return gomp;
    }
    // Code without a module, such as a just-in-time compiler's.
    if let Some(gomp) = any() {
        return gomp;
    }
    // The module took the function's address by `dlsym`: it needs no libgomp itself.
    let files = loaded::files(|file| Vendor::Gnu.makes(file));
    if let Some(file) = files.first()
        && let Some(gomp) = of_file(file.as_ptr())
    {
        return gomp;
    }
    // Nothing can serve the call.
    eprintln!("libomptgomp: no libgomp is loaded that could serve the caller at {address:#x}");
    std::process::abort();
}

/// The libgomp that the library in `file`, which is loaded, is bound to.
fn of_file(file: *const c_char) -> Option<&'static Libgomp> {
    // The caller's library must go when the program closes it; its libgomp stays.
    // SAFETY: the loader's own name of a loaded library.
    unsafe { loaded::with(file, of_handle) }.flatten()
}

/// The libgomp that `handle` finds, which is added where it is new.
fn of_handle(handle: *mut c_void) -> Option<&'static Libgomp> {
    const KNOWN_NAMES: [&CStr; 4] = [
        c"GOMP_parallel",
        c"GOMP_critical_start",
        c"omp_set_lock",
        c"GOMP_barrier",
    ];
    let function = KNOWN_NAMES
        .iter()
        .map(|name| find(handle, name))
        .find(|function| !function.is_null())?;
    let (base, file) = module_of(function);
    if let Some(gomp) = loaded_at(base, any()) {
        return Some(gomp);
    }
    keep_loaded(file);
    let llvm = find(handle, c"__kmpc_fork_call");
    // GCC's runtime finds a tool itself once it has OMPT; so do LLVM's and Intel's.
    let has_ompt =
        !llvm.is_null() && module_of(llvm).0 == base || release::looks_for_tools(function);
    let gomp = Box::new(Libgomp::with_functions(base, has_ompt, handle));
    Some(add(gomp))
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
            if let Some(other) = loaded_at((*gomp).base, known) {
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

/// Keeps the library in `file`, which is loaded, until the process ends: its functions are known by their addresses.
fn keep_loaded(file: *const c_char) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the loader's own name of a loaded library.
    let handle = unsafe { libc::dlopen(file, flags) };
    if !handle.is_null() {
        // SAFETY: the handle from above; the library stays all the same.
        unsafe { unload::close(handle) };
    }
}

/// The function `name` as `handle` finds it, unless it is this library's own.
fn find(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: `RTLD_NEXT` or a handle of `dlopen`, and a string.
    let function = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if !function.is_null() && module_of(function).0 == own_base() {
        return ptr::null_mut();
    }
    function
}

/// Where the module that `address` lies in is loaded, and its file; 0 and NULL where it lies in none.
fn module_of(address: *const c_void) -> (usize, *const c_char) {
    // SAFETY: all zeros is a value of this structure.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    match unsafe { libc::dladdr(address, &raw mut info) } {
        0 => (0, ptr::null()),
        _ => (info.dli_fbase as usize, info.dli_fname),
    }
}

/// Where this library is loaded.
fn own_base() -> usize {
    static BASE: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: whoever finds 0 finds out by itself.
    match BASE.load(Ordering::Relaxed) {
        0 => {
            let base = module_of(own_base as *const c_void).0;
            BASE.store(base, Ordering::Relaxed);
            base
        }
        base => base,
    }
}

/// Ends the program: it called `name`, which its libgomp does not define.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    eprintln!("libomptgomp: the program calls {name}, and its libgomp does not define it");
    std::process::abort();
}
