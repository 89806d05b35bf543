//! The things that the runtime of a trace reports, where numbers depend on it. The time of a thing that it does not report
//! is not 0: it is not known.

use omptrace_runtimes::{RUNTIMES, Runtime, Vendor};
use omptrace_trace_format::metadata::{Counting, Metadata, Registration};

use crate::runtime_quirks::Dialect;

/// Turns a row `name: callback callback;` into a field of [`Reports`]. It is true where one of the callbacks was asked for and
/// granted; they have other names in each generation of the interface.
macro_rules! reports {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)*;)*) => {
        /// The things that a runtime reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Reports {
            $($(#[$doc])* pub $name: bool,)*
            /// Constructs that GCC's code executes without its runtime: static loops, masked regions, atomic updates,
            /// reductions.
            pub inlined: bool,
            /// Which barriers are explicit.
            pub barrier_kinds: bool,
            /// When threads lose their CPUs; no report of the runtime's, but of counters.
            pub preemptions: bool,
            /// The least cost of a chunk of a dynamic loop; no report of the runtime's, but known of it.
            pub chunk_cost_ns: u64,
            /// The most that the creation of a task costs; no report of the runtime's, but known of some.
            pub task_creation_ns: Option<u64>,
        }

        impl Reports {
            /// The things that the registrations in `metadata` granted; all where it has none.
            fn granted_in(metadata: &Metadata) -> Reports {
                let granted = |callback: &str| {
                    metadata.callbacks.is_empty() || metadata.callbacks.get(callback).is_some_and(is_granted)
                };
                Reports {
                    $($name: [$(stringify!($callback)),*].into_iter().any(granted),)*
                    ..Reports::default()
                }
            }
        }

        impl Default for Reports {
            fn default() -> Reports {
                Reports {
                    $($name: true,)*
                    inlined: true,
                    barrier_kinds: true,
                    preemptions: true,
                    chunk_cost_ns: chunk_cost_ns(""),
                    task_creation_ns: None,
                }
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
    /// The things that the runtime that `metadata` describes reports.
    pub fn of(metadata: &Metadata) -> Reports {
        let granted = Reports::granted_in(metadata);
        let dialect = Dialect::of(metadata);
        let runtime = metadata.runtime.as_ref();
        Reports {
            // LLVM 3.7 does not report switches, but where tasks begin and end.
            tasks: granted.tasks || dialect.tasks_created_when_they_run,
            inlined: !dialect.inlined_by_gcc,
            barrier_kinds: !dialect.barriers_of_one_kind,
            preemptions: metadata.counting.as_ref().is_some_and(show_preemptions),
            chunk_cost_ns: chunk_cost_ns(runtime.map_or("", |runtime| &runtime.version)),
            task_creation_ns: runtime
                .and_then(|runtime| Runtime::of_version(&runtime.version)?.task_creation_ns),
            ..granted
        }
    }
}

/// Whether the counters show when threads lose their CPUs.
fn show_preemptions(counting: &Counting) -> bool {
    let has = |name: &&str| counting.counters.iter().any(|own| own == name);
    ["task-clock", "context-switches", "preemptions"].iter().all(has)
}

/// The cost of a chunk in the runtime of this version; in LLVM's where that is not known.
fn chunk_cost_ns(version: &str) -> u64 {
    let known = Runtime::of_version(version);
    let llvm = || RUNTIMES.iter().find(|runtime| runtime.vendor == Vendor::Llvm);
    known.or_else(llvm).map_or(0, |runtime| runtime.chunk_cost_ns)
}

/// Whether threads that wait leave their CPUs to others at once, or nearly so, in a process with more threads than CPUs.
/// GCC's runtime tests 1000 times at most. LLVM's and Intel's spin, and yield between, unless the user wants them to sleep.
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

/// Whether a registration promises events, at least some: `ompt_set_result_t` and what the Collector API answers, in words.
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
