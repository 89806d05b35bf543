//! The rules about time lost at one place, in words.

use serde_json::{Map, Value};

use super::devices::is_small_kernel;
use super::rules::{MAX_ATOMIC_NS, MIN_WAKE_UPS, TRACER_DISTURBS};
use super::{Advice, Case, Row, at};
use crate::model::cause::Cause;

impl Case<'_> {
    pub(super) fn advice(&self, row: &Row<'_>) -> Option<Advice> {
        let at = at(row.place);
        let mut evidence = Map::new();
        let (id, text) = match row.cause {
            Cause::Serial => (
                "serial_part",
                format!("{} runs on one thread while the others wait: parallelise it", row.place.construct),
            ),
            Cause::NarrowTeam => self.narrow(row, &at, &mut evidence),
            Cause::Imbalance if row.sums.around_single > 0 => (
                "region_in_single",
                format!("the region {at} is opened in a single or masked region while the team around it waits: open it outside"),
            ),
            Cause::Imbalance if row.sums.is_single && self.has_tasks() => (
                "single_creator",
                format!("one thread creates tasks {at} while others wait: create them in parallel, or make them larger"),
            ),
            Cause::Imbalance if row.sums.is_single => (
                "single_serialises",
                format!("one thread works in a single region {at} while others wait: add nowait, or share the work"),
            ),
            Cause::Imbalance if row.sums.tasks > 0 => self.tasks(row, &at),
            Cause::Imbalance => {
                let schedule = row.sums.schedules.iter().next();
                let advice = match schedule {
                    Some(&"static") => "try schedule(dynamic) or schedule(guided)",
                    Some(&"dynamic" | &"guided") => "try smaller chunks, or the longest iterations first",
                    None if self.part.hides_static_loops() => {
                        "if this loop is schedule(static), try schedule(dynamic); else share the work evenly, or let tasks do it"
                    }
                    _ => "share the work evenly, or let tasks do it",
                };
                ("load_imbalance", format!("threads wait for those that work longer {at}: {advice}"))
            }
            Cause::TaskStarvation => self.tasks(row, &at),
            Cause::TaskWait => (
                "taskwait_chain",
                format!("threads wait for tasks {at} and have no other to run: create more tasks before the wait"),
            ),
            Cause::Lock | Cause::Critical | Cause::Atomic => self.mutex(row, &at, &mut evidence),
            Cause::Ordered => (
                "ordered_serialises",
                format!("iterations wait for their turn in the ordered region {at}: do less in it, or drop it"),
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
                    1 => "one processor".to_owned(),
                    _ => format!("{processors} processors"),
                };
                (
                    "oversubscription",
                    format!("threads begin late in the region {at}, as {threads} threads share {shared}: set OMP_NUM_THREADS={processors}, or give the process more processors"),
                )
            }
            // They were ready to run, and others had the processors: that says nothing of the program.
            Cause::Fork if self.part.starved().is_some() => return None,
            // Who spins keeps a processor from those who work.
            Cause::Fork if self.part.oversubscribed().is_some() => (
                "late_wake_up",
                format!("threads begin late in the region {at}: merge regions"),
            ),
            Cause::Fork => (
                "late_wake_up",
                format!("threads begin late in the region {at}: keep them awake (OMP_WAIT_POLICY=active), or merge regions"),
            ),
            Cause::Target if is_small_kernel(row.sums) => {
                evidence.insert("kernels".to_owned(), row.sums.kernels.into());
                let mean = row.sums.kernels_ns / row.sums.timed_kernels.max(1);
                evidence.insert("kernel_mean_ns".to_owned(), mean.into());
                (
                    "small_kernels",
                    format!("the kernels {at} run {mean} ns on average, less than it takes to launch them: do more in each, or stay on the host"),
                )
            }
            Cause::Target => (
                "target_wait",
                format!("the host waits for the device {at}: use nowait and depend to overlap them, and map data once"),
            ),
            Cause::Reduction => (
                "reduction_cost",
                format!("threads combine results {at}: reduce less often, or smaller arrays"),
            ),
            Cause::Preempted => (
                "preempted",
                format!("other threads had the processor of those that worked {at}: start fewer threads, bind them (OMP_PROC_BIND), or leave processors to the other programs"),
            ),
            Cause::Tracer => (
                TRACER_DISTURBS,
                "the tracer's own writing takes more than 1 % of the threads' time: trace fewer events, or to a faster disk".to_owned(),
            ),
            Cause::Barrier if row.sums.idle_arrivals * 2 > row.sums.arrivals => (
                "needless_barrier",
                format!("threads arrive at the barrier {at} with next to no work since the one before: remove one, or add nowait"),
            ),
            Cause::Useful
            | Cause::Join
            | Cause::Barrier
            | Cause::Runtime
            | Cause::Unobserved => return None,
        };
        Some(Advice { id, text, evidence })
    }

    fn narrow(&self, row: &Row<'_>, at: &str, evidence: &mut Map<String, Value>) -> (&'static str, String) {
        let requested = self.part.requested.get(row.place).copied().unwrap_or(0);
        if requested == 0 || requested == u32::MAX {
            let text = format!(
                "the region {at} has fewer threads than others: check num_threads and the loop's length"
            );
            return ("narrow_team", text);
        }
        evidence.insert("requested_threads".to_owned(), requested.into());
        let region = self.part.regions.get(row.place);
        let got = region.map_or(0, |region| region.max_team);
        if got > 0 && got < requested {
            evidence.insert("team_threads".to_owned(), got.into());
            let text = format!(
                "the region {at} asks for {requested} threads and gets {got}: check OMP_THREAD_LIMIT, OMP_DYNAMIC and nesting"
            );
            return ("false_num_threads", text);
        }
        let text = match u64::from(requested) < self.threads {
            true => format!("the region {at} asks for {requested} threads only: raise num_threads"),
            false => format!(
                "the region {at} runs while fewer threads are busy than at other times: start other work beside it"
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
            let text = format!("threads wait for the short critical region {at}: try atomic or reduction");
            return ("critical_for_atomic", text);
        }
        match row.cause {
            Cause::Critical => (
                "critical_contention",
                format!(
                    "threads wait for the critical region {at}: do less in it, name it apart, or use a reduction"
                ),
            ),
            Cause::Atomic => (
                "atomic_contention",
                format!(
                    "threads wait for the atomic update {at}: use a reduction, or a variable for each thread"
                ),
            ),
            _ => (
                "lock_contention",
                format!(
                    "threads wait for the lock that is set {at}: hold it for less time, or use several locks"
                ),
            ),
        }
    }

    /// Threads have no task while others run theirs.
    fn tasks(&self, row: &Row<'_>, at: &str) -> (&'static str, String) {
        if row.sums.dependent_tasks * 2 > row.sums.tasks {
            let text = format!(
                "most tasks {at} wait for others that they depend on: let fewer depend on the same data"
            );
            return ("dependence_chain", text);
        }
        if row.sums.tasks > 1 && self.part.taskwaits * 2 > row.sums.tasks {
            let text =
                format!("each task {at} is waited for before the next is created: create several, then wait");
            return ("taskwait_chain", text);
        }
        (
            "too_few_tasks",
            format!(
                "threads at a barrier have no task while others run theirs {at}: create more and smaller tasks"
            ),
        )
    }
}
