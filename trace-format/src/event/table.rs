//! The event table, and what each row becomes. A new event is a row here.

use ompt_sys::{
    ompt_callbacks_t, ompt_cancel_flag_t, ompt_dispatch_t, ompt_frame_flag_t, ompt_mutex_t,
    ompt_parallel_flag_t, ompt_record_native_t, ompt_scope_endpoint_t, ompt_severity_t, ompt_state_t,
    ompt_sync_region_t, ompt_target_data_op_t, ompt_target_t, ompt_task_flag_t, ompt_task_status_t,
    ompt_thread_t, ompt_work_t,
};

use super::encoding::{
    ArgumentSchema, CompactRow, DecodeError, ENDPOINT_BITS, EventSchema, FLAG_BITS, FLAG_SHIFT,
    MAX_COMPACT_WORDS, SLOT_SHIFT, SUB_BITS, SUB_SHIFT, TICK_SHIFT, UnknownEvent, WIDE, WideRow,
    argument_name, encode_compact, extra_words, push_group, wide,
};
use crate::event::field::{
    Address, AnnotationKind, AnnotationScope, AnnotationSource, Bytes, CallClass, CallRole, DependenceList,
    Field, Id, MemoryChange, ModuleChange, MonitoringChange, Numbers, ObjectKind, PayloadType, Register,
    SampleClock, Seconds, Stack, StackEnd, Text, Ticks, Value, ValueRole, WaitKind, WideField,
};
use crate::event::predict::*;

events! {
    compact {
        /// A thread begins to run OpenMP code (OpenMP 5.2, 19.5.2.1).
        1 ThreadBegin = 1 "thread_begin" (thread_type: ompt_thread_t) { [thread_data: Id] = Last<Thread> }
        /// A thread ends (19.5.2.2).
        2 ThreadEnd = 2 "thread_end" () { [thread_data: Id] = Last<Thread> }
        /// A parallel or teams region begins (19.5.2.3). The frame arguments are the contents of
        /// `encountering_task_frame`.
        3 ParallelBegin = 3 "parallel_begin" () {
            [encountering_task_data: Id] = Last<(Task, Outer)>,
            [exit_frame: Address] = Here<0>,
            [enter_frame: Address] = Here<1>,
            [exit_frame_flags: ompt_frame_flag_t, enter_frame_flags: ompt_frame_flag_t] = Last<FrameFlags>,
            [parallel_data: Id] = NextId<Parallel>,
            [requested_parallelism: u32, flags: ompt_parallel_flag_t] = Last<Team>,
            [codeptr_ra: Address] = Code,
        }
        /// A parallel or teams region ends (19.5.2.4).
        4 ParallelEnd = 4 "parallel_end" () {
            [parallel_data: Id] = Last<Parallel>,
            [encountering_task_data: Id] = Last<(Outer, Task)>,
            [flags: ompt_parallel_flag_t] = Here<2>,
            [codeptr_ra: Address] = Code,
        }
        /// An explicit, target or initial task is created (19.5.2.7). The frame arguments are the contents of
        /// `encountering_task_frame`.
        5 TaskCreate = 5 "task_create" (has_dependences: u32) {
            [encountering_task_data: Id] = Last<Task>,
            [exit_frame: Address] = Frame<0>,
            [enter_frame: Address] = Frame<1>,
            [exit_frame_flags: ompt_frame_flag_t, enter_frame_flags: ompt_frame_flag_t] = Last<FrameFlags>,
            [new_task_data: Id] = NextId,
            [flags: ompt_task_flag_t] = Last<TaskFlags>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread suspends one task and runs another (19.5.2.10). If the prior task is complete, the event has kind
        /// 41 instead.
        6 TaskSchedule = 6 "task_schedule" (prior_task_status: ompt_task_status_t) {
            [prior_task_data: Id] = Suspend,
            [next_task_data: Id] = Newest<Task>,
        }
        /// `task_schedule` with the status `ompt_task_complete`: the prior task is complete. The task that resumes is
        /// usually the most recently suspended one.
        41 TaskComplete = 6 "task_schedule" (prior_task_status: ompt_task_status_t) {
            [prior_task_data: Id] = Last<Task>,
            [next_task_data: Id] = Resume,
        }
        /// An implicit or initial task begins (19.5.2.11).
        7 ImplicitTaskBegin = 7 "implicit_task" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = NextId<Task>,
            [actual_parallelism: u32, index: u32] = Last<Member>,
            [flags: ompt_task_flag_t] = Last<ImplicitFlags>,
        }
        /// An implicit or initial task ends: `implicit_task` with an endpoint other than `ompt_scope_begin`.
        40 ImplicitTaskEnd = 7 "implicit_task" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Null,
            [task_data: Id] = Last<Task>,
            [actual_parallelism: u32, index: u32] = Last<Member>,
            [flags: ompt_task_flag_t] = Last<ImplicitFlags>,
        }
        /// A thread waits in a synchronisation region (19.5.2.14).
        16 SyncRegionWait = 16 "sync_region_wait" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread releases a lock, or leaves a critical, atomic or ordered region (19.5.2.15).
        17 MutexReleased = 17 "mutex_released" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A dependence that was not yet fulfilled when the dependent task, the sink, was created (19.5.2.9).
        19 TaskDependence = 19 "task_dependence" () {
            [src_task_data: Id] = Last<()>,
            [sink_task_data: Id] = Last<Sink>,
        }
        /// A worksharing, single, taskloop, distribute or scope region (19.5.2.5).
        20 Work = 20 "work" (endpoint: ompt_scope_endpoint_t, work_type: ompt_work_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [count: u64] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A masked region on the thread that executes it (19.5.2.12).
        21 Masked = 21 "masked" (endpoint: ompt_scope_endpoint_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A barrier, taskwait or taskgroup region (19.5.2.13).
        23 SyncRegion = 23 "sync_region" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A lock is initialized (19.5.2.14).
        24 LockInit = 24 "lock_init" (kind: ompt_mutex_t) {
            [hint: u32, r#impl: u32] = Last<Mutex>,
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A lock is destroyed (19.5.2.15).
        25 LockDestroy = 25 "lock_destroy" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread begins to wait for a lock, or for a critical, atomic or ordered region (19.5.2.14).
        26 MutexAcquire = 26 "mutex_acquire" (kind: ompt_mutex_t) {
            [hint: u32, r#impl: u32] = Last<Mutex>,
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread has acquired a lock, or has entered a critical, atomic or ordered region (19.5.2.15).
        27 MutexAcquired = 27 "mutex_acquired" (kind: ompt_mutex_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A nestable lock that the task already owns is set or unset (19.5.2.16).
        28 NestLock = 28 "nest_lock" (endpoint: ompt_scope_endpoint_t) {
            [wait_id: Address] = Here<0>,
            [codeptr_ra: Address] = Code,
        }
        /// A flush region (19.5.2.17), which is recorded only if `--events` requests it.
        29 Flush = 29 "flush" () {
            [thread_data: Id] = Last<Thread>,
            [codeptr_ra: Address] = Code,
        }
        /// A cancellation is activated, is detected, or discards a task (19.5.2.18).
        30 Cancel = 30 "cancel" () {
            [task_data: Id] = Last<Task>,
            [flags: ompt_cancel_flag_t] = Last<CancelFlags>,
            [codeptr_ra: Address] = Code,
        }
        /// A reduction (19.5.2.13).
        31 Reduction = 31 "reduction" (endpoint: ompt_scope_endpoint_t, kind: ompt_sync_region_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [codeptr_ra: Address] = Code,
        }
        /// A thread begins a section or a chunk of iterations (19.5.2.6). For a chunk of a worksharing loop, a taskloop
        /// or a distribute region, the trace contains the chunk's `start` and `iterations` (`ompt_dispatch_chunk_t`),
        /// because `instance` points to memory that the runtime reuses.
        32 Dispatch = 32 "dispatch" (kind: ompt_dispatch_t) {
            [parallel_data: Id] = Last<Parallel>,
            [task_data: Id] = Last<Task>,
            [instance: Address] = Last<Instance>,
            [start: u64] = Last<ChunkStart>,
            [iterations: u64] = Last<ChunkIterations>,
        }
        /// The program calls a function of an interface other than OpenMP. `domain` identifies the interface: 1 stands
        /// for MPI, whose functions are numbered in `adapters/mpi/api`. `object` is the handle of the communicator,
        /// window, file, request or message. `peer` and `tag` are the values that the program passes, except for four
        /// values: -1 stands for any rank or any tag, -2 for `MPI_PROC_NULL`, -3 for `MPI_ROOT`, and -4 means that the
        /// call has no such argument. The buffer of the call contains `count` elements of `datatype`.
        42 CallBegin = 281 "omptrace_call_begin" (class: CallClass) {
            [function: u32, domain: u32] = Here<0>,
            [object: Address] = Here<1>,
            [peer: i32, tag: i32] = Here<2>,
            [count: u64] = Here<3>,
            [datatype: Address] = Here<4>,
            [codeptr_ra: Address] = Code,
        }
        /// The function that was reported by `omptrace_call_begin` returns. `object` is the handle of the request or of
        /// the object that the call created. If the call returned a status, `peer`, `tag` and `bytes` describe the
        /// received message; otherwise, `peer` and `tag` are -4, and `bytes` is 0. A `peer` of -5 means that the
        /// operation was cancelled.
        43 CallEnd = 282 "omptrace_call_end" (class: CallClass) {
            [function: u32, domain: u32] = Here<0>,
            [object: Address] = Last<CallObject>,
            [peer: i32, tag: i32] = Last<CallPeer>,
            [bytes: u64] = Last<CallBytes>,
            [result: i32] = Last<CallResult>,
            [codeptr_ra: Address] = Code,
        }
        /// The program marks the beginning of a range. `domain` and `name` are numbers of texts that
        /// `omptrace_object_defined` defines; 0 stands for no text. `category` is a number chosen by the program.
        /// `colour` is 0xAARRGGBB, or 0 if the program chose no colour. `instance` distinguishes ranges of one domain
        /// that are not nested; for nested ranges, `instance` is 0. `device` is the number by which the annotation
        /// interface identifies the device.
        44 AnnotationBegin = 287 "omptrace_annotation_begin" (kind: AnnotationKind) {
            [domain: u32, name: u32] = Named,
            [source: AnnotationSource, category: u32] = Here<0>,
            [colour: u32, payload_type: PayloadType] = Here<1>,
            [payload: u64] = Here<2>,
            [instance: u64] = Here<3>,
            [device: u32] = Here<4>,
        }
        /// The program marks the end of a range: the thread's innermost range with the same source, domain and instance
        /// or, if there is no such range, a range of the process.
        45 AnnotationEnd = 288 "omptrace_annotation_end" (kind: AnnotationKind) {
            [source: AnnotationSource, domain: u32] = Last<AnnotationDomain>,
            [instance: u64] = Last<AnnotationInstance>,
        }
    }
    wide {
        /// A target region, reported by `ompt_callback_target` and not by `ompt_callback_target_emi` (OpenMP 5.2,
        /// 19.5.2.26).
        Target = 8 "target" {
            kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: i32, task_data: Id,
            target_id: Address, codeptr_ra: Address,
        }
        /// A data operation, reported by `ompt_callback_target_data_op` and not by its `_emi` variant (19.5.2.25). Some
        /// of Intel's runtimes pass an endpoint as an additional first argument. In traces of these runtimes, all
        /// arguments after the endpoint are shifted by one position, and `tenth_argument` contains the last argument.
        /// In traces of other runtimes, `tenth_argument` has no meaning.
        TargetDataOp = 9 "target_data_op" {
            target_id: Address, host_op_id: Address, optype: Register<ompt_target_data_op_t>, src_addr: Address,
            src_device_num: Register<i32>, dest_addr: Address, dest_device_num: Register<i32>, bytes: u64,
            codeptr_ra: Address, tenth_argument: Address,
        }
        /// A kernel is submitted, reported by `ompt_callback_target_submit` and not by its `_emi` variant (19.5.2.28).
        TargetSubmit = 10 "target_submit" { target_id: Address, host_op_id: Address, requested_num_teams: u32 }
        /// The program called `omp_control_tool` (19.5.2.29). For commands 64 and 65, `text` is the string to which
        /// `arg` points.
        ControlTool<'a> = 11 "control_tool" {
            command: u64, modifier: u64, arg: Address, text: Text<'a>, codeptr_ra: Address,
        }
        /// A device is initialized (19.5.2.19).
        DeviceInitialize<'a> = 12 "device_initialize" {
            device_num: i32, r#type: Text<'a>, device: Address, lookup: Address, documentation: Text<'a>,
        }
        /// A device is finalized (19.5.2.20).
        DeviceFinalize = 13 "device_finalize" { device_num: i32 }
        /// Code is loaded onto a device (19.5.2.21).
        DeviceLoad<'a> = 14 "device_load" {
            device_num: i32, filename: Text<'a>, offset_in_file: i64, vma_in_file: Address, bytes: u64,
            host_addr: Address, device_addr: Address, module_id: u64,
        }
        /// Code is unloaded from a device (19.5.2.22).
        DeviceUnload = 15 "device_unload" { device_num: i32, module_id: u64 }
        /// Dependences of a task, or of a doacross iteration (19.5.2.8). `ndeps` is the number of dependences that the
        /// runtime passed, even if `deps` is a null pointer or was truncated to fit into a chunk.
        Dependences<'a> = 18 "dependences" { task_data: Id, deps: DependenceList<'a>, ndeps: i32 }
        /// Mappings of a target construct, reported by `ompt_callback_target_map` and not by its `_emi` variant
        /// (19.5.2.27).
        TargetMap<'a> = 22 "target_map" {
            target_id: Address, nitems: u32, host_addr: Numbers<'a>, device_addr: Numbers<'a>, bytes: Numbers<'a>,
            mapping_flags: Numbers<'a>, codeptr_ra: Address,
        }
        /// A target region (19.5.2.26).
        TargetEmi = 33 "target_emi" {
            kind: ompt_target_t, endpoint: ompt_scope_endpoint_t, device_num: i32, task_data: Id,
            target_task_data: Id, target_data: Id, codeptr_ra: Address,
        }
        /// A data operation of a target region or of an API call (19.5.2.25). `host_op_id` is the value that the tool
        /// has assigned to the operation.
        TargetDataOpEmi = 34 "target_data_op_emi" {
            endpoint: ompt_scope_endpoint_t, target_task_data: Id, target_data: Id, host_op_id: Id,
            optype: ompt_target_data_op_t, src_addr: Address, src_device_num: i32, dest_addr: Address,
            dest_device_num: i32, bytes: u64, codeptr_ra: Address,
        }
        /// A kernel is submitted (19.5.2.28).
        TargetSubmitEmi = 35 "target_submit_emi" {
            endpoint: ompt_scope_endpoint_t, target_data: Id, host_op_id: Id, requested_num_teams: u32,
        }
        /// Mappings of a target construct (19.5.2.27).
        TargetMapEmi<'a> = 36 "target_map_emi" {
            target_data: Id, nitems: u32, host_addr: Numbers<'a>, device_addr: Numbers<'a>, bytes: Numbers<'a>,
            mapping_flags: Numbers<'a>, codeptr_ra: Address,
        }
        /// An `error` directive (19.5.2.30).
        Error<'a> = 37 "error" { severity: ompt_severity_t, message: Text<'a>, length: u64, codeptr_ra: Address }

        /// A thread that belongs to no team waits for work. TR4 and TR6 define the callback `ompt_callback_idle` for
        /// this event, with the number 29 in TR4 and 31 in TR6. The event has a number of its own here, because OpenMP
        /// 5.0 assigned 31 to `reduction`.
        Idle = 268 "idle" { endpoint: ompt_scope_endpoint_t }

        /// The state of the thread, and the wait id of the mutex that the thread waits for, as returned by
        /// `ompt_get_state` (19.6.1.12). The tracer queries the state at the start and end of each implicit task and of
        /// each wait for a mutex.
        ThreadState = 269 "omptrace_thread_state" { state: ompt_state_t, wait_id: Address }

        /// A thread waits for a mutex that another thread holds. The Collector API (2007) reports the start and the end
        /// of such a wait (`LKWT`, `CTWT`, `ODWT`, `ATWT`). The Collector API reports neither the acquisition of a free
        /// mutex nor the release of a mutex. `wait_id` is set only if the runtime reports a wait id.
        MutexWait = 270 "mutex_wait" { endpoint: ompt_scope_endpoint_t, kind: ompt_mutex_t, wait_id: Address }
        /// A thread is in an ordered region. The Collector API reports the start and the end of the region (`ORDERED`).
        Ordered = 271 "ordered" { endpoint: ompt_scope_endpoint_t, parallel_data: Id }
        /// The parent of a parallel region, recorded when that region begins (Collector API, `OMP_REQ_PARENT_PRID`).
        /// `parent_parallel_data` is 0 if the region has no parent.
        ParentRegion = 272 "omptrace_parent_region" { parallel_data: Id, parent_parallel_data: Id }
        /// An event that only some runtimes define (Collector API, event numbers from `OMP_EVENT_THR_RESERVED_IMPL`
        /// on).
        CollectorEvent = 273 "collector_event" { number: u32, parallel_data: Id }

        /// The id and name of the stream's thread in the operating system.
        ThreadInfo<'a> = 257 "omptrace_thread_info" { os_tid: i32, name: Text<'a> }
        /// A module (program or shared library) that contains a recorded code address. From the event's timestamp on,
        /// the module is loaded at the given addresses or, if `change` is `unloaded`, no longer loaded.
        Module<'a> = 258 "omptrace_module" {
            change: ModuleChange, path: Text<'a>, build_id: Text<'a>, load_address: Address, start: Address,
            end: Address, file_size: u64, modified_ns: u64,
        }
        /// The thread wrote its full chunk to the file itself, because no free chunk was left. Writing started at
        /// `begin` and ended at the event's timestamp.
        BufferFlush = 259 "omptrace_buffer_flush" { begin: Ticks, bytes: u64 }
        /// Recording was switched on or off.
        Monitoring = 260 "omptrace_monitoring" { change: MonitoringChange }
        /// Some events of this stream were not recorded. All lost events occurred after `begin` and before this event's
        /// timestamp.
        Lost = 261 "omptrace_lost" { begin: Ticks, events: u64 }
        /// The stream contains the records of a device's trace buffers, in the order of delivery, and does not belong
        /// to a thread.
        DeviceStream = 262 "omptrace_device_stream" { device_num: i32 }
        /// A device record in the standard format (19.4.3.4, `ompt_record_ompt_t`), unchanged. `device_num` is the
        /// device number that the runtime passed when it delivered the record. Timestamps use the device's clock.
        /// `record` is the member of the union that belongs to `type`, as it was in memory.
        DeviceRecord<'a> = 263 "omptrace_device_record" {
            device_num: i32, r#type: ompt_callbacks_t, time: u64, thread_id: Address, target_id: Address,
            record: Numbers<'a>,
        }
        /// A device record in the device's native format, reduced to the fields that a tool can read without knowing
        /// the device (19.4.3.3, `ompt_record_abstract_t`). Timestamps use the device's clock.
        DeviceNativeRecord<'a> = 264 "omptrace_device_native_record" {
            device_num: i32, host_op_id: Address, rclass: ompt_record_native_t, r#type: Text<'a>, start_time: u64,
            end_time: u64, hwid: Address,
        }
        /// A reading of the device's clock (19.6.2.2) between two readings of the session's clock.
        DeviceClock = 265 "omptrace_device_clock" { device_num: i32, before: Ticks, device_time: u64, after: Ticks }
        /// The runtime's translation of a timestamp of the device's clock (19.6.2.3) into seconds on the clock of
        /// `omp_get_wtime`.
        DeviceTranslation = 266 "omptrace_device_translation" { device_num: i32, device_time: u64, seconds: Seconds }
        /// A kernel, as recorded by a vendor's library that reports the kernel's name. `thread_id` identifies the
        /// stream on the device; `granted_num_teams` is the number of blocks. Timestamps use the device's clock.
        DeviceKernel<'a> = 274 "omptrace_device_kernel" {
            device_num: i32, host_op_id: Address, thread_id: Address, requested_num_teams: u32, granted_num_teams: u32,
            name: Text<'a>, start_time: u64, end_time: u64,
        }
        /// A part of the image that `device_load` reported; the part starts at `offset` in the image. If the same image
        /// is loaded several times, the trace contains it only once.
        DeviceImage<'a> = 267 "omptrace_device_image" {
            device_num: i32, module_id: u64, offset: u64, bytes: Bytes<'a>,
        }
        /// This stream contains samples of the thread whose events are in the stream `thread_stream`.
        /// `omptrace_sample_stream` is the first event in each chunk of a stream of samples. `period_ns` is the
        /// requested CPU time between two samples.
        SampleStream = 275 "omptrace_sample_stream" { thread_stream: u32, clock: SampleClock, period_ns: u64 }
        /// A sample of what the thread does at the time of the event. The sample represents the preceding `weight_ns`
        /// of CPU time. `state` and `wait_id` are the results of `ompt_get_state` (19.6.1.12). `task_flags` are the
        /// flags of the innermost task (`ompt_get_task_info`, level 0), or 0 if the runtime reports no task.
        /// `exit_frame` and `enter_frame` give the positions of that task's two frames in the stack. Each position is
        /// the frame's index in the stack, counted from 0 for the innermost frame; -1 means that the pointer is null,
        /// and -2 that the address is not in any frame of the stack.
        Sample<'a> = 276 "omptrace_sample" {
            weight_ns: u64, state: ompt_state_t, wait_id: Address, task_flags: ompt_task_flag_t, exit_frame: i32,
            enter_frame: i32, end: StackEnd, stack: Stack<'a>,
        }
        /// The call stack of the thread that created a parallel region or a task, at the time of the creation. For a
        /// parallel region, `task_data` is null; for a task, `parallel_data` is null. The innermost frames belong to
        /// the runtime.
        Context<'a> = 277 "omptrace_context" { parallel_data: Id, task_data: Id, end: StackEnd, stack: Stack<'a> }
        /// Some samples of this stream were not recorded. All lost samples occurred after `begin` and before this
        /// event's timestamp. `weight_ns` is the CPU time that they represented.
        SamplesLost = 278 "omptrace_samples_lost" { begin: Ticks, samples: u64, weight_ns: u64 }
        /// The values of the thread's counters, in the order in which `counting.counters` in the metadata lists them.
        /// The counts start at an unspecified time in the thread's life. A value of 2^64-1 means that the counter was
        /// not counting. The tracer reads the counters when a construct, task or wait begins or ends, immediately
        /// before it records this begin or end.
        Counters<'a> = 279 "omptrace_counters" { values: Numbers<'a> }
        /// A thread waits in a function of the C library that the program called, such as `pthread_mutex_lock`. With
        /// the endpoint `beginend`, the wait began at `begin` and ended at the event's timestamp, because the tracer
        /// records the wait only when it is over. `codeptr_ra` is the return address of the call.
        ExternalWait = 280 "omptrace_external_wait" {
            endpoint: ompt_scope_endpoint_t, begin: Ticks, kind: WaitKind, object: Address, codeptr_ra: Address,
        }
        /// The objects of the call that the thread is executing. With the role `awaited` or `started`, `numbers`
        /// contains the handles of requests. With `completed`, `numbers` contains four numbers for each completed
        /// request: the handle, the peer, the tag and the number of bytes. With `spun`, `numbers` describes the
        /// test calls before this call in which no request was complete: how many there were, and the number of the
        /// function that the last one called. Two more numbers, which older traces lack, are the number of test calls whose duration was measured,
        /// and the sum of these durations in nanoseconds. With `received`, which belongs to calls that both send and
        /// receive a message, `numbers` describes the received message: its source, tag, number of elements and
        /// datatype. With `replaced`, `numbers` contains the old and the new handle of each persistent request whose
        /// handle the MPI library changed when the request was started.
        CallObjects<'a> = 283 "omptrace_call_objects" { role: CallRole, numbers: Numbers<'a> }
        /// The program has created an object, or the object exists from the start. `parent` is the handle of the object
        /// from which the new object was created. `domain` is 1 for MPI and 2 for annotations. For a communicator,
        /// `facts` contains its size, the process's rank in it, the size of the remote group (0 if there is no remote
        /// group), and the ranks of its members in `MPI_COMM_WORLD`. These ranks are left out if the communicator has
        /// many members and another process records them. For a datatype, `facts` contains the size in bytes; for a
        /// window, the communicator, the size in bytes and the displacement unit.
        ObjectDefined<'a> = 284 "omptrace_object_defined" {
            domain: u32, kind: ObjectKind, handle: Address, parent: Address, facts: Numbers<'a>, name: Text<'a>,
        }
        /// The program gives an object a name.
        ObjectNamed<'a> = 285 "omptrace_object_named" { domain: u32, kind: ObjectKind, handle: Address, name: Text<'a> }
        /// An object's handle is no longer valid.
        ObjectFreed = 286 "omptrace_object_freed" { domain: u32, kind: ObjectKind, handle: Address }
        /// The program marks a point in time. The arguments have the same meaning as in `omptrace_annotation_begin`.
        AnnotationMark = 289 "omptrace_annotation_mark" {
            source: AnnotationSource, scope: AnnotationScope, domain: u32, category: u32, name: u32, colour: u32,
            payload_type: PayloadType, payload: u64,
        }
        /// The program provides a number or a text: the value of a counter, or a fact about a range.
        AnnotationValue = 290 "omptrace_annotation_value" {
            source: AnnotationSource, role: ValueRole, scope: AnnotationScope, domain: u32, name: u32,
            value_type: PayloadType, value: u64, instance: u64,
        }
        /// The program reports that it has allocated or freed memory. `space` and `label` are numbers of texts that
        /// `omptrace_object_defined` defines.
        AnnotationMemory = 291 "omptrace_annotation_memory" {
            source: AnnotationSource, change: MemoryChange, space: u32, label: u32, address: Address, bytes: u64,
        }
        /// The program asks the tracer to pause or resume recording.
        AnnotationPause = 292 "omptrace_annotation_pause" { source: AnnotationSource, change: MonitoringChange }
        /// The program reports a range that is already over, with the times at which it began and ended.
        AnnotationSpan = 293 "omptrace_annotation_span" {
            source: AnnotationSource, kind: AnnotationKind, domain: u32, name: u32, begin: Ticks, end: Ticks,
        }
        /// The process has compared its host's clock with the clock of another host. To do so, the process asked a
        /// process on the other host for the time; `peer` is the rank of that other process in `MPI_COMM_WORLD`.
        /// `own_ns` is this host's `CLOCK_MONOTONIC_RAW` in the middle between the question and the answer. `peer_ns`
        /// is the answer: the other host's `CLOCK_MONOTONIC_RAW`. The error of the difference between these two times
        /// is at most half of `round_trip_ns`.
        ClockMeasured = 294 "omptrace_clock_measured" { peer: u32, own_ns: u64, peer_ns: u64, round_trip_ns: u64 }
    }
}
