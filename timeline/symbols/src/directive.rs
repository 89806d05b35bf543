//! The directives for which a program calls the OpenMP runtime.

use ompt_sys as ompt;
use omptrace_trace_format::Event;

/// A directive for which GCC itself generates the call of the runtime, and gives it the line of an earlier statement.
/// Calls written by the programmer, and directives without a body (`taskwait`, `critical`, `omp_set_lock`), have lines
/// of their own.
///
/// Outer directives come first: if a compiler combines several directives, the call is at the place of the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Directive {
    Parallel,
    Taskloop,
    Task,
    Sections,
    /// One of the sections of a `sections` construct.
    Section,
    Single,
    Scope,
    Loop,
    Taskgroup,
    Ordered,
    /// An atomic update, or a reduction.
    Atomic,
    /// An explicit barrier, or the end of another construct.
    Barrier,
}

impl Directive {
    /// The directive for which the program called the runtime, if the runtime reports this event.
    pub(crate) fn of(event: &Event<'_>) -> Option<Directive> {
        match event {
            Event::ParallelBegin(_) => Some(Directive::Parallel),
            Event::TaskCreate(e) => {
                let others = ompt::ompt_task_target | ompt::ompt_task_taskwait | ompt::ompt_task_initial;
                (e.flags.0 & others.0 == 0).then_some(Directive::Task)
            }
            Event::Work(e) if e.endpoint != ompt::ompt_scope_end => match e.work_type {
                ompt::ompt_work_sections => Some(Directive::Sections),
                ompt::ompt_work_single_executor | ompt::ompt_work_single_other => Some(Directive::Single),
                ompt::ompt_work_taskloop => Some(Directive::Taskloop),
                ompt::ompt_work_scope => Some(Directive::Scope),
                ompt::ompt_work_loop
                | ompt::ompt_work_loop_static
                | ompt::ompt_work_loop_dynamic
                | ompt::ompt_work_loop_guided
                | ompt::ompt_work_loop_other => Some(Directive::Loop),
                _ => None,
            },
            Event::SyncRegion(e) => Directive::of_sync_region(e.kind),
            Event::SyncRegionWait(e) => Directive::of_sync_region(e.kind),
            Event::MutexAcquire(e) => Directive::of_mutex(e.kind),
            Event::MutexAcquired(e) => Directive::of_mutex(e.kind),
            _ => None,
        }
    }

    fn of_sync_region(kind: ompt::ompt_sync_region_t) -> Option<Directive> {
        match kind {
            ompt::ompt_sync_region_taskwait | ompt::ompt_sync_region_reduction => None,
            ompt::ompt_sync_region_taskgroup => Some(Directive::Taskgroup),
            _ => Some(Directive::Barrier),
        }
    }

    fn of_mutex(kind: ompt::ompt_mutex_t) -> Option<Directive> {
        match kind {
            ompt::ompt_mutex_ordered => Some(Directive::Ordered),
            ompt::ompt_mutex_atomic => Some(Directive::Atomic),
            _ => None,
        }
    }

    /// Whether the line of the call can be used to search for the directive in the source. GCC may merge the calls for
    /// several regions or tasks. Sections are called from inside another section, and barriers and reductions from the
    /// end of the construct to which they belong.
    pub(crate) fn follows_its_call(self) -> bool {
        use Directive::*;
        matches!(self, Sections | Single | Scope | Loop | Taskgroup | Ordered)
    }
}
