//! The functions that set internal control variables (OpenMP 5.2, 18.2.1 to 18.2.15).
//!
//! They cause no events. But such a call may be the program's first use of OpenMP. The adapter then searches for the
//! tool and registers the calling thread, as LLVM's runtime does. A tool within the program may query its thread's data
//! from then on.

use core::ffi::c_int;

/// Functions that only pass on their arguments.
macro_rules! setters {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        entry_of_openmp! {
            fn $name($($argument: $type),*), call => {
                call.observed();
                // SAFETY: the program's own call.
                unsafe { real!(call.gomp, $name)($($argument),*) }
            }
        }
    )*};
}

// Fortran passes addresses: of default integers, or of eight-byte integers for names that end with `_8_`.
setters! {
    omp_set_num_threads(threads: c_int);
    omp_set_num_threads_(threads: *const i32);
    omp_set_num_threads_8_(threads: *const i64);
    omp_set_dynamic(is_dynamic: c_int);
    omp_set_dynamic_(is_dynamic: *const i32);
    omp_set_dynamic_8_(is_dynamic: *const i64);
    omp_set_nested(is_nested: c_int);
    omp_set_nested_(is_nested: *const i32);
    omp_set_nested_8_(is_nested: *const i64);
    omp_set_max_active_levels(levels: c_int);
    omp_set_max_active_levels_(levels: *const i32);
    omp_set_max_active_levels_8_(levels: *const i64);
    omp_set_schedule(kind: c_int, chunk: c_int);
    omp_set_schedule_(kind: *const i32, chunk: *const i32);
    omp_set_schedule_8_(kind: *const i32, chunk: *const i64);
}
