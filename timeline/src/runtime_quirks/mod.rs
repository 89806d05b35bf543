//! The deviations of runtimes from the specification: one row per quirk, selected by the trace's metadata.

pub(crate) mod capabilities;
pub(crate) mod event_selection;
pub(crate) mod issued_ids;

use ompt_sys as ompt;
use ompt_sys::{collector, tr2, tr4, tr6, tr7};
use omptrace_runtimes::{Runtime, Vendor};
use omptrace_trace_format::event::{Event, TargetDataOp};
use omptrace_trace_format::field::{Address, Field};
use omptrace_trace_format::metadata::{Metadata, Registration};

/// Turns a row `name "words" |metadata| condition` into a field of [`Dialect`] and an entry of [`Dialect::quirks`].
macro_rules! quirks {
    ($($(#[$doc:meta])* $name:ident $text:literal |$metadata:ident| $applies:expr;)*) => {
        /// The quirks of a trace's runtime.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Dialect { $($(#[$doc])* pub $name: bool,)* }

        impl Dialect {
            /// The quirks of the runtime that `metadata` describes.
            pub fn of(metadata: &Metadata) -> Dialect {
                Dialect { $($name: { let $metadata = metadata; $applies },)* }
            }

            /// The descriptions of the quirks that apply.
            pub fn quirks(&self) -> Vec<&'static str> {
                [$((self.$name, $text)),*].into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect()
            }
        }
    };
}

quirks! {
    /// GCC's code on LLVM's or Intel's runtime. The end of the region follows from the next worksharing region or
    /// barrier of the task.
    single_without_end
        "in code built by GCC, the end of a `single` region may not be reported for the thread that executes the region"
        |metadata| is_libomp(metadata) && !is_tr2(metadata);
    /// LLVM up to 8.0 and Intel 2018 to 2020, none of which reports its version; the last one reports initial tasks in
    /// both ways.
    initial_task_created
        "the initial task is sometimes reported by task_create"
        |metadata| is_libomp(metadata) && !is_tr2(metadata);
    /// Intel 2022 and 2023 grant the EMI callback, but deliver only the old one, with an additional endpoint in front
    /// of its arguments.
    shifted_target_data_op
        "the callback target_data_op has an endpoint argument before its other arguments"
        |metadata| vendor(metadata) == Some(Vendor::Intel) && is_granted(metadata, "target_data_op_emi");
    /// LLVM 6 and 7, Intel 2018.0.3 and 2019, and the preceding development versions of LLVM.
    numbers_of_drafts
        "the constants for the kinds of synchronisation, of mutexes and of dependences, and for the task status, have the values of TR4 and TR6 (drafts of OpenMP 5.0)"
        |metadata| ["TR4", "TR6"].contains(&generation(metadata)) && !is_tr7(metadata);
    /// Development versions of LLVM from September to December 2018.
    numbers_of_tr7
        "the constants for the kinds of mutexes and for the task status have the values of TR7 (a draft of OpenMP 5.0)"
        |metadata| is_tr7(metadata);
    /// Development versions of LLVM from spring 2017, which refuse `flush` and `idle` under TR4's numbers.
    tasks_typed_by_number
        "the types of tasks are numbers from 1 to 4 instead of flags"
        |metadata| has_types_of_early_tr4(metadata);
    /// LLVM 3.9 to 5.0; not in TR4.
    dependences_of_drafts
        "the constants for the types of dependences have the values of TR4 (a draft of OpenMP 5.0)"
        |metadata| is_tr2(metadata);
    /// LLVM up to 9, Intel 2018.0.3 and 2019. If such a runtime does report the starts, this quirk has no effect.
    league_tasks_without_begin
        "the implicit tasks of a `teams` construct are sometimes reported only when they end"
        |metadata| is_draft(metadata) || version(metadata) == LLVM_BEFORE_11 && !is_tr2(metadata);
    /// LLVM from 10 on, and Intel after 2019; for older ones, the members of a league are unknown.
    region_in_league
        "a parallel region of one thread, without a code address, is reported for each team of a league"
        |metadata| is_libomp(metadata) && !is_draft(metadata) && !is_tr2(metadata) && version(metadata) != LLVM_BEFORE_11;
    /// Intel 2018.0.3 and 2019, for tasks of a cancelled taskgroup. Also, once in some thousand times, for an untied
    /// task whose last parts two threads run at the same time: each thread reports that it leaves the task.
    task_ends_unreported
        "the ends of tasks that are cancelled before they run, and the ends of some untied tasks, are not reported"
        |metadata| is_draft(metadata);
    /// According to the document, the thread is in the surrounding region when JOIN arrives. In OpenUH, it is still in
    /// the region that ends, and nested regions have the same id.
    joins_without_region
        "the event for the end of a parallel region does not identify the region; omptrace assumes that it is the innermost open region that the thread encountered"
        |metadata| generation(metadata) == COLLECTOR_API;
    /// Not OMPT's states. TAU's wrapper uses 12 to 16 for the runtime's task management.
    states_of_collector
        "the constants for thread states have the values of the Collector API"
        |metadata| generation(metadata) == COLLECTOR_API;
    /// LLVM 3.7 to 5.0, and the first runtimes of TR4.
    states_of_tr2
        "the constants for thread states have the values of TR2 (the OMPT specification of 2014)"
        |metadata| is_tr2(metadata) || has_types_of_early_tr4(metadata);
    /// TR2 specifies a wait event only if a thread waits. LLVM 3.7 reports neither waits for nor acquisitions of locks.
    mutexes_without_wait
        "acquisitions and releases of mutexes are sometimes reported without the events that should precede them"
        |metadata| is_tr2(metadata);
    /// The switch to the next task is reported first.
    tasks_end_when_left
        "the end of a task is reported after the thread has switched to the next task"
        |metadata| is_tr2(metadata);
    /// The report defines task id 0 as "no task". LLVM from 3.8 on never announces initial tasks. It has reported the end of a worker's
    /// implicit task before the worker runs what is left at the region's end.
    tasks_beneath_unannounced
        "threads switch to or from tasks whose creation was not reported: initial tasks and, at the end of regions, task number 0, which stands for 'no task'"
        |metadata| is_tr2(metadata);
    /// LLVM 3.7 to 5.0. An untied task is created again each time it resumes.
    tasks_created_when_they_run
        "the creation of a task is reported when the task starts to run, on the thread that runs the task"
        |metadata| is_tr2(metadata) && version(metadata) == LLVM_BEFORE_11;
    /// LLVM 3.7.
    tasks_without_switch
        "the runtime does not report when threads switch tasks"
        |metadata| is_tr2(metadata) && is_refused(metadata, "task_switch");
    /// LLVM 3.7 to 5.0: the end is reported with the barrier of the single region.
    single_others_without_end
        "the end of a `single nowait` region may not be reported for threads that do not execute the region"
        |metadata| is_tr2(metadata);
    /// GCC's code executes these without calling libgomp.
    inlined_by_gcc
        "loops with a static schedule, masked regions, atomic updates and reductions are not reported, because GCC inlines them"
        |metadata| vendor(metadata) == Some(Vendor::Gnu);
    /// GCC calls `GOMP_barrier` for both kinds. Barriers that are known to be implicit have a kind of their own.
    barriers_of_one_kind
        "barriers that seem explicit may be implicit barriers of loops, because GCC calls the same function for both kinds of barriers"
        |metadata| vendor(metadata) == Some(Vendor::Gnu);
    /// In both, tools ask the runtime for ids, which it numbers consecutively.
    ids_of_runtime
        "the ids of regions and tasks come from the runtime, which numbers regions and tasks separately, so a region and a task can have the same id"
        |metadata| ["TR2", COLLECTOR_API].contains(&generation(metadata));
    /// The event has no argument for it.
    members_without_index
        "the runtime does not report thread numbers within teams, so the only known number is that of the thread that encountered the region, which is 0"
        |metadata| is_tr2(metadata);
}

/// The profiling interface of 2007.
const COLLECTOR_API: &str = "Collector API";

/// From LLVM 11 on, the string names LLVM; Intel's own runtimes contain other dates.
const LLVM_BEFORE_11: &str = "Intel(R) OMP version: 5.0.20140926";

/// Whether the generation lies between TR2 and OpenMP 5.0.
fn is_draft(metadata: &Metadata) -> bool {
    ["TR4", "TR6", "TR7"].contains(&generation(metadata))
}

fn is_tr2(metadata: &Metadata) -> bool {
    generation(metadata) == "TR2"
}

/// Tracers up to 0.1.0 mistook TR7 for TR6. In TR7, the number of TR6's `idle` belongs to another callback, which LLVM
/// never delivers; TR6's runtimes deliver `idle`, or do not have this number.
fn is_tr7(metadata: &Metadata) -> bool {
    let never = tr6::ompt_set_never.0;
    let is_taken_for_tr6 =
        generation(metadata) == "TR6" && result(metadata, "idle").is_some_and(|result| result == never);
    is_taken_for_tr6 || generation(metadata) == "TR7"
}

/// Whether a TR4 runtime's `idle` has another number than in the draft, so that the runtime refused the draft's number.
fn has_types_of_early_tr4(metadata: &Metadata) -> bool {
    let is_early = |idle: &Registration| {
        idle.result == tr6::ompt_set_error.0 || idle.number == tr4::ompt_callback_idle_of_early_2017.0
    };
    generation(metadata) == "TR4" && metadata.callbacks.get("idle").is_some_and(is_early)
}

fn generation(metadata: &Metadata) -> &str {
    metadata.runtime.as_ref().map_or("", |runtime| &runtime.dialect)
}

fn version(metadata: &Metadata) -> &str {
    metadata.runtime.as_ref().map_or("", |runtime| &runtime.version)
}

fn vendor(metadata: &Metadata) -> Option<Vendor> {
    Runtime::of_version(version(metadata)).map(|runtime| runtime.vendor)
}

/// Whether the runtime is LLVM's or derived from it; also if the trace does not say.
fn is_libomp(metadata: &Metadata) -> bool {
    version(metadata).is_empty() || matches!(vendor(metadata), Some(Vendor::Llvm | Vendor::Intel))
}

fn is_granted(metadata: &Metadata, callback: &str) -> bool {
    result(metadata, callback) == Some(ompt::ompt_set_always.0)
}

/// Whether a TR2 runtime answered that it does not report the event.
fn is_refused(metadata: &Metadata, event: &str) -> bool {
    let some = tr2::ompt_set_result_event_may_occur_callback_some.0;
    result(metadata, event).is_some_and(|result| result < some)
}

/// The runtime's answer to the registration of `callback`.
fn result(metadata: &Metadata, callback: &str) -> Option<u32> {
    let registration = metadata.callbacks.get(callback)?;
    Some(registration.result)
}

/// A data operation in the old form, with arguments as in the specification.
pub(crate) struct DataOp {
    /// Only if the runtime reports it.
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
    /// The arguments of `event`, each read from the register that contains it in this dialect.
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

/// Turns rows `enum_of_the_generation => enum_of_today { its => today's, ... }` into conversion functions. A number
/// that the generation does not define is converted to a number with a bit that no current number has.
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
    mutex_of_tr7: tr7::ompt_mutex_t => ompt_mutex_t {
        ompt_mutex_lock => ompt_mutex_lock,
        ompt_mutex_nest_lock => ompt_mutex_nest_lock,
        ompt_mutex_critical => ompt_mutex_critical,
        ompt_mutex_atomic => ompt_mutex_atomic,
        ompt_mutex_ordered => ompt_mutex_ordered,
    }
    task_status_of_tr7: tr7::ompt_task_status_t => ompt_task_status_t {
        ompt_task_complete => ompt_task_complete,
        ompt_task_yield => ompt_task_yield,
        ompt_task_cancel => ompt_task_cancel,
        ompt_task_switch => ompt_task_switch,
    }
    task_type: tr4::ompt_task_type_t => ompt_task_flag_t {
        ompt_task_initial => ompt_task_initial,
        ompt_task_implicit => ompt_task_implicit,
        ompt_task_explicit => ompt_task_explicit,
        ompt_task_target => ompt_task_target,
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
    /// Whether the enumerators in some events differ from the current specification.
    pub(crate) fn has_other_numbers(&self) -> bool {
        self.numbers_of_drafts
            || self.numbers_of_tr7
            || self.tasks_typed_by_number
            || self.dependences_of_drafts
            || self.states_of_collector
            || self.states_of_tr2
            || self.barriers_of_one_kind
    }

    /// Converts the enumerators in `event` to those of the current specification.
    pub(crate) fn translate(&self, event: &mut Event<'_>) {
        if self.numbers_of_drafts {
            mutexes_and_tasks(event, mutex, task_status);
            sync_regions(event);
        }
        if self.numbers_of_tr7 {
            mutexes_and_tasks(event, mutex_of_tr7, task_status_of_tr7);
        }
        if self.numbers_of_drafts || self.dependences_of_drafts {
            dependences(event);
        }
        if self.barriers_of_one_kind {
            match event {
                Event::SyncRegion(e) => barrier_of_any_kind(&mut e.kind),
                Event::SyncRegionWait(e) => barrier_of_any_kind(&mut e.kind),
                _ => {}
            }
        }
        if self.tasks_typed_by_number
            && let Event::TaskCreate(e) = event
        {
            task_type(&mut e.flags);
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

fn mutexes_and_tasks(
    event: &mut Event<'_>,
    mutex: fn(&mut ompt::ompt_mutex_t),
    task_status: fn(&mut ompt::ompt_task_status_t),
) {
    match event {
        Event::LockInit(e) => mutex(&mut e.kind),
        Event::LockDestroy(e) => mutex(&mut e.kind),
        Event::MutexAcquire(e) => mutex(&mut e.kind),
        Event::MutexAcquired(e) => mutex(&mut e.kind),
        Event::MutexReleased(e) => mutex(&mut e.kind),
        Event::TaskSchedule(e) => task_status(&mut e.prior_task_status),
        Event::TaskComplete(e) => task_status(&mut e.prior_task_status),
        _ => {}
    }
}

fn sync_regions(event: &mut Event<'_>) {
    match event {
        Event::SyncRegion(e) => sync_region(&mut e.kind),
        Event::SyncRegionWait(e) => sync_region(&mut e.kind),
        _ => {}
    }
}

fn barrier_of_any_kind(kind: &mut ompt::ompt_sync_region_t) {
    if *kind == ompt::ompt_sync_region_barrier_explicit {
        *kind = ompt::ompt_sync_region_barrier;
    }
}

fn dependences(event: &mut Event<'_>) {
    if let Event::Dependences(e) = event {
        let deps = e.deps.to_mut().iter_mut();
        deps.for_each(|dependence| dependence_type(&mut dependence.dependence_type));
    }
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::event::{Dependences, MutexReleased, SyncRegion, TaskCreate};
    use omptrace_trace_format::field::{Dependence, Id};

    use super::*;

    /// The metadata of a runtime with this generation and these answers to registrations.
    fn metadata(dialect: &str, answers: &[(&str, u32)]) -> Metadata {
        let mut metadata = Metadata::default();
        metadata.runtime.get_or_insert_default().dialect = dialect.into();
        let registration = |(name, result): &(&str, u32)| {
            let registration = Registration { number: 0, result: *result, meaning: String::new() };
            ((*name).to_owned(), registration)
        };
        metadata.callbacks = answers.iter().map(registration).collect();
        metadata
    }

    fn mutex_kind(metadata: &Metadata, kind: u32) -> ompt::ompt_mutex_t {
        let mut event = Event::from(MutexReleased {
            kind: ompt::ompt_mutex_t(kind),
            wait_id: Address(0),
            codeptr_ra: Address(0),
        });
        Dialect::of(metadata).translate(&mut event);
        match event {
            Event::MutexReleased(e) => e.kind,
            _ => unreachable!("it was made above"),
        }
    }

    fn dependence(metadata: &Metadata, number: u32) -> ompt::ompt_dependence_type_t {
        let mut event = Event::from(Dependences {
            task_data: Id(1),
            deps: vec![Dependence { variable: 0, dependence_type: ompt::ompt_dependence_type_t(number) }]
                .into(),
            ndeps: 1,
        });
        Dialect::of(metadata).translate(&mut event);
        match event {
            Event::Dependences(e) => e.deps[0].dependence_type,
            _ => unreachable!("it was made above"),
        }
    }

    #[test]
    fn kinds_of_mutexes_have_the_numbers_of_their_generation() {
        let of = |dialect| metadata(dialect, &[]);
        assert_eq!(mutex_kind(&of("5.x"), 7), ompt::ompt_mutex_ordered);
        for draft in ["TR4", "TR6"] {
            assert_eq!(mutex_kind(&of(draft), 0x20), ompt::ompt_mutex_ordered);
            assert_eq!(mutex_kind(&of(draft), 7).name(), None);
        }
        assert_eq!(mutex_kind(&of("TR7"), 5), ompt::ompt_mutex_ordered);
        assert_eq!(mutex_kind(&of("TR7"), 7).name(), None);
    }

    #[test]
    fn barriers_of_gcc_are_not_known_to_be_explicit() {
        let kind = |version: &str, kind| {
            let mut metadata = metadata("5.x", &[]);
            metadata.runtime.get_or_insert_default().version = version.into();
            let mut event = Event::from(SyncRegion {
                kind,
                endpoint: ompt::ompt_scope_begin,
                parallel_data: Id(1),
                task_data: Id(2),
                codeptr_ra: Address(0),
            });
            let dialect = Dialect::of(&metadata);
            assert_eq!(dialect.has_other_numbers(), dialect.barriers_of_one_kind);
            dialect.translate(&mut event);
            match event {
                Event::SyncRegion(e) => e.kind,
                _ => unreachable!("it was made above"),
            }
        };
        let explicit = ompt::ompt_sync_region_barrier_explicit;
        let implicit = ompt::ompt_sync_region_barrier_implicit_workshare;
        let gcc = "libgomp of GCC 12 through libomptgomp";
        assert_eq!(kind(gcc, explicit), ompt::ompt_sync_region_barrier);
        assert_eq!(kind(gcc, implicit), implicit);
        assert_eq!(kind("LLVM OMP version: 5.0.20140926", explicit), explicit);
    }

    #[test]
    fn types_of_dependences_have_the_numbers_of_their_generation() {
        let of = |dialect| metadata(dialect, &[]);
        for draft in ["TR2", "TR4", "TR6"] {
            let types = [1, 2, 3].map(|number| dependence(&of(draft), number));
            let expected = [
                ompt::ompt_dependence_type_out,
                ompt::ompt_dependence_type_in,
                ompt::ompt_dependence_type_inout,
            ];
            assert_eq!(types, expected, "{draft}");
        }
        for today in ["TR7", "5.x"] {
            assert_eq!(dependence(&of(today), 1), ompt::ompt_dependence_type_in, "{today}");
        }
    }

    /// LLVM's development version of December 2018 never delivers TR6's `idle`; Intel 2019.0 does not have this number.
    #[test]
    fn tr7_is_distinguished_from_tr6_by_the_answer_to_idle() {
        let never = metadata("TR6", &[("idle", 1)]);
        assert_eq!(mutex_kind(&never, 3), ompt::ompt_mutex_critical);
        for answer in [0, 4] {
            let tr6 = metadata("TR6", &[("idle", answer)]);
            assert_eq!(mutex_kind(&tr6, 0x13), ompt::ompt_mutex_critical);
        }
    }

    #[test]
    fn early_runtimes_of_tr4_count_types_of_tasks() {
        let flags = |metadata: &Metadata, number: u32| {
            let mut event = Event::from(TaskCreate {
                has_dependences: 0,
                encountering_task_data: Id(1),
                exit_frame: Address(0),
                enter_frame: Address(0),
                exit_frame_flags: ompt::ompt_frame_flag_t(0),
                enter_frame_flags: ompt::ompt_frame_flag_t(0),
                new_task_data: Id(2),
                flags: ompt::ompt_task_flag_t(number),
                codeptr_ra: Address(0),
            });
            Dialect::of(metadata).translate(&mut event);
            match event {
                Event::TaskCreate(e) => e.flags,
                _ => unreachable!("it was made above"),
            }
        };
        let early = metadata("TR4", &[("idle", 0)]);
        assert_eq!(flags(&early, 3), ompt::ompt_task_explicit);
        assert_eq!(flags(&early, 1), ompt::ompt_task_initial);
        let later = metadata("TR4", &[("idle", 4)]);
        assert_eq!(flags(&later, 4), ompt::ompt_task_explicit);
    }
}
