//! The runtime's activity on a thread, derived from the open constructs and the state that the runtime reports.

use ompt_sys as ompt;

use crate::model::RuntimeActivity;
use crate::names::construct::Construct;
use crate::threads::open_regions::Frame;

/// The runtime's activity on a thread with these open regions that has called a runtime function with the activity
/// `called`.
pub(super) fn activity(
    open: &[Frame],
    called: Option<RuntimeActivity>,
    state: ompt::ompt_state_t,
) -> RuntimeActivity {
    let by_events = open.last().and_then(|frame| by_construct(frame.construct));
    called.or(by_events).or_else(|| by_state(state)).unwrap_or(RuntimeActivity::Overhead)
}

pub(super) fn by_construct(construct: Construct) -> Option<RuntimeActivity> {
    Some(match construct {
        Construct::SyncRegion(kind) | Construct::SyncRegionWait(kind) => match kind {
            ompt::ompt_sync_region_taskwait => RuntimeActivity::TaskWait,
            ompt::ompt_sync_region_taskgroup => RuntimeActivity::TaskgroupWait,
            ompt::ompt_sync_region_reduction => RuntimeActivity::Reduction,
            ompt::ompt_sync_region_barrier_explicit => RuntimeActivity::ExplicitBarrier,
            ompt::ompt_sync_region_barrier_implicit
            | ompt::ompt_sync_region_barrier_implicit_workshare
            | ompt::ompt_sync_region_barrier_implicit_parallel
            | ompt::ompt_sync_region_barrier_teams => RuntimeActivity::ImplicitBarrier,
            _ => RuntimeActivity::Barrier,
        },
        Construct::Reduction => RuntimeActivity::Reduction,
        // No state of the runtime covers this.
        Construct::Target(_)
        | Construct::TargetDataOp(_)
        | Construct::TargetSubmit
        | Construct::TargetMap => RuntimeActivity::TargetWait,
        Construct::MutexWait(kind) => match kind {
            ompt::ompt_mutex_lock | ompt::ompt_mutex_nest_lock => RuntimeActivity::LockWait,
            ompt::ompt_mutex_critical => RuntimeActivity::CriticalWait,
            ompt::ompt_mutex_atomic => RuntimeActivity::AtomicWait,
            ompt::ompt_mutex_ordered => RuntimeActivity::OrderedWait,
            // Testing a lock is not waiting for it.
            _ => return None,
        },
        _ => return None,
    })
}

pub(super) fn by_state(state: ompt::ompt_state_t) -> Option<RuntimeActivity> {
    Some(match state {
        ompt::ompt_state_work_reduction => RuntimeActivity::Reduction,
        ompt::ompt_state_wait_barrier | ompt::ompt_state_wait_barrier_implementation => {
            RuntimeActivity::Barrier
        }
        ompt::ompt_state_wait_barrier_implicit_parallel
        | ompt::ompt_state_wait_barrier_implicit_workshare
        | ompt::ompt_state_wait_barrier_implicit
        | ompt::ompt_state_wait_barrier_teams => RuntimeActivity::ImplicitBarrier,
        ompt::ompt_state_wait_barrier_explicit => RuntimeActivity::ExplicitBarrier,
        ompt::ompt_state_wait_taskwait => RuntimeActivity::TaskWait,
        ompt::ompt_state_wait_taskgroup => RuntimeActivity::TaskgroupWait,
        ompt::ompt_state_wait_mutex => RuntimeActivity::MutexWait,
        ompt::ompt_state_wait_lock => RuntimeActivity::LockWait,
        ompt::ompt_state_wait_critical => RuntimeActivity::CriticalWait,
        ompt::ompt_state_wait_atomic => RuntimeActivity::AtomicWait,
        ompt::ompt_state_wait_ordered => RuntimeActivity::OrderedWait,
        ompt::ompt_state_wait_target
        | ompt::ompt_state_wait_target_map
        | ompt::ompt_state_wait_target_update => RuntimeActivity::TargetWait,
        _ => return None,
    })
}
