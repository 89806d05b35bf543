//! The events of a thread as a runtime with the Collector API of 2007 has them, each with what the thread does.

use super::line::{line, scope as word};
use crate::callback::{Callback, Id, Scope, Sync, Work};
use crate::program::{MutexKind, Ns};

/// The events that the runtime grants.
pub(crate) const EVENTS: [&str; 20] = [
    "FORK",
    "JOIN",
    "THR_BEGIN_IDLE",
    "THR_END_IDLE",
    "THR_BEGIN_IBAR",
    "THR_END_IBAR",
    "THR_BEGIN_EBAR",
    "THR_END_EBAR",
    "THR_BEGIN_LKWT",
    "THR_END_LKWT",
    "THR_BEGIN_CTWT",
    "THR_END_CTWT",
    "THR_BEGIN_ODWT",
    "THR_END_ODWT",
    "THR_BEGIN_MASTER",
    "THR_END_MASTER",
    "THR_BEGIN_SINGLE",
    "THR_END_SINGLE",
    "THR_BEGIN_ORDERED",
    "THR_END_ORDERED",
];

/// The API's numbers of what a thread does.
const OVERHEAD: u32 = 1;
const WORK: u32 = 2;
const IMPLICIT_BARRIER: u32 = 3;
const EXPLICIT_BARRIER: u32 = 4;
const IDLE: u32 = 5;
const LOCK: u32 = 8;
const CRITICAL: u32 = 9;
const ORDERED: u32 = 10;

/// The lines of a thread's callbacks, which are in order of time.
pub(crate) fn lines(callbacks: &[&(Ns, usize, Callback)]) -> Vec<(Ns, String)> {
    let mut lines = vec![];
    let mut region: Id = 0;
    let mut asked: Ns = 0;
    for (time, _, callback) in callbacks {
        let mut add = |time: Ns, state: u32, text: String| {
            lines.push((time, text));
            lines.push((time, format!("thread_state state={state} wait_id=0")));
        };
        match callback {
            // A worker that nobody needs is idle from its begin on.
            Callback::ThreadBegin { is_initial: false } => add(*time, IDLE, "idle begin".to_owned()),
            Callback::ParallelBegin { parallel, .. } => {
                let text = format!("parallel_begin parallel={parallel} task=- team=0 flags=0");
                add(*time, OVERHEAD, text);
                region = *parallel;
            }
            Callback::ParallelEnd { parallel, .. } => {
                add(*time, OVERHEAD, format!("parallel_end parallel={parallel} task=- flags=0"));
                region = 0;
            }
            Callback::ImplicitTask { scope, parallel, index, .. } if *index > 0 => {
                region = parallel.unwrap_or(0);
                match scope {
                    Scope::Begin => add(*time, OVERHEAD, "idle end".to_owned()),
                    Scope::End => add(*time, IDLE, "idle begin".to_owned()),
                }
            }
            Callback::Work { kind: Work::SingleExecutor, scope, .. } => {
                let at = word(*scope);
                let text = format!("work {at} kind=single_executor parallel={region} task=-");
                add(*time, WORK, text);
            }
            Callback::Masked { scope, .. } => {
                add(*time, WORK, format!("masked {} parallel={region} task=-", word(*scope)));
            }
            Callback::SyncWait { kind, scope, .. } => {
                let (kind, state) = match kind {
                    Sync::ExplicitBarrier => ("barrier_explicit", EXPLICIT_BARRIER),
                    Sync::WorksharingBarrier | Sync::ParallelBarrier => {
                        ("barrier_implicit", IMPLICIT_BARRIER)
                    }
                    Sync::Taskwait | Sync::Taskgroup => continue,
                };
                let at = word(*scope);
                add(*time, state, format!("sync_region_wait {at} kind={kind} parallel={region} task=-"));
            }
            Callback::MutexAcquire { .. } => asked = *time,
            Callback::MutexAcquired { kind, .. } => {
                let (name, state) = match kind {
                    MutexKind::Lock | MutexKind::NestLock => ("lock", LOCK),
                    MutexKind::Critical => ("critical", CRITICAL),
                    MutexKind::Ordered => ("ordered", ORDERED),
                };
                // Who need not wait reports nothing.
                if asked < *time {
                    add(asked, state, format!("mutex_wait begin kind={name} wait_id=0"));
                    add(*time, state, format!("mutex_wait end kind={name} wait_id=0"));
                }
                if *kind == MutexKind::Ordered {
                    add(*time, WORK, format!("ordered begin parallel={region}"));
                }
            }
            Callback::MutexReleased { kind: MutexKind::Ordered, .. } => {
                add(*time, WORK, format!("ordered end parallel={region}"));
            }
            // The adapter for MPI asks the runtime nothing.
            Callback::Call { .. } => lines.push((*time, line(callback))),
            _ => {}
        }
    }
    lines
}
