//! Rust types spelled in C, so that a C compiler can compare them with a header.

use core::ffi::{c_char, c_int, c_uint, c_void};

use ompt_sys::*;

/// A type that also exists in C.
pub(crate) trait CType {
    /// The type's name in C, such that `NAME *` is a pointer to it.
    fn c_type() -> String;
}

/// The C name of the type of the field that `_field` projects to.
pub(crate) fn c_type_of_field<Structure, Field: CType>(
    _field: fn(*const Structure) -> *const Field,
) -> String {
    Field::c_type()
}

macro_rules! spelled {
    ($($rust:ty => $c:expr),* $(,)?) => {$(
        impl CType for $rust {
            fn c_type() -> String {
                $c.into()
            }
        }
    )*};
}

macro_rules! spelled_alike {
    ($($name:ident),* $(,)?) => { spelled! { $($name => stringify!($name)),* } };
}

spelled! {
    () => "void",
    c_char => "char",
    c_int => "int",
    c_uint => "unsigned int",
    c_void => "void",
    f64 => "double",
    i64 => "int64_t",
    u64 => "uint64_t",
    usize => "size_t",
}

spelled_alike! {
    ompt_any_record_ompt_t, ompt_callbacks_t, ompt_data_t, ompt_dependence_t, ompt_dependence_type_t,
    ompt_dispatch_t, ompt_frame_t, ompt_mutex_t, ompt_record_abstract_t, ompt_record_native_t,
    ompt_record_ompt_t, ompt_record_t, ompt_scope_endpoint_t, ompt_set_result_t, ompt_severity_t,
    ompt_start_tool_result_t, ompt_sync_region_t, ompt_target_data_op_t, ompt_target_t,
    ompt_task_status_t, ompt_thread_t, ompt_work_t, ompt_record_cancel_t,
    ompt_record_control_tool_t, ompt_record_dependences_t, ompt_record_dispatch_t,
    ompt_record_error_t, ompt_record_flush_t, ompt_record_implicit_task_t, ompt_record_masked_t,
    ompt_record_mutex_acquire_t, ompt_record_mutex_t, ompt_record_nest_lock_t,
    ompt_record_parallel_begin_t, ompt_record_parallel_end_t, ompt_record_sync_region_t,
    ompt_record_target_data_op_t, ompt_record_target_kernel_t, ompt_record_target_map_t,
    ompt_record_target_t, ompt_record_task_create_t, ompt_record_task_dependence_t,
    ompt_record_task_schedule_t, ompt_record_thread_begin_t, ompt_record_work_t,
}

impl<T: CType> CType for *const T {
    fn c_type() -> String {
        format!("const {} *", T::c_type())
    }
}

impl<T: CType> CType for *mut T {
    fn c_type() -> String {
        format!("{} *", T::c_type())
    }
}

/// A pointer to a function that may be NULL, which C does not distinguish from one that may not.
impl<F: CType> CType for Option<F> {
    fn c_type() -> String {
        F::c_type()
    }
}

macro_rules! function {
    ($($argument:ident)*) => {
        impl<R: CType $(, $argument: CType)*> CType for unsafe extern "C" fn($($argument),*) -> R {
            fn c_type() -> String {
                let arguments: &[String] = &[$($argument::c_type()),*];
                let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
                // `__typeof__` turns the declarator into a name to which `*` can be appended.
                format!("__typeof__({} (*)({arguments}))", R::c_type())
            }
        }
    };
}

function! {}
function! { A }
function! { A B }
function! { A B C }
function! { A B C D }
function! { A B C D E }
function! { A B C D E F }
function! { A B C D E F G }
function! { A B C D E F G H }
function! { A B C D E F G H I }
function! { A B C D E F G H I J K }
