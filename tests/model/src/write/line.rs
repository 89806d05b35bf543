//! The line of a callback in the text of a trace, as LLVM's runtime makes it today.

use crate::callback::{Callback, Context, Scope, Status, Sync, TaskFlags, Work};
use crate::program::MutexKind;

pub(super) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Begin => "begin",
        Scope::End => "end",
    }
}

fn context(of: Context) -> String {
    let parallel = of.parallel.map_or("-".to_owned(), |id| match id {
        0 => "?".to_owned(),
        id => id.to_string(),
    });
    format!("parallel={parallel} task={}", of.task)
}

pub(super) fn work(kind: Work) -> &'static str {
    match kind {
        Work::LoopStatic => "loop_static",
        Work::LoopDynamic => "loop_dynamic",
        Work::LoopGuided => "loop_guided",
        Work::Sections => "sections",
        Work::SingleExecutor => "single_executor",
        Work::SingleOther => "single_other",
        Work::Taskloop => "taskloop",
    }
}

pub(super) fn sync(kind: Sync) -> &'static str {
    match kind {
        Sync::ExplicitBarrier => "barrier_explicit",
        Sync::WorksharingBarrier => "barrier_implicit_workshare",
        Sync::ParallelBarrier => "barrier_implicit_parallel",
        Sync::Taskwait => "taskwait",
        Sync::Taskgroup => "taskgroup",
    }
}

pub(super) fn mutex(kind: MutexKind) -> &'static str {
    match kind {
        MutexKind::Critical => "critical",
        MutexKind::Lock => "lock",
        MutexKind::NestLock => "nest_lock",
        MutexKind::Ordered => "ordered",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Switch => "switch",
        Status::Yield => "yield",
        Status::Complete => "complete",
        Status::Cancel => "cancel",
        Status::Detach => "detach",
        Status::EarlyFulfill => "early_fulfill",
        Status::LateFulfill => "late_fulfill",
        Status::TaskwaitComplete => "taskwait_complete",
    }
}

pub(super) fn flags(flags: TaskFlags) -> u64 {
    let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let kind = match flags {
        TaskFlags { is_taskwait: true, .. } => 0x10,
        TaskFlags { is_target: true, .. } => 8,
        _ => 4,
    };
    kind | bit(flags.undeferred, 0x0800_0000)
        | bit(flags.untied, 0x1000_0000)
        | bit(flags.is_final, 0x2000_0000)
        | bit(flags.mergeable, 0x4000_0000)
}

pub(super) fn line(callback: &Callback) -> String {
    match callback {
        Callback::ThreadBegin { is_initial } => {
            format!("thread_begin type={}", if *is_initial { "initial" } else { "worker" })
        }
        Callback::ThreadEnd => "thread_end".to_owned(),
        Callback::InitialTask(Scope::Begin) => {
            "implicit_task begin parallel=? task=1 team=1 index=1 flags=1".to_owned()
        }
        Callback::InitialTask(Scope::End) => {
            "implicit_task end parallel=? task=1 team=0 index=1 flags=1".to_owned()
        }
        Callback::ParallelBegin { parallel, task, asked, code } => {
            format!("parallel_begin parallel={parallel} task={task} team={asked} code={code}")
        }
        Callback::ParallelEnd { parallel, task, code } => {
            format!("parallel_end parallel={parallel} task={task} code={code}")
        }
        Callback::ImplicitTask { scope: at, parallel, task, size, index } => {
            let parallel = parallel.map_or("-".to_owned(), |id| id.to_string());
            let at = scope(*at);
            format!("implicit_task {at} parallel={parallel} task={task} team={size} index={index} flags=2")
        }
        Callback::Work { kind, scope: at, of, count, code } => {
            let (kind, at, of) = (work(*kind), scope(*at), context(*of));
            format!("work {at} kind={kind} count={count} {of} code={code}")
        }
        Callback::Chunk { of, instance, start, iterations } => {
            let of = context(*of);
            format!(
                "dispatch kind=ws_loop_chunk {of} instance={instance:#x} start={start} iterations={iterations}"
            )
        }
        Callback::TaskloopChunk { of, iteration } => {
            let of = context(*of);
            format!("dispatch kind=taskloop_chunk {of} instance=0x7fff start={iteration} iterations=1")
        }
        Callback::Section { of, instance } => {
            format!("dispatch kind=section {} instance={instance}", context(*of))
        }
        Callback::Masked { scope: at, of, code } => {
            format!("masked {} {} code={code}", scope(*at), context(*of))
        }
        Callback::SyncRegion { kind, scope: at, of, code } => {
            format!("sync_region {} kind={} {} code={code}", scope(*at), sync(*kind), context(*of))
        }
        Callback::SyncWait { kind, scope: at, of, code } => {
            format!("sync_region_wait {} kind={} {} code={code}", scope(*at), sync(*kind), context(*of))
        }
        Callback::Reduction { scope: at, of, code } => {
            format!("reduction {} kind=reduction {} code={code}", scope(*at), context(*of))
        }
        Callback::MutexAcquire { kind, mutex: id, code } => {
            format!("mutex_acquire kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::MutexAcquired { kind, mutex: id, code } => {
            format!("mutex_acquired kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::MutexReleased { kind, mutex: id, code } => {
            format!("mutex_released kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::NestLock { scope: at, mutex: id, code } => {
            format!("nest_lock {} wait_id={id} code={code}", scope(*at))
        }
        Callback::TaskCreate { task, new, flags: bits, has_dependences, code } => {
            let (bits, has) = (flags(*bits), u8::from(*has_dependences));
            format!("task_create task={task} new={new} flags={bits} has_dependences={has} code={code}")
        }
        Callback::TaskSchedule { prior, status: how, next } => {
            let none = if *how == Status::TaskwaitComplete { "?" } else { "-" };
            let next = next.map_or(none.to_owned(), |id| id.to_string());
            format!("task_schedule prior={prior} status={} next={next}", status(*how))
        }
        Callback::Dependences { task, list } => {
            let list: Vec<String> = list
                .iter()
                .map(|(access, variable)| format!("{}={:#x}", access.name(), 0x100 + variable * 8))
                .collect();
            format!("dependences task={task} {}", list.join(" "))
        }
        Callback::Doacross { task, is_source, iteration } => {
            let kind = if *is_source { "source" } else { "sink" };
            format!("dependences task={task} {kind}={iteration}")
        }
        Callback::TaskDependence { before, after } => {
            format!("task_dependence src={before} sink={after}")
        }
        Callback::CancelTaskgroup { task, code } => {
            format!("cancel task={task} flags=24 code={code}")
        }
        Callback::Target { scope: at, task, target, code } => {
            format!(
                "target {} device=0 task={task} target_task_data=? target={target} code={code}",
                scope(*at)
            )
        }
        Callback::TargetSubmit { scope: at, target, operation } => {
            format!("target_submit {} target={target} op={operation} teams=1", scope(*at))
        }
        Callback::Call { scope: at, class, code } => {
            let (at, class) = (scope(*at), class.number());
            format!("call_{at} class={class} function=1 domain=1 peer=-4 tag=-4 code={code}")
        }
        Callback::Phase { scope: Scope::Begin, name } => format!("control_tool command=64 text={name}"),
        Callback::Phase { scope: Scope::End, name } => format!("control_tool command=65 text={name}"),
        Callback::Pause { stops } => format!("monitoring change={}", if *stops { 2 } else { 3 }),
        Callback::Lost { since, events } => format!("lost begin={since} events={events}"),
    }
}
