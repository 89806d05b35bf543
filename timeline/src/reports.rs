//! What the runtime of a trace reports, where numbers depend on it: what it does not report is no time of 0.

use omptrace_trace_format::metadata::{Metadata, Registration};

use crate::dialect::Dialect;

/// Turns a row `name: callback callback;` into a field of [`Reports`]: one of the callbacks, which have other names in each
/// generation of the interface, was asked for and granted.
macro_rules! reports {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)*;)*) => {
        /// What a runtime reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Reports { $($(#[$doc])* pub $name: bool,)* }

        impl Reports {
            /// What the registrations in `metadata` granted; all where it has none.
            fn granted_in(metadata: &Metadata) -> Reports {
                let granted = |callback: &str| {
                    metadata.callbacks.is_empty() || metadata.callbacks.get(callback).is_some_and(is_granted)
                };
                Reports { $($name: [$(stringify!($callback)),*].into_iter().any(granted),)* }
            }
        }

        impl Default for Reports {
            fn default() -> Reports {
                Reports { $($name: true,)* }
            }
        }
    };
}

reports! {
    /// When members of a team begin and end.
    members: implicit_task implicit_task_begin;
    /// When threads of no team wait for work.
    idle: idle idle_begin THR_BEGIN_IDLE;
    /// Barriers as regions.
    barriers: sync_region barrier_begin;
    /// Waits at barriers.
    barrier_waits: sync_region_wait wait_barrier_begin THR_BEGIN_IBAR THR_BEGIN_EBAR;
    /// Taskwaits as regions.
    taskwaits: sync_region taskwait_begin;
    /// Waits in taskwaits.
    taskwait_waits: sync_region_wait wait_taskwait_begin;
    /// Waits in taskgroups.
    taskgroup_waits: sync_region_wait wait_taskgroup_begin;
    /// Waits for locks.
    lock_waits: mutex_acquire wait_lock THR_BEGIN_LKWT;
    /// Waits for critical regions.
    critical_waits: mutex_acquire wait_critical THR_BEGIN_CTWT;
    /// When explicit tasks run.
    tasks: task_schedule task_switch;
    /// How many explicit tasks ran.
    task_ends: task_schedule task_switch task_end;
}

impl Reports {
    /// What the runtime that `metadata` describes reports.
    pub fn of(metadata: &Metadata) -> Reports {
        let granted = Reports::granted_in(metadata);
        // LLVM 3.7 does not report switches, but where tasks begin and end.
        let tasks = granted.tasks || Dialect::of(metadata).tasks_created_when_they_run;
        Reports { tasks, ..granted }
    }
}

/// Whether a registration promises events, at least some: `ompt_set_result_t` and what the Collector API answers, in words.
fn is_granted(registration: &Registration) -> bool {
    matches!(
        &registration.meaning[..],
        "always" | "sometimes" | "sometimes_paired" | "OK"
    )
}
