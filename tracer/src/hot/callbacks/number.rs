//! The callbacks' numbers by the rows' names.

macro_rules! numbers {
        ($($name:ident = $constant:ident),* $(,)?) => {
            $(pub(super) use ompt_sys::$constant as $name;)*
        };
    }
numbers! {
    thread_begin = ompt_callback_thread_begin, thread_end = ompt_callback_thread_end,
    parallel_begin = ompt_callback_parallel_begin, parallel_end = ompt_callback_parallel_end,
    task_create = ompt_callback_task_create, task_schedule = ompt_callback_task_schedule,
    implicit_task = ompt_callback_implicit_task, target = ompt_callback_target,
    target_data_op = ompt_callback_target_data_op, target_submit = ompt_callback_target_submit,
    control_tool = ompt_callback_control_tool, device_initialize = ompt_callback_device_initialize,
    device_finalize = ompt_callback_device_finalize, device_load = ompt_callback_device_load,
    device_unload = ompt_callback_device_unload, sync_region_wait = ompt_callback_sync_region_wait,
    mutex_released = ompt_callback_mutex_released, dependences = ompt_callback_dependences,
    task_dependence = ompt_callback_task_dependence, work = ompt_callback_work,
    masked = ompt_callback_masked, target_map = ompt_callback_target_map,
    sync_region = ompt_callback_sync_region, lock_init = ompt_callback_lock_init,
    lock_destroy = ompt_callback_lock_destroy, mutex_acquire = ompt_callback_mutex_acquire,
    mutex_acquired = ompt_callback_mutex_acquired, nest_lock = ompt_callback_nest_lock,
    flush = ompt_callback_flush, cancel = ompt_callback_cancel, reduction = ompt_callback_reduction,
    dispatch = ompt_callback_dispatch, target_emi = ompt_callback_target_emi,
    target_data_op_emi = ompt_callback_target_data_op_emi,
    target_submit_emi = ompt_callback_target_submit_emi, target_map_emi = ompt_callback_target_map_emi,
    error = ompt_callback_error,
}
