//! The rules about time lost at one place, in words.

use omptrace_timeline::model::split_place;
use serde_json::{Map, Value};

use super::devices::is_small_kernel;
use super::rule_table::{MAX_ATOMIC_NS, MIN_WAKE_UPS, TRACER_DISTURBS};
use super::{Advice, Case, Row, at};
use crate::answers::mergeable::PlaceSums;
use crate::model::cause::Cause;
use crate::model::place::Place;
use crate::model::within::Within;

/// Whether the holders of a mutex are mostly in MPI calls.
fn is_held_in_mpi(sums: &PlaceSums) -> bool {
    sums.held_in_mpi_ns > 0 && sums.held_in_mpi_ns >= sums.held_ns / 2
}

impl Case<'_> {
    /// The schedule of the loop that a region is combined with: GCC's code has both in one line.
    fn schedule_of_combined(&self, region: &Place) -> Option<&&'static str> {
        let is_there =
            |place: &Place| place.line.is_some() && (&place.file, place.line) == (&region.file, region.line);
        let loops = self.part.places.iter().filter(|(_, sums)| !sums.schedules.is_empty());
        let mut combined = loops.filter(|(place, _)| is_there(place));
        combined.next().and_then(|(_, sums)| sums.schedules.iter().next())
    }

    /// Serial code, with the function in which it spends most of its time, if samples show one.
    fn serial(&self, row: &Row<'_>) -> String {
        let (functions, _) = self.part.functions.of_row(row.cause, row.place, row.ns);
        let most = functions.first().filter(|most| most.ns >= row.ns / 2);
        let (inside, hint) = match most {
            Some(most) => (format!(", mostly {},", most.name.function), ""),
            None if self.part.functions.has_samples || row.place.is_before_all_regions() => {
                (String::new(), "")
            }
            None => (String::new(), " (to see the functions in this code, record with --sample)"),
        };
        format!("{}{inside} keeps the other threads idle: parallelise this code{hint}", row.place.in_words())
    }

    pub(super) fn advice(&self, row: &Row<'_>) -> Option<Advice> {
        let at = at(row.place);
        let mut evidence = Map::new();
        let (id, text) = match row.cause {
            Cause::Serial => ("serial_part", self.serial(row)),
            Cause::NarrowTeam => self.narrow(row, &at, &mut evidence),
            Cause::Imbalance if row.sums.around_single > 0 => (
                "region_in_single",
                format!("the region {at} starts inside a single or masked region while the outer team waits: start the parallel region outside of the single or masked region"),
            ),
            Cause::Imbalance if let Within::One(around) = &row.sums.alone_inside => (
                "load_imbalance",
                format!(
                    "threads finish the work {} at different times, because the nested region {at} runs on one thread: divide the work {} more evenly, or run the nested region on more threads (OMP_MAX_ACTIVE_LEVELS)",
                    super::at(around),
                    super::at(around)
                ),
            ),
            Cause::Imbalance if row.sums.is_single && self.has_tasks() => (
                "single_creator",
                format!("one thread creates the tasks {at} while the other threads wait: create the tasks on several threads, or make the tasks larger"),
            ),
            Cause::Imbalance if row.sums.is_single => (
                "single_serialises",
                format!("one thread works in the single region {at} while the other threads wait: add nowait, or divide the work of this region among threads"),
            ),
            Cause::Imbalance if row.sums.tasks > 0 => self.tasks(row, &at),
            Cause::Imbalance => {
                let schedule = row.sums.schedules.iter().next().or_else(|| self.schedule_of_combined(row.place));
                let advice = match schedule {
                    Some(&"static") => "try schedule(dynamic)",
                    Some(&"dynamic" | &"guided") => "try smaller chunks, or start the longest iterations first",
                    None if self.part.hides_static_loops() => {
                        "if this loop is schedule(static), try schedule(dynamic); otherwise divide the work more evenly, or use tasks"
                    }
                    _ => "divide the work more evenly, or use tasks",
                };
                let what = match &*row.place.construct {
                    "barrier" => "reach the barrier",
                    _ => "finish the work",
                };
                ("load_imbalance", format!("threads {what} {at} at different times: {advice}"))
            }
            Cause::TaskStarvation => self.tasks(row, &at),
            Cause::TaskWait => (
                "taskwait_chain",
                format!("threads wait for tasks {at} and have no other task to run: create more tasks before the wait"),
            ),
            Cause::Lock | Cause::Critical | Cause::Atomic => self.mutex(row, &at, &mut evidence),
            Cause::Ordered => (
                "ordered_serialises",
                format!("threads wait for their turn in the ordered region {at}: do less work in this region, or remove the region"),
            ),
            // The first time, the runtime makes its threads.
            Cause::Fork if row.sums.visits < MIN_WAKE_UPS => return None,
            Cause::Fork
                if self.part.keeps_processors_busy() != Some(false)
                    && let Some((threads, processors)) = self.part.oversubscribed() =>
            {
                evidence.insert("threads".to_owned(), threads.into());
                evidence.insert("processors".to_owned(), processors.into());
                let shared = match processors {
                    1 => "one CPU".to_owned(),
                    _ => format!("{processors} CPUs"),
                };
                (
                    "oversubscription",
                    format!("threads start the region {at} late, because {threads} threads share {shared}: set OMP_NUM_THREADS={processors}, or give the process more CPUs"),
                )
            }
            // They were ready to run, and others had the CPUs: that says nothing of the program.
            Cause::Fork if self.part.starved().is_some() => return None,
            // Who spins keeps a processor from those who work.
            Cause::Fork if self.part.oversubscribed().is_some() => (
                "late_wake_up",
                format!("threads start the region {at} late: merge adjacent regions"),
            ),
            Cause::Fork => (
                "late_wake_up",
                format!("threads start the region {at} late: merge adjacent regions, or set OMP_WAIT_POLICY=active on dedicated CPUs"),
            ),
            Cause::Target if is_small_kernel(row.sums) => {
                evidence.insert("kernels".to_owned(), row.sums.kernels.into());
                let mean = row.sums.kernels_ns / row.sums.timed_kernels.max(1);
                evidence.insert("kernel_mean_ns".to_owned(), mean.into());
                (
                    "small_kernels",
                    format!("the kernels {at} run for {mean} ns on average, which is less than the time to launch a kernel: do more work in each kernel, or run this code on the host"),
                )
            }
            Cause::Target => (
                "target_wait",
                format!("the host waits for the device {at}: overlap host and device work with nowait and depend clauses, and map data only once"),
            ),
            Cause::Reduction => (
                "reduction_cost",
                format!("threads spend much time on combining the results of a reduction {at}: reduce less often, or reduce smaller arrays"),
            ),
            Cause::ExternalWait => {
                evidence.insert("waits".to_owned(), row.sums.external_waits.into());
                if let Within::One(object @ 1..) = row.sums.object {
                    evidence.insert("object".to_owned(), format!("{object:#x}").into());
                }
                ("external_wait", external_wait(row.place, row.sums.object, &at))
            }
            Cause::Preempted => (
                "preempted",
                format!("threads that worked {at} lost their CPU to other threads: start fewer threads, bind them (OMP_PROC_BIND), or leave some CPUs to other programs"),
            ),
            Cause::Tracer => (
                TRACER_DISTURBS,
                "the tracer spends more than 3 % of the threads' time on writing events to the trace: trace fewer events, or write to a faster disk".to_owned(),
            ),
            Cause::Barrier if row.sums.idle_arrivals * 2 > row.sums.arrivals => (
                "needless_barrier",
                format!("threads reach the barrier {at} with almost no work since the previous barrier: remove one of the two barriers, or add nowait"),
            ),
            Cause::Useful
            | Cause::Join
            | Cause::Barrier
            | Cause::Runtime
            | Cause::IdleInMpi
            | Cause::Mpi
            | Cause::MpiWait
            | Cause::MpiTransfer
            | Cause::MpiOther
            | Cause::Unobserved => return None,
        };
        Some(Advice { id, text, evidence })
    }

    fn narrow(&self, row: &Row<'_>, at: &str, evidence: &mut Map<String, Value>) -> (&'static str, String) {
        let requested = self.part.requested.get(row.place).copied().unwrap_or(0);
        if requested == 0 || requested == u32::MAX {
            let text = format!(
                "the region {at} has fewer threads than other regions: raise num_threads, unless the region's loops have too few iterations for more threads"
            );
            return ("narrow_team", text);
        }
        evidence.insert("requested_threads".to_owned(), requested.into());
        let region = self.part.regions.get(row.place);
        let got = region.map_or(0, |region| region.max_team);
        if got > 0 && got < requested {
            evidence.insert("team_threads".to_owned(), got.into());
            let text = format!(
                "the region {at} requests {requested} threads but receives {got}: check OMP_THREAD_LIMIT, OMP_DYNAMIC and nesting"
            );
            return ("false_num_threads", text);
        }
        let text = match u64::from(requested) < self.threads {
            true => format!("the region {at} requests only {requested} threads: raise num_threads"),
            false => format!(
                "the region {at} uses fewer threads than other parts of the program: run other work in parallel with this region"
            ),
        };
        ("narrow_team", text)
    }

    fn mutex(&self, row: &Row<'_>, at: &str, evidence: &mut Map<String, Value>) -> (&'static str, String) {
        let mean = row.sums.held_ns / row.sums.holds.max(1);
        evidence.insert("acquisitions".to_owned(), row.sums.holds.into());
        evidence.insert("contended".to_owned(), row.sums.contended.into());
        evidence.insert("held_mean_ns".to_owned(), mean.into());
        if row.cause == Cause::Critical && row.sums.holds > 0 && mean <= MAX_ATOMIC_NS {
            let text = format!(
                "threads wait for the short critical region {at}: use a reduction, private copies that are merged at the end or, for a single update, an atomic construct"
            );
            return ("critical_for_atomic", text);
        }
        if is_held_in_mpi(row.sums) {
            evidence.insert("held_in_mpi_ns".to_owned(), row.sums.held_in_mpi_ns.into());
            let text = format!(
                "threads wait for a mutex {at} while another thread holds it during MPI calls: let threads call MPI at the same time (MPI_THREAD_MULTIPLE, with tags or communicators of their own), or let one thread make all MPI calls"
            );
            return ("mpi_in_critical", text);
        }
        match row.cause {
            Cause::Critical => (
                "critical_contention",
                format!(
                    "threads wait for the critical region {at}: do less work in this region, give the critical construct a name of its own, or use a reduction"
                ),
            ),
            Cause::Atomic => (
                "atomic_contention",
                format!(
                    "threads wait for the atomic update {at}: use a reduction, or one variable per thread"
                ),
            ),
            _ => (
                "lock_contention",
                format!(
                    "threads wait for the lock that is set {at}: hold the lock for a shorter time, or use several locks"
                ),
            ),
        }
    }

    /// Threads have no task while others run theirs.
    fn tasks(&self, row: &Row<'_>, at: &str) -> (&'static str, String) {
        if row.sums.dependent_tasks * 2 > row.sums.tasks {
            let text = format!(
                "most tasks {at} wait for the tasks on which they depend: make fewer tasks depend on the same data"
            );
            return ("dependence_chain", text);
        }
        if row.sums.tasks > 1 && self.part.taskwaits * 2 > row.sums.tasks {
            let text = format!(
                "the program waits for each task {at} before it creates the next task: create several tasks, then wait for all of them"
            );
            return ("taskwait_chain", text);
        }
        (
            "too_few_tasks",
            format!(
                "threads at a barrier have no task to run while other threads run tasks {at}: create more and smaller tasks"
            ),
        )
    }
}

/// Advice about a wait that is not OpenMP's. `object`: the address of what is waited for, or a file descriptor.
fn external_wait(place: &Place, object: Within<u64>, at: &str) -> String {
    let name = place.construct_name();
    let what = split_place(name.strip_prefix("wait: ").unwrap_or(&name)).0;
    let address = match object {
        Within::One(address @ 1..) => format!(" {address:#x}"),
        _ => String::new(),
    };
    let descriptor = match object {
        Within::One(descriptor) => format!(" on file descriptor {descriptor}"),
        _ => String::new(),
    };
    const IN_AND_OUT: &str =
        "transfer more data per call, or let one thread do the input and output while the other threads work";
    let (what, remedy) = match what {
        "sleep" => (
            "sleep".to_owned(),
            "instead of sleeping, wait for the expected event itself, for example with a condition variable, or do other work",
        ),
        "poll" => ("wait for input or output".to_owned(), IN_AND_OUT),
        "read" | "write" | "socket receive" | "socket send" | "accept" | "connect" => {
            (format!("wait in {what}{descriptor}"), IN_AND_OUT)
        }
        "pthread join" => {
            ("wait for another thread to end".to_owned(), "join the thread later, or do other work first")
        }
        "pthread mutex" | "pthread rwlock" => (
            format!("wait for the {what}{address}"),
            "hold the lock for a shorter time, or protect parts of the data with separate locks",
        ),
        _ => (
            format!("wait for the {what}{address}"),
            "let the other thread signal sooner, or do other work while waiting",
        ),
    };
    format!("threads {what} {at}: {remedy}")
}
