//! The callback table: **one row per callback of the interface** defines what is registered and which event records it.
//!
//! A row becomes an `extern "C"` function. For a compact event, the function first tries the hot path. If that fails,
//! it tail-calls another function with the same arguments, so that the hot path saves no registers.
//!
//! * `hot` rows usually have predicted arguments only. They have one function for mispredictions, and a cold one.
//! * `warm` rows usually have mispredicted arguments. They have only a cold function in addition.
//! * Wide events are always cold.
//!
//! A panic does not leave the function: it turns tracing off.
//!
//! Arguments are recorded as passed by the runtime.
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | the rows, and the callbacks that need more than a row |
//! | [`expand`] | the macro that makes a function of a row |
//! | [`arguments`] | arguments as an event stores them |
//! | [`mod@control_tool`] | `omp_control_tool` |

mod arguments;
pub(crate) mod control_tool;
mod expand;

pub use crate::recorder::callback::Callback;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;

use ompt_sys::*;
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Register};
use omptrace_trace_format::predict::State;

use crate::devices::{self, Asked};
use crate::recorder::guarded::guarded;
use crate::recorder::recorder::Mode;
use crate::recorder::this_thread;
use crate::runtime_faults::join_barrier;
use crate::runtime_faults::lock_after_exit;
use crate::runtime_faults::undeferred_dependences;
use crate::session::cold_path;
pub(crate) use arguments::dependences_of;
use arguments::{Addresses, Code, Data, Frame, Memory};
use arguments::{address, chunk, frame, id, message_of, new_id, numbers, set, set_id, text};
use expand::callbacks;

callbacks! {
    thread: own thread_begin;
    thread: own thread_end;
    parallel: hot parallel_begin(encountering_task_data: Data, encountering_task_frame: Frame, parallel_data: Data,
        requested_parallelism: c_uint, flags: c_int, codeptr_ra: Code) |state| {
        let frame = frame(encountering_task_frame);
        ParallelBegin {
            encountering_task_data: id(encountering_task_data),
            exit_frame: frame.0, enter_frame: frame.1, exit_frame_flags: frame.2, enter_frame_flags: frame.3,
            parallel_data: new_id(state, parallel_data),
            requested_parallelism,
            flags: ompt_parallel_flag_t(flags as u32),
            codeptr_ra: address(codeptr_ra),
        }
    };
    parallel: hot parallel_end(parallel_data: Data, encountering_task_data: Data, flags: c_int, codeptr_ra: Code) |state|
        ParallelEnd {
            parallel_data: id(parallel_data),
            encountering_task_data: id(encountering_task_data),
            flags: ompt_parallel_flag_t(flags as u32),
            codeptr_ra: address(codeptr_ra),
        };
    task: own task_create;
    task: own task_schedule;
    parallel: own implicit_task;
    target: cold target(kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: c_int, task_data: Data,
        target_id: u64, codeptr_ra: Code) |stream|
        Target {
            kind, endpoint, device_num,
            task_data: id(task_data),
            target_id: Address(target_id),
            codeptr_ra: address(codeptr_ra),
        };
    // Declared with 64-bit registers, and with one argument more than in the specification: see `TargetDataOp`. If
    // there is no tenth argument, a meaningless word of the caller's stack is read.
    target: registers target_data_op(target_id: u64, host_op_id: u64, optype: u64, src_addr: u64, src_device_num: u64,
        dest_addr: u64, dest_device_num: u64, bytes: u64, codeptr_ra: u64, tenth: u64) |stream|
        TargetDataOp {
            target_id: Address(target_id),
            host_op_id: Address(host_op_id),
            optype: Register::new(optype),
            src_addr: Address(src_addr),
            src_device_num: Register::new(src_device_num),
            dest_addr: Address(dest_addr),
            dest_device_num: Register::new(dest_device_num),
            bytes,
            codeptr_ra: Address(codeptr_ra),
            tenth_argument: Address(tenth),
        };
    target: cold target_submit(target_id: u64, host_op_id: u64, requested_num_teams: c_uint) |stream|
        TargetSubmit { target_id: Address(target_id), host_op_id: Address(host_op_id), requested_num_teams };
    tool: own control_tool;
    device: own device_initialize;
    device: own device_finalize;
    device: own device_load;
    device: cold device_unload(device_num: c_int, module_id: u64) |stream| DeviceUnload { device_num, module_id };
    sync: hot sync_region_wait(kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, parallel_data: Data,
        task_data: Data, codeptr_ra: Code) |state|
        SyncRegionWait {
            endpoint, kind,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            codeptr_ra: address(codeptr_ra),
        };
    mutex: hot mutex_released(kind: ompt_mutex_t, wait_id: u64, codeptr_ra: Code) |state|
        MutexReleased { kind, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    task: own dependences;
    task: hot task_dependence(src_task_data: Data, sink_task_data: Data) |state|
        TaskDependence { src_task_data: id(src_task_data), sink_task_data: id(sink_task_data) };
    work: hot work(work_type: ompt_work_t, endpoint: ompt_scope_endpoint_t, parallel_data: Data, task_data: Data,
        count: u64, codeptr_ra: Code) |state|
        Work {
            endpoint, work_type,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            count,
            codeptr_ra: address(codeptr_ra),
        };
    work: hot masked(endpoint: ompt_scope_endpoint_t, parallel_data: Data, task_data: Data, codeptr_ra: Code) |state|
        Masked {
            endpoint,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            codeptr_ra: address(codeptr_ra),
        };
    target: cold target_map(target_id: u64, nitems: c_uint, host_addr: Addresses, device_addr: Addresses, bytes: *mut usize,
        mapping_flags: *mut c_uint, codeptr_ra: Code) |stream|
        TargetMap {
            target_id: Address(target_id),
            nitems,
            host_addr: numbers(host_addr.cast::<u64>(), nitems),
            device_addr: numbers(device_addr.cast::<u64>(), nitems),
            bytes: numbers(bytes, nitems),
            mapping_flags: numbers(mapping_flags, nitems),
            codeptr_ra: address(codeptr_ra),
        };
    sync: hot sync_region(kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, parallel_data: Data,
        task_data: Data, codeptr_ra: Code) |state|
        SyncRegion {
            endpoint, kind,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            codeptr_ra: address(codeptr_ra),
        };
    mutex: hot lock_init(kind: ompt_mutex_t, hint: c_uint, r#impl: c_uint, wait_id: u64, codeptr_ra: Code) |state|
        LockInit { kind, hint, r#impl, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    mutex: hot lock_destroy(kind: ompt_mutex_t, wait_id: u64, codeptr_ra: Code) |state|
        LockDestroy { kind, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    mutex: hot mutex_acquire(kind: ompt_mutex_t, hint: c_uint, r#impl: c_uint, wait_id: u64, codeptr_ra: Code) |state|
        MutexAcquire { kind, hint, r#impl, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    mutex: hot mutex_acquired(kind: ompt_mutex_t, wait_id: u64, codeptr_ra: Code) |state|
        MutexAcquired { kind, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    mutex: hot nest_lock(endpoint: ompt_scope_endpoint_t, wait_id: u64, codeptr_ra: Code) |state|
        NestLock { endpoint, wait_id: Address(wait_id), codeptr_ra: address(codeptr_ra) };
    flush: hot flush(thread_data: Data, codeptr_ra: Code) |state|
        Flush { thread_data: id(thread_data), codeptr_ra: address(codeptr_ra) };
    cancel: hot cancel(task_data: Data, flags: c_int, codeptr_ra: Code) |state|
        Cancel {
            task_data: id(task_data),
            flags: ompt_cancel_flag_t(flags as u32),
            codeptr_ra: address(codeptr_ra),
        };
    sync: hot reduction(kind: ompt_sync_region_t, endpoint: ompt_scope_endpoint_t, parallel_data: Data,
        task_data: Data, codeptr_ra: Code) |state|
        Reduction {
            endpoint, kind,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            codeptr_ra: address(codeptr_ra),
        };
    work: warm dispatch(parallel_data: Data, task_data: Data, kind: ompt_dispatch_t, instance: ompt_data_t) |state| {
        let (start, iterations) = chunk(kind, instance);
        Dispatch {
            kind,
            parallel_data: id(parallel_data),
            task_data: id(task_data),
            instance: Address(instance.value),
            start,
            iterations,
        }
    };
    target: own target_emi;
    target: own target_data_op_emi;
    target: own target_submit_emi;
    target: cold target_map_emi(target_data: Data, nitems: c_uint, host_addr: Addresses, device_addr: Addresses,
        bytes: *mut usize, mapping_flags: *mut c_uint, codeptr_ra: Code) |stream|
        TargetMapEmi {
            target_data: id(target_data),
            nitems,
            host_addr: numbers(host_addr.cast::<u64>(), nitems),
            device_addr: numbers(device_addr.cast::<u64>(), nitems),
            bytes: numbers(bytes, nitems),
            mapping_flags: numbers(mapping_flags, nitems),
            codeptr_ra: address(codeptr_ra),
        };
    tool: cold error(severity: ompt_severity_t, message: *const c_char, length: usize, codeptr_ra: Code) |stream|
        Error {
            severity,
            message: message_of(message, length),
            length: length as u64,
            codeptr_ra: address(codeptr_ra),
        };
}

/// `thread_begin`: stores the stream's number as the thread's data.
unsafe extern "C" fn thread_begin(thread_type: ompt_thread_t, thread_data: Data) {
    guarded(|| {
        if thread_type == ompt_thread_initial {
            lock_after_exit::initial_thread_begins();
        }
        cold_path::compact(|state: &State| {
            // SAFETY: valid for the thread's life (OpenMP 5.2, 19.5.2.1), or null.
            let thread_data = unsafe {
                set(thread_data, state.next_id >> 40);
                id(thread_data)
            };
            ThreadBegin { thread_type, thread_data }
        });
    });
}

/// `thread_end`: ends the stream.
unsafe extern "C" fn thread_end(thread_data: Data) {
    guarded(|| {
        // SAFETY: valid during the callback, or null.
        cold_path::compact(|_: &State| {
            // SAFETY: valid during the callback, or null.
            let thread_data = unsafe { id(thread_data) };
            ThreadEnd { thread_data }
        });
        lock_after_exit::thread_ends();
        cold_path::leave();
    });
}

// These two callbacks have two rows each, because different arguments can be predicted. The compiler merges both rows
// into one function, in which each branch ends in a tail call.
callbacks! { @ hot task_switch(prior_task_data: Data, prior_task_status: ompt_task_status_t, next_task_data: Data) |state|
    TaskSchedule {
        prior_task_status,
        prior_task_data: id(prior_task_data),
        next_task_data: id(next_task_data),
    };
    first join_barrier::task_is_suspended(prior_task_data)
}
callbacks! { @ hot task_complete(prior_task_data: Data, prior_task_status: ompt_task_status_t, next_task_data: Data) |state|
    TaskComplete {
        prior_task_status,
        prior_task_data: id(prior_task_data),
        next_task_data: id(next_task_data),
    }
}
unsafe extern "C" fn task_schedule(prior: Data, status: ompt_task_status_t, next: Data) {
    // SAFETY: the arguments of this call.
    unsafe {
        if status == ompt_task_complete {
            task_complete(prior, status, next)
        } else {
            task_switch(prior, status, next)
        }
    }
}

callbacks! { @ hot free_task_create(encountering_task_data: Data, encountering_task_frame: Frame, new_task_data: Data,
    flags: c_int, has_dependences: c_int, codeptr_ra: Code) |state| {
    let frame = frame(encountering_task_frame);
    TaskCreate {
        has_dependences: has_dependences as u32,
        encountering_task_data: id(encountering_task_data),
        exit_frame: frame.0, enter_frame: frame.1, exit_frame_flags: frame.2, enter_frame_flags: frame.3,
        new_task_data: new_id(state, new_task_data),
        flags: ompt_task_flag_t(flags as u32),
        codeptr_ra: address(codeptr_ra),
    }
}}
// For a taskwait, the tool keeps the runtime's value as the task's data, and readers handle that. LLVM's runtime has
// only one such word per thread for all taskwaits, including nested ones, and aborts if a tool writes to it.
callbacks! { @ warm dependent_task_create(encountering_task_data: Data, encountering_task_frame: Frame, new_task_data: Data,
    flags: c_int, has_dependences: c_int, codeptr_ra: Code) |state| {
    let frame = frame(encountering_task_frame);
    TaskCreate {
        has_dependences: has_dependences as u32,
        encountering_task_data: id(encountering_task_data),
        exit_frame: frame.0, enter_frame: frame.1, exit_frame_flags: frame.2, enter_frame_flags: frame.3,
        new_task_data: if is_taskwait(flags) { id(new_task_data) } else { new_id(state, new_task_data) },
        flags: ompt_task_flag_t(flags as u32),
        codeptr_ra: address(codeptr_ra),
    }
}}
pub(crate) unsafe extern "C" fn task_create(
    encountering_task_data: Data,
    encountering_task_frame: Frame,
    new_task_data: Data,
    flags: c_int,
    has_dependences: c_int,
    codeptr_ra: Code,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        if has_dependences == 0 && !is_taskwait(flags) {
            free_task_create(
                encountering_task_data,
                encountering_task_frame,
                new_task_data,
                flags,
                has_dependences,
                codeptr_ra,
            );
        } else {
            dependent_task_create(
                encountering_task_data,
                encountering_task_frame,
                new_task_data,
                flags,
                has_dependences,
                codeptr_ra,
            );
            guarded(|| undeferred_dependences::task_is_created(is_taskwait(flags)));
        }
    }
}

/// Whether the task is that of a `taskwait` with dependences, or of an undeferred task that waits for its dependences.
fn is_taskwait(flags: c_int) -> bool {
    ompt_task_flag_t(flags as u32).contains(ompt_task_taskwait)
}

callbacks! { @ cold dependences(task_data: Data, deps: *const ompt_dependence_t, ndeps: c_int) |stream|
    Dependences { task_data: id(task_data), deps: dependences_of(deps, ndeps).into(), ndeps };
    around |record| {
        let recorder = this_thread::recorder_if_near();
        // SAFETY: the arguments of this call.
        let row = unsafe { Dependences { task_data: id(task_data), deps: dependences_of(deps, ndeps).into(), ndeps } };
        if recorder.try_put_wide(&row) {
            recorder.stream.collecting.end();
        } else {
            record();
            this_thread::recorder().stream.collecting.end();
        }
    }
}

callbacks! { @ hot implicit_task_begin(endpoint: ompt_scope_endpoint_t, parallel_data: Data, task_data: Data,
    actual_parallelism: c_uint, index: c_uint, flags: c_int) |state|
    ImplicitTaskBegin {
        endpoint,
        parallel_data: id(parallel_data),
        task_data: new_id(state, task_data),
        actual_parallelism,
        index,
        flags: ompt_task_flag_t(flags as u32),
    }
}
callbacks! { @ hot implicit_task_end(endpoint: ompt_scope_endpoint_t, parallel_data: Data, task_data: Data,
    actual_parallelism: c_uint, index: c_uint, flags: c_int) |state|
    ImplicitTaskEnd {
        endpoint,
        parallel_data: id(parallel_data),
        task_data: id(task_data),
        actual_parallelism,
        index,
        flags: ompt_task_flag_t(flags as u32),
    }
}
pub(crate) unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: Data,
    task_data: Data,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    if ompt_task_flag_t(flags as u32).contains(ompt_task_initial) {
        // SAFETY: the arguments of this call.
        return unsafe {
            initial_task(endpoint, parallel_data, task_data, actual_parallelism, index, flags);
        };
    }
    // SAFETY: the arguments of this call.
    unsafe {
        if endpoint == ompt_scope_begin {
            implicit_task_begin(endpoint, parallel_data, task_data, actual_parallelism, index, flags);
        } else {
            implicit_task_end(endpoint, parallel_data, task_data, actual_parallelism, index, flags);
        }
    }
}

/// [`implicit_task`] for an initial task: at its end, the pointers may be invalid.
#[inline(never)]
unsafe extern "C" fn initial_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: Data,
    task_data: Data,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let begins = endpoint == ompt_scope_begin;
    let [region, task] = match begins {
        true => [parallel_data, task_data],
        false => this_thread::recorder().stream.initial.at_end(parallel_data, task_data),
    };
    let record = match begins {
        true => implicit_task_begin,
        false => implicit_task_end,
    };
    // SAFETY: the arguments of this call, or the pointers of the begin event.
    unsafe { record(endpoint, region, task, actual_parallelism, index, flags) };
    let recorder = this_thread::recorder();
    // An idle thread's recorder is shared by many threads.
    if begins && !recorder.is_idle() {
        let initial = &recorder.stream.initial;
        initial.begins(region, task, actual_parallelism, index);
    }
}

// After a device callback is recorded, the tracer acts on it outside of the recording, because it calls into the
// runtime, which may call back, and because it records more events.
callbacks! { @ cold device_initialize(device_num: c_int, device_type: *const c_char, device: *mut c_void,
    lookup: Option<ompt_function_lookup_t>, documentation: *const c_char) |stream|
    DeviceInitialize {
        device_num,
        r#type: text(device_type),
        device: address(device),
        lookup: Address(lookup.map_or(0, |lookup| lookup as usize as u64)),
        documentation: text(documentation),
    };
    around |record| {
        record();
        // SAFETY: the arguments of this call.
        guarded(|| unsafe { devices::initialized(device_num, device_type, device, lookup) });
    }
}

callbacks! { @ cold device_finalize(device_num: c_int) |stream| DeviceFinalize { device_num };
    around |record| {
        // In a child that has not used OpenMP and is ending, the runtime finalizes the parent's devices: this alone
        // should not start a trace of the child.
        if Mode::current() == Mode::Child {
            return;
        }
        guarded(|| devices::finalized(device_num));
        record();
    }
}

callbacks! { @ cold device_load(device_num: c_int, filename: *const c_char, offset_in_file: i64,
    vma_in_file: Memory, bytes: usize, host_addr: Memory, device_addr: Memory, module_id: u64) |stream|
    DeviceLoad {
        device_num,
        filename: text(filename),
        offset_in_file,
        vma_in_file: address(vma_in_file),
        bytes: bytes as u64,
        host_addr: address(host_addr),
        device_addr: address(device_addr),
        module_id,
    };
    around |record| {
        record();
        guarded(|| devices::loaded(device_num, module_id, address(host_addr).0, bytes as u64));
    }
}

// Operations, too, are announced to device tracers outside of the recording, and threads are held there. Only flushing
// devices that are out of buffers happens within it.
callbacks! { @ cold target_emi(kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: c_int, task_data: Data,
    target_task_data: Data, target_data: Data, codeptr_ra: Code) |stream| {
        devices::flush_where_needed();
        if endpoint != ompt_scope_end {
            set_id(stream, target_data.cast());
        }
        TargetEmi {
            kind, endpoint, device_num,
            task_data: id(task_data),
            target_task_data: id(target_task_data),
            target_data: id(target_data),
            codeptr_ra: address(codeptr_ra),
        }
    };
    around |record| {
        if endpoint == ompt_scope_end {
            guarded(devices::region_ends);
        }
        record();
        if endpoint == ompt_scope_begin {
            // SAFETY: the runtime passes null, or the region's data.
            let target_id = unsafe { id(target_data) };
            guarded(|| devices::region_begins(device_num, target_id.known()));
        }
        devices::hold_region(endpoint);
    }
}

callbacks! { @ cold target_data_op_emi(endpoint: ompt_scope_endpoint_t, target_task_data: Data, target_data: Data,
    host_op_id: *mut ompt_id_t, optype: ompt_target_data_op_t, src_addr: Memory, src_device_num: c_int,
    dest_addr: Memory, dest_device_num: c_int, bytes: usize, codeptr_ra: Code) |stream| {
        if endpoint != ompt_scope_end {
            set_id(stream, host_op_id);
        }
        TargetDataOpEmi {
            endpoint,
            target_task_data: id(target_task_data),
            target_data: id(target_data),
            host_op_id: id(host_op_id.cast()),
            optype,
            src_addr: address(src_addr),
            src_device_num,
            dest_addr: address(dest_addr),
            dest_device_num,
            bytes: bytes as u64,
            codeptr_ra: address(codeptr_ra),
        }
    };
    around |record| {
        let asked = Asked::DataOp(optype, [src_device_num, dest_device_num]);
        // SAFETY: the runtime passes null, or a place for the id.
        unsafe { operation(endpoint, host_op_id, asked, record) }
    }
}

callbacks! { @ cold target_submit_emi(endpoint: ompt_scope_endpoint_t, target_data: Data, host_op_id: *mut ompt_id_t,
    requested_num_teams: c_uint) |stream| {
        if endpoint != ompt_scope_end {
            set_id(stream, host_op_id);
        }
        TargetSubmitEmi {
            endpoint,
            target_data: id(target_data),
            host_op_id: id(host_op_id.cast()),
            requested_num_teams,
        }
    };
    around |record| {
        // SAFETY: as above.
        unsafe { operation(endpoint, host_op_id, Asked::Kernel, record) }
    }
}

/// A callback for an operation that the thread requests from a device. `record` records the event, and assigns
/// `host_op_id` if it is the begin.
///
/// # Safety
/// `host_op_id` is null, or valid for reading during the callback.
unsafe fn operation(
    endpoint: ompt_scope_endpoint_t,
    host_op_id: *mut ompt_id_t,
    asked: Asked,
    record: impl FnOnce(),
) {
    if endpoint == ompt_scope_end {
        guarded(devices::ends);
    }
    record();
    // SAFETY: by this function's contract.
    let host_op_id = unsafe { host_op_id.as_ref() };
    if let (true, Some(host_op_id)) = (endpoint == ompt_scope_begin, host_op_id) {
        guarded(|| devices::begins(*host_op_id, asked));
    }
    devices::hold_operation(endpoint);
}

/// `control_tool`: the result is returned to the program (OpenMP 5.2, 18.14).
unsafe extern "C" fn control_tool(command: u64, modifier: u64, arg: *mut c_void, codeptr_ra: Code) -> c_int {
    guarded(|| control_tool::control(command, modifier, arg, codeptr_ra)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_callback_once_in_order() {
        let numbers: Vec<u32> = CALLBACKS.iter().map(|callback| callback.number.0).collect();
        let all: Vec<u32> = ompt_callbacks_t::VALUES.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, all);
    }
}
