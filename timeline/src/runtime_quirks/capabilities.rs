//! What the runtime of a trace reports, as far as results depend on it. If something is not reported, its time is not 0
//! but unknown.

use omptrace_runtimes::{RUNTIMES, Runtime, TaskCreation, Vendor};
use omptrace_trace_format::metadata::{Counting, Metadata, Registration};

use crate::runtime_quirks::Dialect;

/// Turns a row `name: callback callback;` into a field of [`Reports`]. It is true if one of the callbacks was requested
/// and granted. Each generation of the interface has its own names for them.
macro_rules! reports {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)*;)*) => {
        /// What the user wants to be recorded (`OMPTRACE_EVENTS`), whatever the runtime reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Requested {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Requested {
            /// Everything if `metadata` does not contain the setting.
            fn of(metadata: &Metadata) -> Requested {
                let events = metadata.settings.get("OMPTRACE_EVENTS");
                let has = |callback: &str| events.is_none_or(|all| all.split(',').any(|one| one == callback));
                Requested { $($name: [$(stringify!($callback)),*].into_iter().any(has),)* }
            }

            /// Whether nothing was left out.
            pub fn is_everything(self) -> bool {
                true $(&& self.$name)*
            }
        }

        /// What a runtime reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Reports {
            $($(#[$doc])* pub $name: bool,)*
            /// What the user wants to be recorded.
            pub requested: Requested,
            /// GCC's code executes some constructs without its runtime: static loops, masked regions, atomic updates,
            /// reductions.
            pub inlined: bool,
            /// Whether barriers are explicit.
            pub barrier_kinds: bool,
            /// When threads are preempted. Comes from counters, not from the runtime.
            pub preemptions: bool,
            /// The smallest cost of a chunk of a dynamic loop. Not reported, but known for each runtime.
            pub chunk_cost_ns: u64,
            /// Upper bound of the cost of creating a task. Not reported, but known for some runtimes.
            pub task_creation: Option<TaskCreation>,
        }

        impl Reports {
            /// What the registrations in `metadata` granted; everything if there are none.
            fn granted_in(metadata: &Metadata) -> Reports {
                let granted = |callback: &str| {
                    metadata.callbacks.is_empty() || metadata.callbacks.get(callback).is_some_and(is_granted)
                };
                Reports {
                    $($name: [$(stringify!($callback)),*].into_iter().any(granted),)*
                    requested: Requested::of(metadata),
                    ..Reports::default()
                }
            }
        }

        impl Default for Reports {
            fn default() -> Reports {
                Reports {
                    $($name: true,)*
                    requested: Requested { $($name: true,)* },
                    inlined: true,
                    barrier_kinds: true,
                    preemptions: true,
                    chunk_cost_ns: chunk_cost_ns(""),
                    task_creation: None,
                }
            }
        }
    };
}

reports! {
    /// When members of a team start and end.
    members: implicit_task implicit_task_begin;
    /// When threads outside of teams wait for work.
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
    /// What the runtime described in `metadata` reports.
    pub fn of(metadata: &Metadata) -> Reports {
        let granted = Reports::granted_in(metadata);
        let dialect = Dialect::of(metadata);
        let runtime = metadata.runtime.as_ref();
        Reports {
            // LLVM 3.7 reports the starts and ends of tasks instead of switches.
            tasks: granted.tasks || dialect.tasks_created_when_they_run,
            inlined: !dialect.inlined_by_gcc,
            barrier_kinds: !dialect.barriers_of_one_kind,
            preemptions: metadata.counting.as_ref().is_some_and(show_preemptions),
            chunk_cost_ns: chunk_cost_ns(runtime.map_or("", |runtime| &runtime.version)),
            task_creation: runtime.and_then(|runtime| Runtime::of_version(&runtime.version)?.task_creation),
            ..granted
        }
    }
}

/// Whether the counters show preemptions.
fn show_preemptions(counting: &Counting) -> bool {
    let has = |name: &&str| counting.counters.iter().any(|own| own == name);
    ["task-clock", "context-switches", "preemptions"].iter().all(has)
}

/// The cost of a chunk in the runtime with this version string; LLVM's if unknown.
fn chunk_cost_ns(version: &str) -> u64 {
    let known = Runtime::of_version(version);
    let llvm = || RUNTIMES.iter().find(|runtime| runtime.vendor == Vendor::Llvm);
    known.or_else(llvm).map_or(0, |runtime| runtime.chunk_cost_ns)
}

/// Whether waiting threads give up their CPUs at once, or nearly so, in a process with more threads than CPUs. GCC's
/// runtime polls at most 1000 times. LLVM's and Intel's spin and yield in between, unless the user wants them to sleep.
pub fn waits_are_short_where_oversubscribed(metadata: &Metadata) -> bool {
    let version = metadata.runtime.as_ref().map_or("", |runtime| &runtime.version);
    let set = |name: &str| metadata.environment.get(name).map(|value| value.trim().to_ascii_lowercase());
    match Runtime::of_version(version).map(|runtime| runtime.vendor) {
        Some(Vendor::Gnu) => set("GOMP_SPINCOUNT").is_none(),
        Some(Vendor::Llvm | Vendor::Intel) => match set("KMP_BLOCKTIME") {
            Some(time) => time == "0",
            None => set("OMP_WAIT_POLICY").is_some_and(|policy| policy == "passive"),
        },
        _ => false,
    }
}

/// Whether a registration promises at least some events: `ompt_set_result_t`, and the answers of the Collector API, as
/// words.
fn is_granted(registration: &Registration) -> bool {
    matches!(&registration.meaning[..], "always" | "sometimes" | "sometimes_paired" | "OK")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(version: &str) -> Reports {
        let mut metadata = Metadata::default();
        metadata.runtime.get_or_insert_default().version = version.into();
        Reports::of(&metadata)
    }

    #[test]
    fn what_the_user_left_out_is_not_requested() {
        let requested = |events: Option<&str>| {
            let mut metadata = Metadata::default();
            let events = events.map(|events| ("OMPTRACE_EVENTS".to_owned(), events.to_owned()));
            metadata.settings.extend(events);
            Reports::of(&metadata).requested
        };
        assert!(requested(None).is_everything());
        let most = "implicit_task,sync_region,sync_region_wait,task_schedule,idle";
        assert!(!requested(Some(most)).critical_waits && requested(Some(most)).barriers);
        assert!(requested(Some(&format!("{most},mutex_acquire"))).is_everything());
    }

    #[test]
    fn who_waits_on_shared_processors_spins_where_the_user_wants_that() {
        let are_short = |version: &str, variable: Option<(&str, &str)>| {
            let mut metadata = Metadata::default();
            metadata.runtime.get_or_insert_default().version = version.into();
            metadata.environment.extend(variable.map(|(name, value)| (name.to_owned(), value.to_owned())));
            waits_are_short_where_oversubscribed(&metadata)
        };
        let (gcc, llvm) = ("libgomp of GCC 12 through libomptgomp", "LLVM OMP version: 5.0.20140926");
        for short in [
            (gcc, None),
            (gcc, Some(("OMP_WAIT_POLICY", "active"))),
            (llvm, Some(("OMP_WAIT_POLICY", "PASSIVE"))),
            (llvm, Some(("KMP_BLOCKTIME", "0"))),
        ] {
            assert!(are_short(short.0, short.1), "{short:?}");
        }
        for long in [
            (gcc, Some(("GOMP_SPINCOUNT", "infinite"))),
            (llvm, Some(("OMP_WAIT_POLICY", "ACTIVE"))),
            (llvm, Some(("KMP_BLOCKTIME", "infinite"))),
            (llvm, None),
            ("another", None),
        ] {
            assert!(!are_short(long.0, long.1), "{long:?}");
        }
    }

    #[test]
    fn what_gcc_inlines_is_known_to_be_missing() {
        let gcc = reports("libgomp of GCC 12 through libomptgomp");
        assert!(!gcc.inlined && !gcc.barrier_kinds);
        assert_eq!(gcc.chunk_cost_ns, 120);
        for version in ["LLVM OMP version: 5.0.20140926", "another", ""] {
            let other = reports(version);
            assert!(other.inlined && other.barrier_kinds, "{version}");
            assert_eq!(other.chunk_cost_ns, 450, "{version}");
        }
    }
}
