//! The rules of findings and their thresholds, as `docs/analysis.md` has them.

use super::pages;

/// A rule that finds something.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its id, which stays the same.
    pub id: &'static str,
    /// What it finds, in a few words: the title of its page and of its findings.
    pub title: &'static str,
    /// When it applies beside a gain of 3 % of the wall time.
    pub when: &'static str,
}

impl Rule {
    /// Its page, in Markdown: what it means, code before and after, and when it is wrong.
    pub fn page(&self) -> &'static str {
        pages::of(self.id)
    }

    /// The rule that has this id.
    pub fn by_id(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }
}

/// All rules. `docs/analysis.md` has the same table, with [`MIN_GAIN`] before it.
pub const RULES: &[Rule] = &[
    Rule {
        id: "load_imbalance",
        title: "Load imbalance",
        when: "threads finish the work at this location at different times, and the spread is too large to be due to chance",
    },
    Rule {
        id: "single_serialises",
        title: "Threads wait for a single region",
        when: "the other threads of the team wait for the thread that executes a `single` region",
    },
    Rule {
        id: "region_in_single",
        title: "Parallel region inside a single region",
        when: "like single_serialises, but a parallel region starts inside a `single` or `masked` region",
    },
    Rule {
        id: "single_creator",
        title: "One thread creates all tasks",
        when: "like single_serialises, but the program has explicit tasks",
    },
    Rule {
        id: "serial_part",
        title: "Serial code",
        when: "one thread executes serial code before this region, while the other threads wait. Serial code at the start or end of the program is reported only if it takes longer than a process normally takes to start",
    },
    Rule {
        id: "serial_function",
        title: "Function that only runs serially",
        when: "according to samples, a function of the program runs only in serial code and takes at least 250 ms and 10 % of all CPU time",
    },
    Rule {
        id: "user_spinning",
        title: "Busy waiting in the program",
        when: "according to samples, a function spends at least 50 ms and 5 % of all CPU time on flushes or on testing whether a lock is free",
    },
    Rule {
        id: "memory_bound",
        title: "Code that waits for memory",
        when: "according to counters, threads execute fewer than 0.5 instructions per cycle in a construct. If cache misses were counted, the finding also requires at least 10 misses per 1000 instructions. If only stalled cycles were counted, the back end must be stalled in at least half of the cycles",
    },
    Rule {
        id: "narrow_team",
        title: "Region with few threads",
        when: "the region, including all regions nested in the region, has fewer than N threads (N is the peak number of threads)",
    },
    Rule {
        id: "false_num_threads",
        title: "Fewer threads than requested",
        when: "like narrow_team, but the region requests more threads than it receives",
    },
    Rule {
        id: "nested_oversubscription",
        title: "Nested regions with too many threads",
        when: "the start, the end and the barriers of a nested region cost time while more threads are busy than there are CPUs, and all CPUs are busy",
    },
    Rule {
        id: "critical_contention",
        title: "Contention for a critical region",
        when: "threads wait for a critical region",
    },
    Rule {
        id: "critical_for_atomic",
        title: "Short critical region",
        when: "like critical_contention, but an execution of the region takes 500 ns or less on average",
    },
    Rule { id: "lock_contention", title: "Contention for a lock", when: "threads wait for a lock" },
    Rule {
        id: "atomic_contention",
        title: "Contention for an atomic update",
        when: "threads wait for an atomic update",
    },
    Rule {
        id: SEVERAL_MUTEXES,
        title: "Contention for several mutexes",
        when: "threads wait for several mutexes, and removing all these waits at once would save more than the sum of the savings for each mutex alone",
    },
    Rule {
        id: "ordered_serialises",
        title: "Threads wait for an ordered region",
        when: "threads wait for their turn in an ordered region",
    },
    Rule {
        id: "too_few_tasks",
        title: "Too few tasks",
        when: "threads at a barrier have no task to run while other threads still run tasks, and these waits are too long to be due to chance",
    },
    Rule {
        id: "taskwait_chain",
        title: "Tasks that are waited for one by one",
        when: "like too_few_tasks, but the program creates, on average, fewer than two tasks before each taskwait",
    },
    Rule {
        id: "dependence_chain",
        title: "Tasks in a chain of dependences",
        when: "like too_few_tasks, but most tasks wait for the tasks on which they depend",
    },
    Rule {
        id: TASKS_TOO_FINE,
        title: "Tasks are too small",
        when: "there are more than 1000 tasks, which take less than 5 us on average, and the cost of creating, fetching and awaiting the tasks is at least 25 % of the time spent on their work",
    },
    Rule {
        id: "region_too_small",
        title: "Region is too small",
        when: "the region is executed at least twice, and each thread works for less than 20 us per execution on average",
    },
    Rule {
        id: "needless_barrier",
        title: "Barrier without work before it",
        when: "a barrier costs time, and most threads reach this barrier after less than 1 us of work since the previous barrier",
    },
    Rule {
        id: "chunk_too_small",
        title: "Chunks are too small",
        when: "a loop has more than 1000 chunks, which take less than 2 us on average",
    },
    Rule {
        id: "late_wake_up",
        title: "Late thread start-up",
        when: "threads start to work late in a region that is executed at least 10 times",
    },
    Rule {
        id: "oversubscription",
        title: "More threads than CPUs",
        when: "like late_wake_up, but the process has more threads than CPUs, and all CPUs are busy",
    },
    Rule {
        id: "rank_imbalance",
        title: "Ranks with unequal work",
        when: "all ranks of an MPI job have traces, one rank spends more time outside MPI than the average rank, and other ranks wait for this rank in MPI calls",
    },
    Rule {
        id: "late_sender",
        title: "Messages that are sent late",
        when: "all ranks of an MPI job have traces, a rank waits for messages of another rank, and every rank waits for other ranks at some point of the run",
    },
    Rule {
        id: "idle_during_mpi",
        title: "Idle threads during MPI calls",
        when: "no parallel region is open while a thread is in an MPI call, so the other threads have nothing to do. Parallel regions have work that these threads could do during the call",
    },
    Rule {
        id: "serialised_exchange",
        title: "Messages that wait for each other",
        when: "all ranks of an MPI job have traces, and rank A waits for rank B, because rank B itself first waits for a message from rank C. Every rank waits for other ranks at some point of the run",
    },
    Rule {
        id: "no_overlap",
        title: "Waiting right after starting to communicate",
        when: "all ranks of an MPI job have traces, and a rank waits for requests right after it has started them, and works only after the wait. Every rank waits for other ranks at some point of the run",
    },
    Rule {
        id: "small_messages",
        title: "Many small messages",
        when: "all ranks of an MPI job have traces, and even the rank with the shortest waiting time sends or receives 100 or more messages of up to 4 KiB. These messages could have been combined, because the sender received no message between them",
    },
    Rule {
        id: "unsuccessful_tests",
        title: "Tests for messages that find nothing",
        when: "all ranks of an MPI job have traces, and ranks often call `MPI_Test`, `MPI_Iprobe` or similar functions before a request is complete or a message has arrived. Either a rank works between these calls, and the calls slow down this work, or a rank does little but make such calls, and has work to do afterwards",
    },
    Rule {
        id: "mpi_in_critical",
        title: "MPI calls in a critical region",
        when: "like critical_contention and lock_contention, but threads are in MPI calls for at least half of the time that they hold the mutex",
    },
    Rule {
        id: "oversubscribed_host",
        title: "Processes share CPUs while others are free",
        when: "the processes of a job on one host have more threads than CPUs that they may use, although the host has other CPUs, and threads wait for a CPU",
    },
    Rule {
        id: "target_wait",
        title: "Host waits for the device",
        when: "the host waits in a target construct",
    },
    Rule {
        id: "small_kernels",
        title: "Kernels are too small",
        when: "like target_wait, but at least 100 kernels are started at this location, and these kernels run for less than 10 us on average",
    },
    Rule {
        id: "small_transfers",
        title: "Many small transfers",
        when: "at one source line, the host waits for at least 100 transfers, allocations or other operations on device data, each of less than 64 KiB on average",
    },
    Rule {
        id: "transfers_not_overlapped",
        title: "Transfers do not overlap kernels",
        when: "a device transfers data and runs kernels, and both happen at the same time for less than 20 % of the transfer time or the kernel time, whichever is shorter",
    },
    Rule {
        id: "reduction_cost",
        title: "Expensive reduction",
        when: "threads combine the results of a reduction",
    },
    Rule {
        id: "external_wait",
        title: "Waits outside OpenMP",
        when: "threads wait at this location for something outside OpenMP, as recorded with `--waits`. The finding also includes the time that other threads spend waiting for these threads",
    },
    Rule {
        id: "preempted",
        title: "Threads lose their CPU",
        when: "threads lost their CPU to other threads while they worked at this location",
    },
    Rule {
        id: TRACER_DISTURBS,
        title: "Tracing slows the program down",
        when: "recording and writing events takes more than 3 % of the threads' time. If the trace does not contain the cost of recording an event, only the time spent on writing is counted",
    },
];

/// Regions that are entered less often do not show how threads are woken.
pub(super) const MIN_WAKE_UPS: u64 = 10;

/// A chunk should run longer than this.
pub(super) const MIN_CHUNK_NS: u64 = 2_000;

/// Fewer tasks or chunks cannot be too small.
pub(super) const MIN_GRAINS: u64 = 1000;

/// A task's cost beside its work, as a share of that: less is usual.
pub(super) const MIN_TASK_COST: f64 = 0.25;

/// A task's cost beside its work should be this share of that, or less.
pub(super) const MAX_TASK_COST: f64 = 0.05;

/// So many tasks for each thread keep all of them busy.
pub(super) const TASKS_FOR_EACH: u64 = 16;

/// A finding that gains more than this, times what fine work costs, is about another loss, too.
pub(super) const MAX_OVERRULED: f64 = 1.5;

/// Below this share of the wall time, nothing is worth a finding.
pub(super) const MIN_GAIN: f64 = 0.03;

/// As [`MIN_GAIN`], where few instances show that some threads work longer: a thread that loses its processor once would be enough.
pub(super) const MIN_GAIN_OF_FEW: f64 = 0.1;

/// Instances are few where the heaviest has at least this share of the loss.
pub(super) const MAX_SHARE_OF_ONE: f64 = 0.25;

/// It is the same thread again and again where the heaviest instances are of one thread, and none has this share of the loss.
pub(super) const MAX_SHARE_OF_REPEATED: f64 = 0.5;

/// Where chance may explain a loss, the gain must be larger by this many times what threads take to begin and end regions. A busy
/// machine delays that as it delays work.
pub(super) const DELAYS: f64 = 2.0;

/// A mutex's section that is shorter could be an atomic or a reduction.
pub(super) const MAX_ATOMIC_NS: u64 = 500;

/// A region's threads should work longer than this, each.
pub(super) const MIN_REGION_NS: u64 = 20_000;

/// A task should run longer than this.
pub(super) const MIN_TASK_NS: u64 = 5_000;

/// Fewer kernels or operations on data cannot cost much.
pub(super) const MIN_TARGETS: u64 = 100;

/// A kernel should run longer than this: about what it takes to launch it.
pub(super) const MIN_KERNEL_NS: u64 = 10_000;

/// Operations on data should be of more bytes: a bus moves as many in the time that an operation takes to begin.
pub(super) const MIN_OP_BYTES: u64 = 64 << 10;

/// At least this share of the shorter of kernels and transfers should overlap.
pub(super) const MIN_OVERLAP: f64 = 0.2;

/// Threads that work should execute this many instructions per cycle. Processors of today can do four and more.
pub(super) const MAX_IPC: f64 = 0.5;

/// Cache misses per instruction of code that waits for memory: a miss costs some hundred cycles.
pub(super) const MIN_MISSES: f64 = 0.01;

/// The share of cycles in which code that waits for memory cannot go on.
pub(super) const MIN_STALLED: f64 = 0.5;

/// The tracer should take less of the threads' time.
pub(super) const MAX_TRACER: f64 = MIN_GAIN;

/// The rules about losses that also arise where a thread loses its processor.
pub(super) const CHANCE_EXPLAINS: [&str; 3] = ["load_imbalance", "too_few_tasks", "dependence_chain"];

/// The rules about one thread's work that others wait for. In a program that uses MPI, that may be a wait for other processes.
pub(super) const MAY_BE_MPI: [&str; 5] =
    ["serial_part", "serial_function", "single_serialises", "region_in_single", "single_creator"];

/// The rules about work that need not be done: to leave it out gains more than processors that are busy all the time could give. They
/// are not held to that.
pub(super) const WORKS_LESS: [&str; 4] = ["memory_bound", "user_spinning", "chunk_too_small", TASKS_TOO_FINE];

/// The rule about tasks that are too small.
pub(super) const TASKS_TOO_FINE: &str = "tasks_too_fine";

/// The rule about all mutexes together.
pub(super) const SEVERAL_MUTEXES: &str = "several_mutexes";

/// The rule about the tracer itself, whose share counts and not its gain.
pub(super) const TRACER_DISTURBS: &str = "tracer_disturbs";

#[cfg(test)]
mod tests {
    use super::{RULES, Rule};

    /// Each id of the table is that of a finding, and each id that is followed by its text is in the table.
    #[test]
    fn the_table_has_all_rules() {
        let code = [
            include_str!("mod.rs"),
            include_str!("place_rules.rs"),
            include_str!("counters.rs"),
            include_str!("devices.rs"),
            include_str!("fine_work.rs"),
            include_str!("functions.rs"),
            include_str!("hosts.rs"),
            include_str!("mpi_calls.rs"),
            include_str!("mutexes.rs"),
            include_str!("ranks.rs"),
        ];
        for Rule { id, .. } in RULES {
            let name = match *id {
                super::TRACER_DISTURBS => "TRACER_DISTURBS,",
                super::SEVERAL_MUTEXES => "SEVERAL_MUTEXES,",
                super::TASKS_TOO_FINE => "TASKS_TOO_FINE,",
                id => &format!("\"{id}\""),
            };
            let is_used = code.iter().any(|code| code.contains(name));
            assert!(is_used, "{id} is never reported");
        }
        let advice = include_str!("place_rules.rs").lines().map(str::trim);
        let advice: Vec<&str> = advice.collect();
        for two in advice.windows(2).filter(|two| two[1].starts_with("format!(")) {
            let id = two[0].strip_prefix('"').and_then(|id| id.strip_suffix("\","));
            assert!(id.is_none_or(|id| Rule::by_id(id).is_some()), "{id:?} is not in the table");
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let text = include_str!("../../../docs/analysis.md");
        for Rule { id, when, .. } in RULES {
            let row = format!("| `{id}` | {when} |");
            assert!(text.contains(&row), "docs/analysis.md lacks\n{row}");
        }
        for cause in crate::model::cause::Cause::ALL {
            let row = format!("| `{}` | {} | {} |", cause.name(), cause.title(), cause.meaning());
            assert!(text.contains(&row), "docs/analysis.md lacks\n{row}");
        }
    }
}
