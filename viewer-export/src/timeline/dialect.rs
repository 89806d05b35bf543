//! How runtimes differ from the specification: one row per quirk, chosen by what the trace says of its runtime.

use ompt_sys as ompt;
use ompt_sys::{collector, tr2, tr6};
use omptrace_trace_format::event::{Event, TargetDataOp};
use omptrace_trace_format::field::{Address, Field};
use omptrace_trace_format::metadata::Metadata;

/// Turns a row `name "words" |metadata| condition` into a field of [`Dialect`] and an entry of [`Dialect::quirks`].
macro_rules! quirks {
    ($($(#[$doc:meta])* $name:ident $text:literal |$metadata:ident| $applies:expr;)*) => {
        /// The quirks of the runtime that a trace comes from.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Dialect { $($(#[$doc])* pub $name: bool,)* }

        impl Dialect {
            /// The quirks of the runtime that `metadata` tells of.
            pub fn of(metadata: &Metadata) -> Dialect {
                Dialect { $($name: { let $metadata = metadata; $applies },)* }
            }

            /// The quirks that apply, in words.
            pub fn quirks(&self) -> Vec<&'static str> {
                [$((self.$name, $text)),*].into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect()
            }
        }
    };
}

quirks! {
    /// LLVM and Intel, all versions. Others are not known to, but no runtime promises otherwise, and without this rule
    /// idle time looks like waiting at a barrier.
    late_worker_ends
        "workers report the end of a region's last barrier and of their implicit task only when the next region wakes them"
        |_metadata| true;
    /// GCC's code on LLVM's or Intel's runtime. The next worksharing region or barrier of the task shows that it ended.
    single_without_end
        "the thread that executes a single region may not report its end (code built by GCC)"
        |metadata| is_libomp(metadata);
    /// LLVM up to 8.0, Intel 2018 to 2020, none of which tells its version; the last reports it in both ways.
    initial_task_created
        "the initial task may be reported by task_create"
        |metadata| is_libomp(metadata);
    /// Intel 2022 and 2023 grant the EMI form and deliver only the old one, with an endpoint in front.
    shifted_target_data_op
        "target_data_op has an endpoint in front of its arguments"
        |metadata| version(metadata).starts_with("Intel") && is_granted(metadata, "target_data_op_emi");
    /// LLVM 6 and 7, Intel 2018.0.3 and 2019, and LLVM's development before them.
    numbers_of_drafts
        "kinds of synchronization, of mutexes and of dependences, and task status, have the numbers of TR4 and TR6, drafts of OpenMP 5.0"
        |metadata| is_draft(metadata);
    /// LLVM up to 9, Intel 2018.0.3 and 2019. Where a runtime of that version reports the begins, nothing is changed by this.
    league_tasks_without_begin
        "the implicit tasks of a teams construct may be reported only when they end"
        |metadata| is_draft(metadata) || version(metadata) == LLVM_BEFORE_11;
    /// Intel 2018.0.3 and 2019: tasks of a taskgroup that is cancelled; and, once in some thousand times, an untied task whose
    /// last parts two threads run at the same time (each says that the task is left).
    task_ends_unreported
        "tasks that are cancelled before they run are not reported to end, nor are some untied tasks"
        |metadata| is_draft(metadata);
    /// By the document, the thread is in the region around when JOIN comes; in OpenUH it still is in the one that ends, whose
    /// id nested regions have, too.
    joins_without_region
        "the end of a parallel region does not name it: it is the innermost that the thread encountered"
        |metadata| generation(metadata) == COLLECTOR_API;
    /// They are not those of OMPT. Those of TAU's wrapper, 12 to 16, are of the runtime's work for tasks.
    states_of_collector
        "the states of threads have the numbers of the Collector API"
        |metadata| generation(metadata) == COLLECTOR_API;
    /// LLVM 3.7 to 5.0.
    states_of_tr2
        "the states of threads have the numbers of TR2"
        |metadata| generation(metadata) == "TR2";
    /// The report wants a wait only where a thread waits, and LLVM 3.7 reports neither waits nor acquisitions of locks.
    mutexes_without_wait
        "mutexes are acquired and released without the events before"
        |metadata| generation(metadata) == "TR2";
    /// Nor do all of its runtimes tell when tasks are switched.
    tasks_without_switch
        "tasks end that were not reported to run"
        |metadata| generation(metadata) == "TR2";
    /// Both let tools ask for ids that the runtime counts.
    ids_of_runtime
        "ids are the runtime's own, those of regions counted apart from those of tasks"
        |metadata| ["TR2", COLLECTOR_API].contains(&generation(metadata));
    /// Its events have no place for it.
    members_without_index
        "the members of a team are not numbered: they count in the order in which they begin"
        |metadata| generation(metadata) == "TR2";
}

/// The profiling interface of 2007.
const COLLECTOR_API: &str = "Collector API";

/// From 11 on it names LLVM; Intel's own runtimes have other dates.
const LLVM_BEFORE_11: &str = "Intel(R) OMP version: 5.0.20140926";

/// A generation between TR2 and OpenMP 5.0.
fn is_draft(metadata: &Metadata) -> bool {
    ["TR4", "TR6"].contains(&generation(metadata))
}

fn generation(metadata: &Metadata) -> &str {
    metadata
        .runtime
        .as_ref()
        .map_or("", |runtime| &runtime.dialect)
}

fn version(metadata: &Metadata) -> &str {
    metadata
        .runtime
        .as_ref()
        .map_or("", |runtime| &runtime.version)
}

/// LLVM's runtime or one that derives from it; also where the trace does not tell.
fn is_libomp(metadata: &Metadata) -> bool {
    let version = version(metadata);
    version.is_empty() || version.starts_with("LLVM") || version.starts_with("Intel")
}

fn is_granted(metadata: &Metadata, callback: &str) -> bool {
    let always = ompt::ompt_set_always.0;
    metadata
        .callbacks
        .get(callback)
        .is_some_and(|registration| registration.result == always)
}

/// A data operation of the old form, its arguments where the specification has them.
pub(crate) struct DataOp {
    /// Only where the runtime tells it.
    pub(crate) endpoint: Option<ompt::ompt_scope_endpoint_t>,
    pub(crate) host_op_id: u64,
    pub(crate) optype: ompt::ompt_target_data_op_t,
    pub(crate) src_addr: Address,
    pub(crate) src_device_num: i32,
    pub(crate) dest_addr: Address,
    pub(crate) dest_device_num: i32,
    pub(crate) bytes: u64,
    pub(crate) codeptr_ra: Address,
}

impl Dialect {
    /// The arguments of `event`, each taken from the register that holds it in this dialect.
    pub(crate) fn data_op(&self, event: &TargetDataOp) -> DataOp {
        let may_be_endpoint = (1..=3).contains(&event.target_id.0);
        if self.shifted_target_data_op && may_be_endpoint {
            DataOp {
                endpoint: Some(ompt::ompt_scope_endpoint_t(event.target_id.0 as u32)),
                host_op_id: event.optype.0,
                optype: Field::from_word(event.src_addr.0),
                src_addr: Address(event.src_device_num.0),
                dest_addr: Address(event.dest_device_num.0),
                src_device_num: Field::from_word(event.dest_addr.0),
                dest_device_num: Field::from_word(event.bytes),
                bytes: event.codeptr_ra.0,
                codeptr_ra: event.tenth_argument,
            }
        } else {
            DataOp {
                endpoint: None,
                host_op_id: event.host_op_id.0,
                optype: event.optype.argument(),
                src_addr: event.src_addr,
                dest_addr: event.dest_addr,
                src_device_num: event.src_device_num.argument(),
                dest_device_num: event.dest_device_num.argument(),
                bytes: event.bytes,
                codeptr_ra: event.codeptr_ra,
            }
        }
    }
}

/// Turns rows `enum_of_the_generation => enum_of_today { its => today's, ... }` into functions from one to the other. A number
/// that the generation does not have gets a bit that no number of today has.
macro_rules! numbers {
    ($($name:ident: $module:ident::$draft:ident => $today:ident { $($from:ident => $to:ident,)* })*) => { $(
        fn $name(argument: &mut ompt::$today) {
            *argument = match $module::$draft(argument.0) {
                $($module::$from => ompt::$to,)*
                unknown => ompt::$today(unknown.0 | UNKNOWN),
            };
        }
    )* };
}

const UNKNOWN: u32 = 1 << 31;

numbers! {
    sync_region: tr6::ompt_sync_region_kind_t => ompt_sync_region_t {
        ompt_sync_region_barrier => ompt_sync_region_barrier,
        ompt_sync_region_taskwait => ompt_sync_region_taskwait,
        ompt_sync_region_taskgroup => ompt_sync_region_taskgroup,
    }
    mutex: tr6::ompt_mutex_kind_t => ompt_mutex_t {
        ompt_mutex_lock => ompt_mutex_lock,
        ompt_mutex_nest_lock => ompt_mutex_nest_lock,
        ompt_mutex_critical => ompt_mutex_critical,
        ompt_mutex_atomic => ompt_mutex_atomic,
        ompt_mutex_ordered => ompt_mutex_ordered,
    }
    task_status: tr6::ompt_task_status_t => ompt_task_status_t {
        ompt_task_complete => ompt_task_complete,
        ompt_task_yield => ompt_task_yield,
        ompt_task_cancel => ompt_task_cancel,
        ompt_task_others => ompt_task_switch,
    }
    thread_state: collector::OMP_COLLECTOR_API_THR_STATE => ompt_state_t {
        THR_TASK_CREATE_STATE => ompt_state_overhead,
        THR_TASK_SCHEDULE_STATE => ompt_state_overhead,
        THR_TASK_SUSPEND_STATE => ompt_state_overhead,
        THR_TASK_STEAL_STATE => ompt_state_overhead,
        THR_TASK_FINISH_STATE => ompt_state_overhead,
        THR_OVHD_STATE => ompt_state_overhead,
        THR_WORK_STATE => ompt_state_work_parallel,
        THR_IBAR_STATE => ompt_state_wait_barrier_implicit,
        THR_EBAR_STATE => ompt_state_wait_barrier_explicit,
        THR_IDLE_STATE => ompt_state_idle,
        THR_SERIAL_STATE => ompt_state_work_serial,
        THR_REDUC_STATE => ompt_state_work_reduction,
        THR_LKWT_STATE => ompt_state_wait_lock,
        THR_CTWT_STATE => ompt_state_wait_critical,
        THR_ODWT_STATE => ompt_state_wait_ordered,
        THR_ATWT_STATE => ompt_state_wait_atomic,
    }
    thread_state_of_tr2: tr2::ompt_state_t => ompt_state_t {
        ompt_state_work_serial => ompt_state_work_serial,
        ompt_state_work_parallel => ompt_state_work_parallel,
        ompt_state_work_reduction => ompt_state_work_reduction,
        ompt_state_idle => ompt_state_idle,
        ompt_state_overhead => ompt_state_overhead,
        ompt_state_wait_barrier => ompt_state_wait_barrier,
        ompt_state_wait_barrier_implicit => ompt_state_wait_barrier_implicit,
        ompt_state_wait_barrier_explicit => ompt_state_wait_barrier_explicit,
        ompt_state_wait_taskwait => ompt_state_wait_taskwait,
        ompt_state_wait_taskgroup => ompt_state_wait_taskgroup,
        ompt_state_wait_lock => ompt_state_wait_lock,
        ompt_state_wait_nest_lock => ompt_state_wait_lock,
        ompt_state_wait_critical => ompt_state_wait_critical,
        ompt_state_wait_atomic => ompt_state_wait_atomic,
        ompt_state_wait_ordered => ompt_state_wait_ordered,
        ompt_state_undefined => ompt_state_undefined,
    }
    dependence_type: tr6::ompt_task_dependence_flag_t => ompt_dependence_type_t {
        ompt_task_dependence_type_in => ompt_dependence_type_in,
        ompt_task_dependence_type_out => ompt_dependence_type_out,
        ompt_task_dependence_type_inout => ompt_dependence_type_inout,
    }
}

impl Dialect {
    /// Whether arguments of some events have other numbers than the specification gives them today.
    pub(crate) fn has_other_numbers(&self) -> bool {
        self.numbers_of_drafts || self.states_of_collector || self.states_of_tr2
    }

    /// Gives the arguments of `event` the numbers that the specification has today.
    pub(crate) fn translate(&self, event: &mut Event<'_>) {
        if self.numbers_of_drafts {
            from_draft(event);
        }
        if self.states_of_collector
            && let Event::ThreadState(e) = event
        {
            thread_state(&mut e.state);
        }
        if self.states_of_tr2
            && let Event::ThreadState(e) = event
        {
            thread_state_of_tr2(&mut e.state);
        }
    }
}

fn from_draft(event: &mut Event<'_>) {
    match event {
        Event::SyncRegion(e) => sync_region(&mut e.kind),
        Event::SyncRegionWait(e) => sync_region(&mut e.kind),
        Event::LockInit(e) => mutex(&mut e.kind),
        Event::LockDestroy(e) => mutex(&mut e.kind),
        Event::MutexAcquire(e) => mutex(&mut e.kind),
        Event::MutexAcquired(e) => mutex(&mut e.kind),
        Event::MutexReleased(e) => mutex(&mut e.kind),
        Event::TaskSchedule(e) => task_status(&mut e.prior_task_status),
        Event::TaskComplete(e) => task_status(&mut e.prior_task_status),
        Event::Dependences(e) => {
            let deps = e.deps.to_mut().iter_mut();
            deps.for_each(|dependence| dependence_type(&mut dependence.dependence_type));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(dialect: &str, kind: u32) -> ompt::ompt_mutex_t {
        let mut metadata = Metadata::default();
        metadata.runtime.get_or_insert_default().dialect = dialect.into();
        let mut event = Event::from(omptrace_trace_format::event::MutexReleased {
            kind: ompt::ompt_mutex_t(kind),
            wait_id: Address(0),
            codeptr_ra: Address(0),
        });
        Dialect::of(&metadata).translate(&mut event);
        match event {
            Event::MutexReleased(e) => e.kind,
            _ => unreachable!("it was made above"),
        }
    }

    #[test]
    fn kinds_have_the_numbers_of_their_generation() {
        assert_eq!(translated("5.x", 7), ompt::ompt_mutex_ordered);
        for draft in ["TR4", "TR6"] {
            assert_eq!(translated(draft, 0x20), ompt::ompt_mutex_ordered);
            assert_eq!(translated(draft, 7).name(), None);
        }
    }
}
