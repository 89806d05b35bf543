//! Mutual exclusion: critical, atomic and ordered regions, locks (OpenMP 5.2, 15.2, 15.8.4, 15.10, 18.9; 19.5.2.14 to
//! 19.5.2.16).

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use ompt_sys::*;

use crate::entries::call::Call;
use crate::model::thread;
use crate::model::thread::Thread;
use crate::tool::entry_points::MUTEX_IMPLEMENTATION;

/// No hint (OpenMP 5.2, 15.1).
const NO_HINT: c_uint = 0;

impl Thread {
    #[inline(always)]
    fn begin_acquire(
        &self,
        kind: ompt_mutex_t,
        wait_id: ompt_wait_id_t,
        state: ompt_state_t,
        code: *const c_void,
    ) {
        report!(
            ompt_callback_mutex_acquire as ompt_callback_mutex_acquire_t,
            kind,
            NO_HINT,
            MUTEX_IMPLEMENTATION,
            wait_id,
            code
        );
        self.wait_id.set(wait_id);
        self.state.set(state);
    }

    /// The thread stops waiting.
    #[inline(always)]
    fn end_acquire(&self) {
        self.state.set(self.team().working());
        self.wait_id.set(ompt_wait_id_none);
    }

    #[inline(always)]
    fn acquired(&self, kind: ompt_mutex_t, wait_id: ompt_wait_id_t, code: *const c_void) {
        self.end_acquire();
        report!(ompt_callback_mutex_acquired as ompt_callback_mutex_t, kind, wait_id, code);
    }

    /// The thread has acquired a nestable lock, which it now holds `depth` times.
    fn acquired_nestable(
        &self,
        kind: ompt_mutex_t,
        wait_id: ompt_wait_id_t,
        depth: c_int,
        code: *const c_void,
    ) {
        if depth <= 1 {
            self.acquired(kind, wait_id, code);
        } else {
            self.end_acquire();
            report!(ompt_callback_nest_lock as ompt_callback_nest_lock_t, ompt_scope_begin, wait_id, code);
        }
    }
}

/// Reports a release, unless the thread is not registered: then it has acquired nothing that a tool knows.
#[inline(always)]
fn report_released(kind: ompt_mutex_t, wait_id: ompt_wait_id_t, code: *const c_void) {
    if thread::existing().is_none() {
        return;
    }
    report!(ompt_callback_mutex_released as ompt_callback_mutex_t, kind, wait_id, code);
}

/// A variable whose address identifies the mutex of unnamed critical regions, which has no address in the program.
static UNNAMED_CRITICAL: u8 = 0;
/// Like [`UNNAMED_CRITICAL`], with an address of its own.
static ATOMIC: u16 = 0;

fn unnamed_critical(_: &Thread) -> ompt_wait_id_t {
    &raw const UNNAMED_CRITICAL as ompt_wait_id_t
}

fn atomic(_: &Thread) -> ompt_wait_id_t {
    &raw const ATOMIC as ompt_wait_id_t
}

/// Ordered regions exclude each other within a team only.
fn ordered(thread: &Thread) -> ompt_wait_id_t {
    ptr::from_ref(thread.team()) as ompt_wait_id_t
}

/// `START, END(arguments): kind, state, wait id`.
macro_rules! regions {
    ($($start:ident, $end:ident: $kind:ident, $state:ident, $wait_id:ident;)*) => {$(
        entry! {
            fn $start(), call => {
                let real = real!(call.gomp, $start);
                let Some(thread) = call.observed() else {
                    // SAFETY: the program's own call.
                    return unsafe { real() };
                };
                let wait_id = $wait_id(thread);
                thread.begin_acquire($kind, wait_id, $state, call.code);
                // SAFETY: the program's own call.
                unsafe { real() };
                thread.acquired($kind, wait_id, call.code);
            }
        }
        entry! {
            fn $end(), call => {
                // SAFETY: the program's own call.
                unsafe { real!(call.gomp, $end)() };
                if let Some(thread) = call.observed() {
                    report_released($kind, $wait_id(thread), call.code);
                }
            }
        }
    )*};
}

regions! {
    GOMP_critical_start, GOMP_critical_end: ompt_mutex_critical, ompt_state_wait_critical, unnamed_critical;
    GOMP_atomic_start, GOMP_atomic_end: ompt_mutex_atomic, ompt_state_wait_atomic, atomic;
    GOMP_ordered_start, GOMP_ordered_end: ompt_mutex_ordered, ompt_state_wait_ordered, ordered;
}

entry! {
    // `name` is the address of a word that the program has for each name of a critical region.
    fn GOMP_critical_name_start(name: *mut *mut c_void), call => {
        let real = real!(call.gomp, GOMP_critical_name_start);
        let Some(thread) = call.observed() else {
            // SAFETY: the program's own call.
            return unsafe { real(name) };
        };
        thread.begin_acquire(ompt_mutex_critical, name as ompt_wait_id_t, ompt_state_wait_critical, call.code);
        // SAFETY: the program's own call.
        unsafe { real(name) };
        thread.acquired(ompt_mutex_critical, name as ompt_wait_id_t, call.code);
    }
}

entry! {
    fn GOMP_critical_name_end(name: *mut *mut c_void), call => {
        // SAFETY: the program's own call.
        unsafe { real!(call.gomp, GOMP_critical_name_end)(name) };
        if call.is_active() {
            report_released(ompt_mutex_critical, name as ompt_wait_id_t, call.code);
        }
    }
}

fn report_init(call: &Call, kind: ompt_mutex_t, lock: *mut c_void) {
    if call.observed().is_some() {
        report!(
            ompt_callback_lock_init as ompt_callback_mutex_acquire_t,
            kind,
            NO_HINT,
            MUTEX_IMPLEMENTATION,
            lock as ompt_wait_id_t,
            call.code
        );
    }
}

fn report_destroy(call: &Call, kind: ompt_mutex_t, lock: *mut c_void) {
    if call.observed().is_some() {
        report!(ompt_callback_lock_destroy as ompt_callback_mutex_t, kind, lock as ompt_wait_id_t, call.code);
    }
}

/// How often a nestable lock is held: libgomp's lock is `{ int lock, count; void *owner; }`, or `{ int owner, count; }`
/// for OpenMP 2.5 programs.
///
/// # Safety
/// `lock` is a nestable lock that the calling thread holds.
unsafe fn nesting_depth(lock: *const c_void) -> c_int {
    // SAFETY: by the caller's promise; only the owner writes the count.
    unsafe { lock.cast::<c_int>().add(1).read() }
}

/// The lock routines for C or for Fortran, for which libgomp has separate functions.
macro_rules! locks {
    (
        $init:ident, $destroy:ident, $set:ident, $unset:ident, $test:ident,
        $init_nest:ident, $destroy_nest:ident, $set_nest:ident, $unset_nest:ident, $test_nest:ident
    ) => {
        entry_of_openmp! {
            fn $init(lock: *mut c_void), call => {
                // SAFETY: the program's own call; likewise below.
                unsafe { real!(call.gomp, $init)(lock) };
                report_init(&call, ompt_mutex_lock, lock);
            }
        }
        entry_of_openmp! {
            fn $init_nest(lock: *mut c_void), call => {
                // SAFETY: as above.
                unsafe { real!(call.gomp, $init_nest)(lock) };
                report_init(&call, ompt_mutex_nest_lock, lock);
            }
        }
        entry_of_openmp! {
            fn $destroy(lock: *mut c_void), call => {
                // SAFETY: as above.
                unsafe { real!(call.gomp, $destroy)(lock) };
                report_destroy(&call, ompt_mutex_lock, lock);
            }
        }
        entry_of_openmp! {
            fn $destroy_nest(lock: *mut c_void), call => {
                // SAFETY: as above.
                unsafe { real!(call.gomp, $destroy_nest)(lock) };
                report_destroy(&call, ompt_mutex_nest_lock, lock);
            }
        }
        entry_of_openmp! {
            fn $set(lock: *mut c_void), call => {
                let real = real!(call.gomp, $set);
                let Some(thread) = call.observed() else {
                    // SAFETY: as above.
                    return unsafe { real(lock) };
                };
                thread.begin_acquire(ompt_mutex_lock, lock as ompt_wait_id_t, ompt_state_wait_lock, call.code);
                // SAFETY: as above.
                unsafe { real(lock) };
                thread.acquired(ompt_mutex_lock, lock as ompt_wait_id_t, call.code);
            }
        }
        entry_of_openmp! {
            fn $unset(lock: *mut c_void), call => {
                // SAFETY: as above.
                unsafe { real!(call.gomp, $unset)(lock) };
                if call.is_active() {
                    report_released(ompt_mutex_lock, lock as ompt_wait_id_t, call.code);
                }
            }
        }
        entry_of_openmp! {
            fn $test(lock: *mut c_void) -> c_int, call => {
                let real = real!(call.gomp, $test);
                let Some(thread) = call.observed() else {
                    // SAFETY: as above.
                    return unsafe { real(lock) };
                };
                thread.begin_acquire(ompt_mutex_test_lock, lock as ompt_wait_id_t, ompt_state_wait_lock, call.code);
                // SAFETY: as above.
                let has_it = unsafe { real(lock) };
                if has_it != 0 {
                    thread.acquired(ompt_mutex_test_lock, lock as ompt_wait_id_t, call.code);
                } else {
                    thread.end_acquire();
                }
                has_it
            }
        }
        entry_of_openmp! {
            fn $set_nest(lock: *mut c_void), call => {
                let real = real!(call.gomp, $set_nest);
                let Some(thread) = call.observed() else {
                    // SAFETY: as above.
                    return unsafe { real(lock) };
                };
                thread.begin_acquire(ompt_mutex_nest_lock, lock as ompt_wait_id_t, ompt_state_wait_lock, call.code);
                // SAFETY: as above; the thread holds the lock after the call.
                let depth = unsafe {
                    real(lock);
                    nesting_depth(lock)
                };
                thread.acquired_nestable(ompt_mutex_nest_lock, lock as ompt_wait_id_t, depth, call.code);
            }
        }
        entry_of_openmp! {
            fn $test_nest(lock: *mut c_void) -> c_int, call => {
                let real = real!(call.gomp, $test_nest);
                let Some(thread) = call.observed() else {
                    // SAFETY: as above.
                    return unsafe { real(lock) };
                };
                thread.begin_acquire(ompt_mutex_test_nest_lock, lock as ompt_wait_id_t, ompt_state_wait_lock, call.code);
                // SAFETY: as above.
                let depth = unsafe { real(lock) };
                if depth != 0 {
                    thread.acquired_nestable(ompt_mutex_test_nest_lock, lock as ompt_wait_id_t, depth, call.code);
                } else {
                    thread.end_acquire();
                }
                depth
            }
        }
        entry_of_openmp! {
            fn $unset_nest(lock: *mut c_void), call => {
                let real = real!(call.gomp, $unset_nest);
                if !call.is_active() {
                    // SAFETY: as above.
                    return unsafe { real(lock) };
                }
                // SAFETY: as above; the thread holds the lock before the call.
                let depth = unsafe {
                    let depth = nesting_depth(lock);
                    real(lock);
                    depth
                };
                if depth <= 1 {
                    report_released(ompt_mutex_nest_lock, lock as ompt_wait_id_t, call.code);
                } else {
                    report!(ompt_callback_nest_lock as ompt_callback_nest_lock_t, ompt_scope_end, lock as ompt_wait_id_t, call.code);
                }
            }
        }
    };
}

locks! {
    omp_init_lock, omp_destroy_lock, omp_set_lock, omp_unset_lock, omp_test_lock,
    omp_init_nest_lock, omp_destroy_nest_lock, omp_set_nest_lock, omp_unset_nest_lock, omp_test_nest_lock
}

locks! {
    omp_init_lock_, omp_destroy_lock_, omp_set_lock_, omp_unset_lock_, omp_test_lock_,
    omp_init_nest_lock_, omp_destroy_nest_lock_, omp_set_nest_lock_, omp_unset_nest_lock_, omp_test_nest_lock_
}
