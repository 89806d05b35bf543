//! Which tasks wait for which, from their `depend` clauses (OpenMP 5.2, 15.9.5).
//!
//! Runtimes report an edge (`ompt_callback_task_dependence`) only where the predecessor has not ended yet, which is a
//! matter of luck. Their lists of dependences have it all: siblings that name a variable come in *generations*. Those of
//! one generation run in any order (readers; a set of `mutexinoutset` or `inoutset`), and each of a generation waits
//! for all of the one before.
//!
//! Memory: tasks that have ended are kept while their parent lives, for a later sibling may follow them. Where there are
//! very many, those are forgotten that no task can have waited for.

use std::cell::Cell;
use std::rc::Rc;

use ompt_sys as ompt;
use omptrace_trace_format::field::Dependence;

use crate::sink::{Anchor, Ns, Point};
use omptrace_common::fast_map::FastMap;

/// From here on, each time that a generation or the number of variables has doubled, ended tasks are forgotten.
const MANY: usize = 1024;

/// The tasks with dependences, by their parents.
#[derive(Default)]
pub(crate) struct Dependences(FastMap<u64, Siblings>);

/// A task that others may depend on.
pub(crate) struct Node {
    pub(crate) task: u64,
    pub(crate) end: Cell<Option<(Point, Anchor)>>,
    /// The newest task that is known to depend on it.
    successor: Cell<u64>,
}

impl Node {
    pub(crate) fn new(task: u64) -> Node {
        Node {
            task,
            end: Cell::new(None),
            successor: Cell::new(task),
        }
    }

    /// Notes that `successor` depends on this task; false where that is known. A task's dependences come one after the
    /// other, so the newest is enough.
    pub(crate) fn precedes(&self, successor: u64) -> bool {
        self.successor.replace(successor) != successor && self.task != successor
    }
}

/// The children of one task.
#[derive(Default)]
struct Siblings {
    variables: FastMap<u64, Variable>,
    /// The last task that depends on all memory.
    all_memory: Option<Rc<Node>>,
}

struct Variable {
    kind: ompt::ompt_dependence_type_t,
    generation: Vec<Rc<Node>>,
    /// The generation before.
    previous: Vec<Rc<Node>>,
}

impl Dependences {
    /// A child of `parent` with these dependences was created: gives the tasks that it depends on. It `stays` unless it
    /// is a taskwait, which no sibling can overtake.
    pub(crate) fn add(
        &mut self,
        parent: u64,
        task: &Rc<Node>,
        dependences: &[Dependence],
        stays: bool,
    ) -> Vec<Rc<Node>> {
        let siblings = self.0.entry(parent).or_default();
        let mut predecessors = Vec::new();
        for dependence in dependences {
            let found = match kind(dependence.dependence_type) {
                Some(Kind::AllMemory) => siblings.all(task, stays),
                Some(Kind::Variable(kind)) => siblings.one(task, dependence.variable, kind, stays),
                None => continue,
            };
            predecessors.extend(found.into_iter().filter(|node| node.precedes(task.task)));
        }
        predecessors
    }

    /// `parent` has ended: it has no more children.
    #[inline]
    pub(crate) fn forget_children(&mut self, parent: u64) {
        if !self.0.is_empty() {
            self.0.remove(&parent);
        }
    }
}

impl Siblings {
    fn one(
        &mut self,
        task: &Rc<Node>,
        variable: u64,
        kind: ompt::ompt_dependence_type_t,
        stays: bool,
    ) -> Vec<Rc<Node>> {
        let before = self.all_memory.iter().cloned().collect();
        let known = self.variables.len();
        let variable = self.variables.entry(variable).or_insert(Variable {
            kind: ompt::ompt_dependence_type_inout,
            generation: before,
            previous: Vec::new(),
        });
        let predecessors = variable.add(task, kind, stays);
        if known < self.variables.len() && is_many(self.variables.len()) {
            self.variables.retain(|_, variable| variable.is_alive());
        }
        predecessors
    }

    fn all(&mut self, task: &Rc<Node>, stays: bool) -> Vec<Rc<Node>> {
        let newest = |variable: &Variable| variable.generation.clone();
        let mut predecessors: Vec<_> = self.variables.values().flat_map(newest).collect();
        predecessors.extend(self.all_memory.clone());
        predecessors.sort_by_key(|node| node.task);
        if stays {
            self.variables.clear();
            self.all_memory = Some(Rc::clone(task));
        }
        predecessors
    }
}

impl Variable {
    fn add(
        &mut self,
        task: &Rc<Node>,
        kind: ompt::ompt_dependence_type_t,
        stays: bool,
    ) -> Vec<Rc<Node>> {
        let joins = kind == self.kind && kind != ompt::ompt_dependence_type_inout;
        if !stays {
            let before = if joins {
                &self.previous
            } else {
                &self.generation
            };
            return before.clone();
        }
        if !joins {
            self.previous = std::mem::take(&mut self.generation);
            self.kind = kind;
        }
        self.generation.push(Rc::clone(task));
        if is_many(self.generation.len()) {
            self.forget_ended();
        }
        self.previous.clone()
    }

    /// Forgets the ended tasks of the generation but for the last to end.
    fn forget_ended(&mut self) {
        let end = |node: &Rc<Node>| node.end.get().map_or(Ns::MIN, |(end, _)| end.time);
        let last = self.generation.iter().map(end).max().unwrap_or(Ns::MIN);
        self.generation
            .retain(|node| node.end.get().is_none_or(|(end, _)| end.time == last));
    }

    fn is_alive(&self) -> bool {
        let mut all = self.generation.iter().chain(&self.previous);
        all.any(|node| node.end.get().is_none())
    }
}

fn is_many(number: usize) -> bool {
    number >= MANY && number.is_power_of_two()
}

enum Kind {
    /// `out` counts as `inout`, as for most runtimes.
    Variable(ompt::ompt_dependence_type_t),
    AllMemory,
}

/// What a task dependence says; `None` for the doacross kinds and unknown ones.
fn kind(kind: ompt::ompt_dependence_type_t) -> Option<Kind> {
    match kind {
        ompt::ompt_dependence_type_out | ompt::ompt_dependence_type_inout => {
            Some(Kind::Variable(ompt::ompt_dependence_type_inout))
        }
        ompt::ompt_dependence_type_in
        | ompt::ompt_dependence_type_mutexinoutset
        | ompt::ompt_dependence_type_inoutset => Some(Kind::Variable(kind)),
        ompt::ompt_dependence_type_out_all_memory | ompt::ompt_dependence_type_inout_all_memory => {
            Some(Kind::AllMemory)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_in;
    const OUT: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_out;
    const INOUT: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_inout;
    const MUTEX: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_mutexinoutset;
    const ALL: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_out_all_memory;

    /// The predecessors of tasks 1, 2, ... that have these dependences.
    fn edges(tasks: &[&[(ompt::ompt_dependence_type_t, u64)]]) -> Vec<Vec<u64>> {
        let mut dependences = Dependences::default();
        let mut add = |(clauses, task): (&&[(ompt::ompt_dependence_type_t, u64)], u64)| {
            let list: Vec<Dependence> = clauses
                .iter()
                .map(|&(dependence_type, variable)| Dependence {
                    variable,
                    dependence_type,
                })
                .collect();
            let node = Rc::new(Node::new(task));
            let predecessors = dependences.add(0, &node, &list, true);
            predecessors.iter().map(|node| node.task).collect()
        };
        tasks.iter().zip(1..).map(&mut add).collect()
    }

    #[test]
    fn readers_wait_for_the_writer_and_the_next_writer_for_them() {
        let found = edges(&[
            &[(OUT, 8)],
            &[(IN, 8)],
            &[(IN, 8)],
            &[(INOUT, 8)],
            &[(IN, 8)],
        ]);
        assert_eq!(found, [vec![], vec![1], vec![1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn members_of_a_set_do_not_wait_for_each_other() {
        let found = edges(&[&[(OUT, 8)], &[(MUTEX, 8)], &[(MUTEX, 8)], &[(IN, 8)]]);
        assert_eq!(found, [vec![], vec![1], vec![1], vec![2, 3]]);
    }

    #[test]
    fn two_variables_make_one_edge() {
        let found = edges(&[&[(OUT, 8), (OUT, 16)], &[(IN, 8), (IN, 16), (OUT, 16)]]);
        assert_eq!(found, [vec![], vec![1]]);
    }

    #[test]
    fn all_memory_is_every_variable() {
        let found = edges(&[&[(OUT, 8)], &[(IN, 16)], &[(ALL, 0)], &[(IN, 24)]]);
        assert_eq!(found, [vec![], vec![], vec![1, 2], vec![3]]);
    }

    #[test]
    fn very_many_readers_are_forgotten_once_they_have_ended() {
        let mut dependences = Dependences::default();
        let reads = [Dependence {
            variable: 8,
            dependence_type: IN,
        }];
        for task in 1..100_000 {
            let node = Rc::new(Node::new(task));
            dependences.add(0, &node, &reads, true);
            let end = Point {
                location: crate::sink::LocationId(0),
                time: task as Ns,
            };
            node.end.set(Some((end, Anchor::Moment)));
        }
        let kept = dependences.0[&0].variables[&8].generation.len();
        assert!(kept <= MANY, "{kept}");
    }
}
