//! Callbacks of a run as a script of the reference runtime, which calls a tool with them on real threads.

use ompt_sys::*;
use serde_json::{Value, json};

use crate::callback::{Callback, Context, Id, Scope, Status, Sync, TaskFlags, Work};
use crate::program::{Access, MutexKind};
use crate::run::Run;

/// The slot of data that no callback writes.
const UNSET: Id = 0;
/// Slots of threads, behind those of regions and tasks.
const THREADS: Id = 100_000;

/// The flags of a region that LLVM's runtime executes.
const REGION: u32 = ompt_parallel_team.0 | ompt_parallel_invoker_runtime.0;

/// The script of `run`.
pub fn script(run: &Run) -> Value {
    let mut threads: Vec<Vec<Value>> = vec![vec![]; run.spans.len()];
    let mut callbacks: Vec<_> = run.callbacks.iter().collect();
    callbacks.sort_by_key(|(time, ..)| *time);
    // What one thread makes, another may name: all do one after the other.
    let mut last = None;
    let mut number = 0;
    for (_, thread, callback) in callbacks {
        if let Some(last) = last.filter(|last| last != thread) {
            let last: usize = last;
            for of in [last, *thread] {
                threads[of].push(json!({ "sync": number }));
            }
            number += 1;
        }
        last = Some(*thread);
        if let Some(call) = call(*thread, callback) {
            threads[*thread].push(json!({ "call": call }));
        }
    }
    json!({ "rounds": [{ "threads": threads }] })
}

fn data(id: Id) -> Value {
    json!({ "slot": id })
}

fn optional(id: Option<Id>) -> Value {
    id.map_or_else(|| json!("null"), data)
}

fn scope(scope: Scope) -> u32 {
    match scope {
        Scope::Begin => ompt_scope_begin.0,
        Scope::End => ompt_scope_end.0,
    }
}

fn sync(kind: Sync) -> u32 {
    match kind {
        Sync::ExplicitBarrier => ompt_sync_region_barrier_explicit.0,
        Sync::Taskwait => ompt_sync_region_taskwait.0,
        Sync::Taskgroup => ompt_sync_region_taskgroup.0,
        Sync::WorksharingBarrier => ompt_sync_region_barrier_implicit_workshare.0,
        Sync::ParallelBarrier => ompt_sync_region_barrier_implicit_parallel.0,
    }
}

fn work(kind: Work) -> u32 {
    match kind {
        Work::Sections => ompt_work_sections.0,
        Work::SingleExecutor => ompt_work_single_executor.0,
        Work::SingleOther => ompt_work_single_other.0,
        Work::Taskloop => ompt_work_taskloop.0,
        Work::LoopStatic => ompt_work_loop_static.0,
        Work::LoopDynamic => ompt_work_loop_dynamic.0,
        Work::LoopGuided => ompt_work_loop_guided.0,
    }
}

fn mutex(kind: MutexKind) -> u32 {
    match kind {
        MutexKind::Lock => ompt_mutex_lock.0,
        MutexKind::NestLock => ompt_mutex_nest_lock.0,
        MutexKind::Critical => ompt_mutex_critical.0,
        MutexKind::Ordered => ompt_mutex_ordered.0,
    }
}

fn status(status: Status) -> u32 {
    match status {
        Status::Complete => ompt_task_complete.0,
        Status::Yield => ompt_task_yield.0,
        Status::Cancel => ompt_task_cancel.0,
        Status::Detach => ompt_task_detach.0,
        Status::EarlyFulfill => ompt_task_early_fulfill.0,
        Status::LateFulfill => ompt_task_late_fulfill.0,
        Status::Switch => ompt_task_switch.0,
        Status::TaskwaitComplete => ompt_taskwait_complete.0,
    }
}

fn access(access: Access) -> u32 {
    match access {
        Access::In => ompt_dependence_type_in.0,
        Access::Out => ompt_dependence_type_out.0,
        Access::Inout => ompt_dependence_type_inout.0,
        Access::Mutexinoutset => ompt_dependence_type_mutexinoutset.0,
        Access::Inoutset => ompt_dependence_type_inoutset.0,
    }
}

fn flags(flags: TaskFlags) -> u32 {
    let bits = [
        (flags.undeferred, ompt_task_undeferred),
        (flags.untied, ompt_task_untied),
        (flags.is_final, ompt_task_final),
        (flags.mergeable, ompt_task_mergeable),
    ];
    let kind = if flags.is_taskwait { ompt_task_taskwait } else { ompt_task_explicit };
    bits.iter().filter(|(is_set, _)| *is_set).fold(kind, |all, (_, bit)| all | *bit).0
}

/// The arguments that callbacks of synchronization and worksharing share.
fn within(of: Context, at: Scope, code: u64) -> Value {
    json!({
        "endpoint": scope(at), "parallel_data": optional(of.parallel), "task_data": data(of.task), "codeptr_ra": code,
    })
}

fn with(mut call: Value, more: Value) -> Value {
    if let (Value::Object(call), Value::Object(more)) = (&mut call, more) {
        call.extend(more);
    }
    call
}

/// The call of a callback; `None` for what the tool itself records.
fn call(thread: usize, callback: &Callback) -> Option<Value> {
    let thread = data(THREADS + thread as Id);
    let (name, arguments) = match callback {
        Callback::ThreadBegin { is_initial } => (
            "thread_begin",
            json!({ "thread_type": if *is_initial { ompt_thread_initial.0 } else { ompt_thread_worker.0 }, "thread_data": thread }),
        ),
        Callback::ThreadEnd => ("thread_end", json!({ "thread_data": thread })),
        Callback::InitialTask(at) => (
            "implicit_task",
            json!({
                "endpoint": scope(*at), "parallel_data": data(UNSET), "task_data": data(1),
                "actual_parallelism": u32::from(*at == Scope::Begin), "index": 1, "flags": ompt_task_initial.0,
            }),
        ),
        Callback::ParallelBegin { parallel, task, asked, code } => (
            "parallel_begin",
            json!({
                "encountering_task_data": data(*task), "encountering_task_frame": null, "parallel_data": data(*parallel),
                "requested_parallelism": asked, "flags": REGION, "codeptr_ra": code,
            }),
        ),
        Callback::ParallelEnd { parallel, task, code } => (
            "parallel_end",
            json!({
                "parallel_data": data(*parallel), "encountering_task_data": data(*task), "flags": REGION,
                "codeptr_ra": code,
            }),
        ),
        Callback::ImplicitTask { scope: at, parallel, task, size, index } => (
            "implicit_task",
            json!({
                "endpoint": scope(*at), "parallel_data": optional(*parallel), "task_data": data(*task),
                "actual_parallelism": size, "index": index, "flags": ompt_task_implicit.0,
            }),
        ),
        Callback::Work { kind, scope: at, of, count, code } => {
            ("work", with(within(*of, *at, *code), json!({ "work_type": work(*kind), "count": count })))
        }
        Callback::Chunk { of, start, iterations, .. } => (
            "dispatch",
            json!({
                "parallel_data": optional(of.parallel), "task_data": data(of.task), "kind": ompt_dispatch_ws_loop_chunk.0,
                "instance": { "chunk": { "start": start, "iterations": iterations } },
            }),
        ),
        Callback::TaskloopChunk { of, iteration } => (
            "dispatch",
            json!({
                "parallel_data": optional(of.parallel), "task_data": data(of.task), "kind": ompt_dispatch_taskloop_chunk.0,
                "instance": { "chunk": { "start": iteration, "iterations": 1 } },
            }),
        ),
        Callback::Section { of, instance } => (
            "dispatch",
            json!({
                "parallel_data": optional(of.parallel), "task_data": data(of.task), "kind": ompt_dispatch_section.0,
                "instance": { "word": instance },
            }),
        ),
        Callback::Masked { scope: at, of, code } => ("masked", within(*of, *at, *code)),
        Callback::SyncRegion { kind, scope: at, of, code } => {
            ("sync_region", with(within(*of, *at, *code), json!({ "kind": sync(*kind) })))
        }
        Callback::SyncWait { kind, scope: at, of, code } => {
            ("sync_region_wait", with(within(*of, *at, *code), json!({ "kind": sync(*kind) })))
        }
        Callback::Reduction { scope: at, of, code } => {
            ("reduction", with(within(*of, *at, *code), json!({ "kind": ompt_sync_region_reduction.0 })))
        }
        Callback::MutexAcquire { kind, mutex: id, code } => (
            "mutex_acquire",
            json!({ "kind": mutex(*kind), "hint": 0, "impl": 0, "wait_id": id, "codeptr_ra": code }),
        ),
        Callback::MutexAcquired { kind, mutex: id, code } => {
            ("mutex_acquired", json!({ "kind": mutex(*kind), "wait_id": id, "codeptr_ra": code }))
        }
        Callback::MutexReleased { kind, mutex: id, code } => {
            ("mutex_released", json!({ "kind": mutex(*kind), "wait_id": id, "codeptr_ra": code }))
        }
        Callback::NestLock { scope: at, mutex: id, code } => {
            ("nest_lock", json!({ "endpoint": scope(*at), "wait_id": id, "codeptr_ra": code }))
        }
        Callback::TaskCreate { task, new, flags: bits, has_dependences, code } => (
            "task_create",
            json!({
                "encountering_task_data": data(*task), "encountering_task_frame": null, "new_task_data": data(*new),
                "flags": flags(*bits), "has_dependences": u32::from(*has_dependences), "codeptr_ra": code,
            }),
        ),
        Callback::TaskSchedule { prior, status: how, next } => (
            "task_schedule",
            json!({
                "prior_task_data": data(*prior), "prior_task_status": status(*how), "next_task_data": optional(*next),
            }),
        ),
        Callback::Dependences { task, list } => {
            let deps: Vec<(u64, u32)> =
                list.iter().map(|(how, variable)| (0x100 + variable * 8, access(*how))).collect();
            ("dependences", json!({ "task_data": data(*task), "ndeps": deps.len(), "deps": deps }))
        }
        Callback::Doacross { task, is_source, iteration } => {
            let kind = if *is_source { ompt_dependence_type_source.0 } else { ompt_dependence_type_sink.0 };
            let deps = [(*iteration as u64, kind)];
            ("dependences", json!({ "task_data": data(*task), "ndeps": 1, "deps": deps }))
        }
        Callback::TaskDependence { before, after } => {
            ("task_dependence", json!({ "src_task_data": data(*before), "sink_task_data": data(*after) }))
        }
        Callback::CancelTaskgroup { task, code } => (
            "cancel",
            json!({ "task_data": data(*task), "flags": (ompt_cancel_taskgroup | ompt_cancel_activated).0, "codeptr_ra": code }),
        ),
        Callback::Target { scope: at, task, target, code } => (
            "target_emi",
            json!({
                "kind": 1, "endpoint": scope(*at), "device_num": 0, "task_data": data(*task),
                "target_task_data": data(UNSET), "target_data": data(*target), "codeptr_ra": code,
            }),
        ),
        Callback::TargetSubmit { scope: at, target, operation } => (
            "target_submit_emi",
            json!({
                "endpoint": scope(*at), "target_data": data(*target), "host_op_id": data(*operation),
                "requested_num_teams": 1,
            }),
        ),
        Callback::Phase { .. } | Callback::Pause { .. } | Callback::Lost { .. } | Callback::Call { .. } => {
            return None;
        }
    };
    Some(json!({ name: arguments }))
}
