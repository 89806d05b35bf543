//! Random OpenMP programs in C that count their own constructs.
//!
//! A program is made of a seed and of what the runtime can do ([`Feature`]). Every construct first counts itself, on the
//! thread that encounters it, in an atomic variable. A task that may be cancelled counts that it runs when it does. At its end the program prints all counts. Nothing in it
//! depends on time: a program ends on any number of threads, and prints the same in each run.

use std::fmt::Write as _;

use crate::random::Random;

/// A feature that a program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `taskwait depend`.
    TaskwaitDepend,
    /// `depend` on a task that is not deferred.
    UndeferredDepend,
    /// `single` in a region that is nested in another one.
    NestedSingle,
    /// `task detach` where a team may have one thread.
    DetachAlone,
    /// `task detach` in any team.
    Detach,
    /// `task detach` that may not be deferred, and whose event a later task fulfils.
    FulfilledLater,
    /// `teams` on the host.
    Teams,
    /// `depend(mutexinoutset)`.
    Mutexinoutset,
    /// `task untied` where a team may have one thread.
    UntiedAlone,
    /// `cancel for` in a loop whose iterations are given out while it runs.
    CancelledDynamicLoop,
    /// A loop that creates tasks in `task untied`.
    LoopInUntied,
    /// `task detach` in `task untied`.
    DetachInUntied,
    /// `taskyield` in `task untied`.
    YieldInUntied,
}

/// A compiler with a runtime, and what of all features it cannot do: programs are made without it.
#[derive(Debug)]
pub struct Target {
    /// The compiler's and the runtime's names.
    pub name: &'static str,
    /// The features that programs leave out, and why.
    pub left_out: &'static [(Feature, &'static str)],
    /// The counts that it does not report, and that a trace need not have.
    pub unreported: &'static [&'static str],
}

/// Code of clang on LLVM's runtime.
pub const CLANG: Target = Target {
    name: "clang on LLVM 19",
    left_out: &[
        (
            Feature::UntiedAlone,
            "LLVM 19 starts the parts of such a task within each other, until the stack is full",
        ),
        (
            Feature::LoopInUntied,
            "clang loses the loop's variable where the task goes on: it creates some hundred tasks, or two",
        ),
        (
            Feature::DetachInUntied,
            "clang loses the event of a block where the task goes on: to fulfill it is a wild access",
        ),
        (
            Feature::YieldInUntied,
            "LLVM goes on there with the task around, which may wait for the yielding one below it: a deadlock",
        ),
        (Feature::DetachAlone, "LLVM 19 fails an assertion where the team meets at two barriers after that"),
        (
            Feature::CancelledDynamicLoop,
            "LLVM 19 keeps the cancelled loop's buffer: a later loop fails an assertion, or crashes",
        ),
    ],
    unreported: &[],
};

/// Code of clang on another runtime, none of which was tried with all that LLVM 19 can do.
pub const CLANG_ELSEWHERE: Target = Target {
    name: "clang on another runtime",
    left_out: &[
        (Feature::UntiedAlone, "as on LLVM 19"),
        (Feature::LoopInUntied, "as on LLVM 19"),
        (Feature::DetachInUntied, "as on LLVM 19"),
        (Feature::YieldInUntied, "as on LLVM 19"),
        (Feature::DetachAlone, "as on LLVM 19"),
        (Feature::CancelledDynamicLoop, "as on LLVM 19"),
        (Feature::Teams, "Intel's runtimes and LLVM's older ones report no region of the teams"),
    ],
    unreported: &[],
};

/// Code of GCC on LLVM's runtime, which `omptrace record --libomp` puts in libgomp's place.
pub const GCC_ON_LLVM: Target = Target {
    name: "GCC on LLVM 19 in libgomp's place",
    left_out: &[
        (Feature::CancelledDynamicLoop, "as with clang; a later loop also loses iterations"),
        (Feature::Detach, "LLVM's runtime has no omp_fulfill_event of libgomp's version"),
        (Feature::Teams, "LLVM's runtime lacks GOMP_teams4, and reports no region of the teams"),
        (Feature::Mutexinoutset, "LLVM's runtime loses a task of GCC's code with it"),
    ],
    // GCC makes loops and sections of its own, and LLVM's functions for GCC do not know explicit barriers.
    unreported: &["loops", "sections", "barriers", "taskloops"],
};

/// Code of GCC, which `omptrace record` observes on libgomp.
pub const GCC: Target = Target {
    name: "GCC on libgomp",
    left_out: &[(
        Feature::FulfilledLater,
        "who creates the task waits for its event, and does not come to the task that fulfils it",
    )],
    // GCC makes static loops and sections of its own, and calls one function for explicit and implicit barriers. To libgomp,
    // waits for dependences are taskwaits.
    unreported: &["loops", "sections", "barriers", "taskloops", "taskwaits"],
};

/// The counts of a program, in the order in which it prints them.
pub const COUNTS: &[&str] = &[
    "regions",
    "leagues",
    "tasks",
    "tasks_run",
    "criticals",
    "ordered",
    "locks",
    "loops",
    "sections",
    "singles",
    "taskloops",
    "taskwaits",
    "taskgroups",
    "barriers",
];

/// Constructs within each other.
const MAX_DEPTH: u32 = 4;
/// Constructs of a program, about.
const MAX_CONSTRUCTS: u32 = 60;

/// The program of `seed`.
pub fn program(seed: u64, target: &Target) -> String {
    let mut writer = Writer {
        random: Random::of(seed),
        target,
        text: String::new(),
        indent: 1,
        left: MAX_CONSTRUCTS,
        names: 0,
    };
    for _ in 0..writer.below(3) + 2 {
        if writer.can(Feature::Teams) && writer.one_in(6) {
            writer.teams();
        } else {
            writer.region(0, None);
        }
    }
    let counters = COUNTS.join(", ");
    let print: String =
        COUNTS.iter().map(|name| format!("  printf(\"{name} %ld\\n\", (long){name});\n")).collect();
    format!(
        "/* Seed {seed}, for {}. */\n\
         #include <omp.h>\n\
         #include <stdatomic.h>\n\
         #include <stdio.h>\n\n\
         static _Atomic long {counters};\n\
         static _Atomic long sum;\n\
         static omp_lock_t lock;\n\
         static int cells[8];\n\n\
         static void work(int n) {{ sum += n; }}\n\n\
         int main(void) {{\n  omp_init_lock(&lock);\n{}  omp_destroy_lock(&lock);\n\
         {print}  printf(\"sum %ld\\n\", (long)sum);\n  return (int)(sum % 100);\n}}\n",
        target.name, writer.text
    )
}

struct Writer<'t> {
    random: Random,
    target: &'t Target,
    text: String,
    indent: usize,
    /// Constructs that may still come.
    left: u32,
    names: u32,
}

/// The surroundings of a statement.
#[derive(Clone, Copy)]
struct Place {
    /// Constructs around it.
    depth: u32,
    /// Parallel regions around it.
    regions: u32,
    /// A team around it may have one thread.
    may_be_alone: bool,
    /// A task around it may be final: its tasks are not deferred.
    may_be_included: bool,
    /// The task that it is a statement of is untied.
    is_in_untied: bool,
}

impl Place {
    fn inner(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.random.one_in(many)
    }

    fn can(&self, feature: Feature) -> bool {
        !self.target.left_out.iter().any(|(out, _)| *out == feature)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * self.indent);
    }

    fn count(&mut self, name: &str) {
        debug_assert!(COUNTS.contains(&name));
        self.line(&format!("{name}++;"));
    }

    fn block(&mut self, inside: impl FnOnce(&mut Self)) {
        self.line("{");
        self.indent += 1;
        inside(self);
        self.indent -= 1;
        self.line("}");
    }

    /// Counts a task that nothing cancels.
    fn task_that_runs(&mut self) {
        self.count("tasks");
        self.count("tasks_run");
    }

    /// True while another construct may come.
    fn takes(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    fn some_work(&mut self) {
        let amount = self.below(9) + 1;
        self.line(&format!("work({amount});"));
    }

    fn region(&mut self, depth: u32, around: Option<Place>) {
        let threads = match around {
            None => self.below(4) + 1,
            Some(_) => self.below(2) + 2,
        };
        let place = Place {
            depth,
            regions: around.map_or(1, |around| around.regions + 1),
            // The runtime may give a nested region fewer threads than it asks for.
            may_be_alone: threads == 1 || around.is_some(),
            may_be_included: false,
            is_in_untied: false,
        };
        self.count("regions");
        self.line(&format!("#pragma omp parallel num_threads({threads})"));
        self.block(|writer| {
            for _ in 0..writer.below(4) + 1 {
                writer.team_statement(place.inner());
            }
        });
    }

    fn teams(&mut self) {
        self.count("leagues");
        self.line("#pragma omp teams num_teams(2) thread_limit(2)");
        self.block(Writer::some_work);
    }

    /// A statement that all threads of a team execute.
    fn team_statement(&mut self, place: Place) {
        if !self.takes() || place.depth > MAX_DEPTH {
            return self.some_work();
        }
        match self.below(11) {
            0 => self.worksharing_loop(),
            1 => self.ordered_loop(),
            2 => self.cancelled_loop(),
            3 => self.sections(place),
            4 | 5 if place.regions == 1 || self.can(Feature::NestedSingle) => self.single(place),
            6 => self.barrier(),
            7 if place.regions < 2 => self.region(place.depth, Some(place)),
            8 => self.master(place),
            _ => self.task_statement(place),
        }
    }

    fn schedule(&mut self) -> &'static str {
        ["static", "static, 2", "dynamic", "dynamic, 3", "guided"][self.below(5) as usize]
    }

    fn worksharing_loop(&mut self) {
        // Compilers drop a loop without iterations.
        let (schedule, times) = (self.schedule(), self.below(12) + 1);
        let nowait = if self.one_in(3) { " nowait" } else { "" };
        self.count("loops");
        self.line(&format!("#pragma omp for schedule({schedule}){nowait}"));
        self.line(&format!("for (int i = 0; i < {times}; i++)"));
        self.line("  work(i);");
    }

    fn ordered_loop(&mut self) {
        let (schedule, times) = (self.schedule(), self.below(6) + 1);
        self.count("loops");
        self.line(&format!("#pragma omp for ordered schedule({schedule})"));
        self.line(&format!("for (int i = 0; i < {times}; i++)"));
        self.block(|writer| {
            writer.count("ordered");
            writer.line("#pragma omp ordered");
            writer.line("work(i);");
        });
    }

    /// Which iterations run is not known, so that they do nothing.
    fn cancelled_loop(&mut self) {
        let at = self.below(8);
        self.count("loops");
        let schedule = match self.can(Feature::CancelledDynamicLoop) {
            true => self.schedule(),
            false => "static",
        };
        self.line(&format!("#pragma omp for schedule({schedule})"));
        self.line("for (int i = 0; i < 8; i++)");
        self.block(|writer| {
            writer.line(&format!("#pragma omp cancel for if (i == {at})"));
            writer.line("#pragma omp cancellation point for");
        });
    }

    fn sections(&mut self, place: Place) {
        self.count("sections");
        self.line("#pragma omp sections");
        self.block(|writer| {
            for _ in 0..writer.below(3) + 1 {
                writer.line("#pragma omp section");
                writer.block(|writer| writer.task_statements(place.inner()));
            }
        });
    }

    fn single(&mut self, place: Place) {
        let nowait = if self.one_in(3) { " nowait" } else { "" };
        self.count("singles");
        self.line(&format!("#pragma omp single{nowait}"));
        self.block(|writer| writer.task_statements(place.inner()));
    }

    fn master(&mut self, place: Place) {
        self.line("#pragma omp master");
        self.block(|writer| writer.task_statements(place.inner()));
    }

    fn barrier(&mut self) {
        self.count("barriers");
        self.line("#pragma omp barrier");
    }

    fn task_statements(&mut self, place: Place) {
        for _ in 0..self.below(4) + 1 {
            self.task_statement(place);
        }
    }

    /// A statement that a thread executes for itself.
    fn task_statement(&mut self, place: Place) {
        if !self.takes() || place.depth > MAX_DEPTH {
            return self.some_work();
        }
        match self.below(13) {
            0..=3 => self.task(place),
            4 => self.taskwait(),
            5 => self.taskgroup(place),
            6 if !place.is_in_untied || self.can(Feature::LoopInUntied) => self.cancelled_taskgroup(),
            7 => self.taskloop(),
            8 => self.critical(),
            9 => self.locked(),
            10 if place.regions < 2 => self.region(place.depth, Some(place)),
            11 => self.detached(place),
            _ => {
                self.some_work();
                if !place.is_in_untied || self.can(Feature::YieldInUntied) {
                    self.line("#pragma omp taskyield");
                }
            }
        }
    }

    fn task(&mut self, place: Place) {
        let mut clauses = String::new();
        let mut inner = Place { is_in_untied: false, ..place.inner() };
        // Not deferred, or perhaps not.
        let mut undeferred = place.may_be_included;
        match self.below(6) {
            0 => {
                clauses.push_str(" if (0)");
                undeferred = true;
            }
            1 => {
                clauses.push_str(" final(1)");
                undeferred = true;
                inner.may_be_included = true;
            }
            2 => clauses.push_str(" mergeable"),
            3 if !place.may_be_alone || self.can(Feature::UntiedAlone) => {
                clauses.push_str(" untied");
                inner.is_in_untied = true;
            }
            4 => clauses.push_str(" priority(1)"),
            _ => {}
        }
        // In a team of one, no task is deferred.
        undeferred |= place.may_be_alone;
        if self.one_in(2) && (!undeferred || self.can(Feature::UndeferredDepend)) {
            let types = match self.can(Feature::Mutexinoutset) {
                true => &["in", "out", "inout", "mutexinoutset"][..],
                false => &["in", "out", "inout"],
            };
            let kind = types[self.below(types.len() as u64) as usize];
            let cell = self.below(8);
            let _ = write!(clauses, " depend({kind}: cells[{cell}])");
        }
        self.task_that_runs();
        self.line(&format!("#pragma omp task{clauses}"));
        self.block(|writer| {
            writer.some_work();
            for _ in 0..writer.below(3) {
                writer.task_statement(inner);
            }
        });
    }

    fn taskwait(&mut self) {
        if self.can(Feature::TaskwaitDepend) && self.one_in(2) {
            let cell = self.below(8);
            return self.line(&format!("#pragma omp taskwait depend(in: cells[{cell}])"));
        }
        self.count("taskwaits");
        self.line("#pragma omp taskwait");
    }

    fn taskgroup(&mut self, place: Place) {
        self.count("taskgroups");
        self.line("#pragma omp taskgroup");
        self.block(|writer| writer.task_statements(place.inner()));
    }

    /// Which tasks run is not known, so that they do nothing.
    fn cancelled_taskgroup(&mut self) {
        let (tasks, at) = (self.below(4) + 2, self.below(3));
        self.count("taskgroups");
        self.line("#pragma omp taskgroup");
        self.block(|writer| {
            writer.line(&format!("for (int i = 0; i < {tasks}; i++)"));
            writer.block(|writer| {
                writer.count("tasks");
                writer.line("#pragma omp task");
                writer.block(|writer| {
                    writer.count("tasks_run");
                    writer.line(&format!("#pragma omp cancel taskgroup if (i == {at})"));
                });
            });
        });
    }

    /// A taskloop with as many tasks as it asks for, since it has more iterations.
    fn taskloop(&mut self) {
        let (tasks, times) = (self.below(3) + 2, self.below(6) + 5);
        let nogroup = self.one_in(3);
        if !nogroup {
            self.count("taskgroups");
        }
        self.count("taskloops");
        self.line(&format!("tasks += {tasks};"));
        self.line(&format!("tasks_run += {tasks};"));
        let clause = if nogroup { " nogroup" } else { "" };
        self.line(&format!("#pragma omp taskloop num_tasks({tasks}){clause}"));
        self.line(&format!("for (int i = 0; i < {times}; i++)"));
        self.line("  work(i);");
    }

    fn critical(&mut self) {
        let name = ["one", "other"][self.below(2) as usize];
        self.count("criticals");
        self.line(&format!("#pragma omp critical({name})"));
        self.some_work();
    }

    fn locked(&mut self) {
        self.count("locks");
        self.line("omp_set_lock(&lock);");
        self.some_work();
        self.line("omp_unset_lock(&lock);");
    }

    /// Its event is fulfilled by itself, or by a task that comes later.
    fn detached(&mut self, place: Place) {
        let may_be_undeferred = place.may_be_alone || place.may_be_included;
        let may = self.can(Feature::Detach)
            && (!place.is_in_untied || self.can(Feature::DetachInUntied))
            && (!may_be_undeferred || self.can(Feature::DetachAlone));
        if !may {
            return self.task(place);
        }
        self.names += 1;
        let event = format!("event{}", self.names);
        let by_itself = self.one_in(2) || may_be_undeferred && !self.can(Feature::FulfilledLater);
        self.line(&format!("omp_event_handle_t {event};"));
        self.task_that_runs();
        self.line(&format!("#pragma omp task detach({event})"));
        self.block(|writer| {
            writer.some_work();
            if by_itself {
                writer.line(&format!("omp_fulfill_event({event});"));
            }
        });
        if !by_itself {
            self.task_that_runs();
            self.line(&format!("#pragma omp task firstprivate({event})"));
            self.block(|writer| writer.line(&format!("omp_fulfill_event({event});")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_program_and_another_one_another() {
        let one = program(7, &CLANG);
        assert_eq!(one, program(7, &CLANG));
        assert_ne!(one, program(8, &CLANG));
    }

    #[test]
    fn programs_have_what_is_not_left_out_and_nothing_else() {
        let all = |target: &Target| -> String { (0..300).map(|seed| program(seed, target)).collect() };
        let (clang, gcc) = (all(&CLANG), all(&GCC));
        for construct in [
            "omp for",
            "ordered",
            "sections",
            "single",
            "critical",
            "taskgroup",
            "taskwait",
            "taskloop",
            "untied",
            "mergeable",
            "final",
            "if (0)",
            "depend(in:",
            "cancel for",
            "cancel taskgroup",
            "taskwait depend",
            "detach(",
            "omp teams",
            "mutexinoutset",
        ] {
            assert!(clang.contains(construct) && gcc.contains(construct), "{construct}");
        }
    }
}
