//! Cases: programs with the machines that execute them. The number of a case in a run of the test decides its family and its size.

use std::fmt::{self, Display, Formatter};

use crate::generate::{FAMILIES, Family, generate, has_calls, has_helpers};
use crate::program::{Kind, Program, Schedule, Task};
use crate::random::Random;
use crate::run::Run;
use crate::simulate::{Machine, simulate};
use crate::write::Dialect;

/// Seeds from which programs grow from small to large.
const MILLION: u64 = 1_000_000;
/// Seeds with programs of one size.
const SEEDS_OF_A_SIZE: u64 = 56;
/// Statements of the first programs, about.
const SMALLEST: u64 = 2;
/// Those of the largest.
const LARGEST: u64 = 32;

/// Of this many rounds of all families, one is libgomp's and one is of old runtimes, which take turns.
const ROUNDS_OF_DIALECTS: u64 = 6;

/// Not all that programs have was there when old runtimes were made.
fn dialect(seed: u64, family: Family) -> Dialect {
    let is_old = !(family.dependences || family.detached || family.cancellation || family.untied);
    let round = seed / FAMILIES.len() as u64;
    match (round % ROUNDS_OF_DIALECTS, round / ROUNDS_OF_DIALECTS % 4) {
        (1, _) if !family.detached && !family.cancellation => Dialect::Libgomp,
        (3, 1) if is_old => Dialect::Llvm9,
        // It does not report enough of tasks, and of teams inside others.
        (3, 3) if is_old && !family.tasks && family.depth == 1 => Dialect::Collector,
        // Taskloops of both have tasks that nobody creates, which no number can have.
        (3, 0) if is_old && !family.taskgroups => Dialect::Llvm6,
        (3, 2) if is_old && !family.taskgroups => Dialect::Tr4,
        _ => Dialect::Llvm,
    }
}

/// A program, and the machine that executes it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Case {
    pub seed: u64,
    pub family: &'static str,
    pub program: Program,
    pub machine: Machine,
    /// The runtime whose callbacks the trace has.
    pub dialect: Dialect,
}

impl Case {
    /// The case of a seed, with programs of about `size` statements.
    pub fn of_family(seed: u64, family: Family, size: usize) -> Case {
        let mut random = Random::new(seed ^ 0x006d_6f64_656c);
        let threads = 2 + random.below(3) as usize;
        let spare = 3 * (family.depth - 1);
        let machine = Machine {
            seed,
            threads: threads + spare,
            max_wake_up: if random.chance(70) { 0 } else { 50 },
            is_first_come: random.chance(50),
            reports_ends_late: random.chance(95),
            helpers: 0,
            has_outsider: has_calls(seed) && random.chance(30),
            shares_sections: dialect(seed, family) == Dialect::Libgomp,
        };
        let program = generate(seed, family, threads, size);
        let dialect = dialect(seed, family);
        Case { seed, family: family.name, program, machine, dialect }
    }

    /// The case of a seed: the families take turns, and the first programs of each million seeds are small.
    pub fn new(seed: u64) -> Case {
        let family = FAMILIES[(seed % FAMILIES.len() as u64) as usize];
        let size = SMALLEST + (seed % MILLION / SEEDS_OF_A_SIZE).min(LARGEST - SMALLEST);
        Case::of_family(seed, family, size as usize)
    }

    /// The machine with what the runtime adds: LLVM's may have hidden helpers. With the Collector API, who leaves a barrier reports it.
    fn machine_of_runtime(&self) -> Machine {
        let reports_ends_late = self.machine.reports_ends_late && self.dialect != Dialect::Collector;
        let is_target_task = |kind: &Kind| matches!(kind, Kind::Task(task) if task.is_target());
        let has_helpers =
            self.dialect == Dialect::Llvm && has_helpers(self.seed) && self.program.has(is_target_task);
        // There, a thread that does not say that it is idle is taken for one of the team.
        let has_outsider = self.machine.has_outsider && self.dialect != Dialect::Collector;
        let helpers = if has_helpers { 3 } else { 0 };
        Machine { reports_ends_late, has_outsider, helpers, ..self.machine.clone() }
    }

    /// What it executes; `None` where it waits for itself, or takes no time.
    pub fn run(&self) -> Option<Run> {
        simulate(&self.program, &self.machine_of_runtime()).filter(|run| run.end > 0)
    }

    /// The constructs of the program, by which kinds of differences are known.
    pub fn features(&self) -> Vec<&'static str> {
        let mut features = Vec::new();
        let mut add = |has: bool, name| {
            if has {
                features.push(name);
            }
        };
        let program = &self.program;
        let task =
            |test: fn(&Task) -> bool| program.has(|kind| matches!(kind, Kind::Task(task) if test(task)));
        add(!self.machine.reports_ends_late, "prompt ends");
        add(self.dialect == Dialect::Libgomp, "libgomp");
        add(self.dialect == Dialect::Llvm9, "llvm 9");
        add(self.dialect == Dialect::Llvm6, "llvm 6");
        add(self.dialect == Dialect::Tr4, "tr4");
        add(self.dialect == Dialect::Collector, "collector");
        add(self.machine_of_runtime().helpers > 0, "helpers");
        add(self.machine.has_outsider, "outsider");
        add(program.widest() == 1, "one thread");
        add(program.depth() > 1, "nested");
        add(program.has(|kind| matches!(kind, Kind::For { .. })), "for");
        let is_static = |kind: &Kind| matches!(kind, Kind::For { schedule: Schedule::Static, .. });
        let is_in_turn = |kind: &Kind| matches!(kind, Kind::For { schedule: Schedule::StaticChunks(_), .. });
        add(program.has(is_static), "static");
        add(program.has(is_in_turn), "static chunks");
        add(program.has(|kind| matches!(kind, Kind::Ordered { .. })), "ordered");
        add(program.has(|kind| matches!(kind, Kind::Doacross { .. })), "doacross");
        add(program.has(|kind| matches!(kind, Kind::Sections { .. })), "sections");
        add(program.has(|kind| matches!(kind, Kind::Single { .. })), "single");
        add(program.has(|kind| matches!(kind, Kind::Single { nowait: true, .. })), "single nowait");
        add(program.has(|kind| matches!(kind, Kind::Masked { .. })), "masked");
        add(program.has(|kind| matches!(kind, Kind::Exclusive { .. })), "mutex");
        add(program.has(|kind| matches!(kind, Kind::For { reduction: Some(_), .. })), "reduction");
        add(program.has(|kind| matches!(kind, Kind::Target { .. })), "target");
        add(program.has(|kind| matches!(kind, Kind::Call { .. })), "mpi");
        add(program.has(|kind| matches!(kind, Kind::Task(_) | Kind::Taskloop { .. })), "task");
        add(task(|task| task.untied), "untied");
        add(task(|task| task.undeferred || task.is_final), "undeferred");
        add(task(|task| task.detach.is_some()), "detach");
        add(task(|task| !task.depend.is_empty()), "depend");
        add(task(|task| task.body.iter().any(|inner| matches!(inner.kind, Kind::Task(_)))), "grandchild");
        add(program.has(|kind| matches!(kind, Kind::Taskwait { .. })), "taskwait");
        add(program.clone().drop_waits_elsewhere(), "taskwait elsewhere");
        add(
            program.has(|kind| matches!(kind, Kind::Taskwait { depend } if !depend.is_empty())),
            "taskwait depend",
        );
        add(program.has(|kind| matches!(kind, Kind::Taskgroup { .. } | Kind::Taskloop { .. })), "taskgroup");
        add(program.has(|kind| matches!(kind, Kind::Taskyield)), "taskyield");
        add(program.has(|kind| matches!(kind, Kind::CancelTaskgroup)), "cancel");
        features
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Machine { threads, max_wake_up, is_first_come, reports_ends_late, .. } = self.machine;
        let runtime = self.dialect.name();
        writeln!(
            f,
            "seed {} of family \"{}\", {runtime} on {threads} threads; wake-ups take up to {} ns; tasks begin {}; workers report ends {}",
            self.seed,
            self.family,
            max_wake_up.max(1),
            if is_first_come { "in order" } else { "in any order" },
            if reports_ends_late { "late" } else { "promptly" }
        )?;
        write!(f, "{}", self.program)
    }
}
