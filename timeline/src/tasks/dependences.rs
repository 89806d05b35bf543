//! Derives from `depend` clauses which tasks wait for which (OpenMP 5.2, 15.9.5).
//!
//! Runtimes report an edge (`ompt_callback_task_dependence`) only if the predecessor has not ended yet, which depends
//! on timing. The lists of dependences are complete: sibling tasks that name the same variable form *generations*. The
//! tasks of a generation run in any order: readers, or a set of `mutexinoutset` or `inoutset` tasks. Each of them waits
//! for all tasks of the previous generation.
//!
//! Memory: ended tasks are kept as long as their parent exists, because a later sibling may depend on them. If there
//! are very many, those are forgotten for which no task can have waited.

use std::ops::{Index, IndexMut};

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_trace_format::field::Dependence;

use crate::model::{Anchor, Point};

/// Ended tasks are forgotten each time a generation or the number of variables reaches a power of two, from this size
/// on.
const MANY: usize = 1024;

/// The tasks with dependences, by their parents.
#[derive(Default)]
pub(crate) struct Dependences {
    nodes: Nodes,
    parents: FastMap<u64, Siblings>,
}

/// The number of a node. Its owner holds the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// A task that others may depend on.
#[derive(Clone, Copy)]
struct Node {
    task: u64,
    end: Option<(Point, Anchor)>,
    /// The latest task that is known to depend on this one.
    successor: u64,
    /// Number of holders: its task while that exists, and each generation that contains it.
    holders: u32,
}

impl Node {
    /// Notes that `successor` depends on this task; false if that is already known. The dependences of a task are added
    /// consecutively, so it is enough to keep the latest successor.
    fn precedes(&mut self, successor: u64) -> bool {
        std::mem::replace(&mut self.successor, successor) != successor && self.task != successor
    }
}

/// A task on which another depends.
#[derive(Clone, Copy)]
pub(crate) struct Predecessor {
    pub(crate) task: u64,
    /// The point of its end, if it has ended.
    pub(crate) end: Option<(Point, Anchor)>,
}

/// The nodes. Indexes of nodes without holders are reused.
#[derive(Default)]
struct Nodes {
    all: Vec<Node>,
    free: Vec<NodeId>,
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.all[id.0 as usize]
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.all[id.0 as usize]
    }
}

impl Nodes {
    /// A new node for `task`, held by the caller.
    fn add(&mut self, task: u64) -> NodeId {
        let node = Node { task, end: None, successor: task, holders: 1 };
        match self.free.pop() {
            Some(id) => {
                self[id] = node;
                id
            }
            None => {
                self.all.push(node);
                NodeId(self.all.len() as u32 - 1)
            }
        }
    }

    fn hold(&mut self, id: NodeId) -> NodeId {
        self[id].holders += 1;
        id
    }

    fn release(&mut self, id: NodeId) {
        self[id].holders -= 1;
        if self[id].holders == 0 {
            self.free.push(id);
        }
    }

    fn release_all(&mut self, ids: impl IntoIterator<Item = NodeId>) {
        ids.into_iter().for_each(|id| self.release(id));
    }
}

/// The children of one task.
#[derive(Default)]
struct Siblings {
    variables: FastMap<u64, Variable>,
    /// The latest task that depends on all memory.
    all_memory: Option<NodeId>,
}

struct Variable {
    kind: ompt::ompt_dependence_type_t,
    generation: Vec<NodeId>,
    /// The previous generation.
    previous: Vec<NodeId>,
}

impl Dependences {
    /// Whether no existing task has children with dependences.
    pub(crate) fn are_none(&self) -> bool {
        self.parents.is_empty()
    }

    /// A new node for `task`, which the caller must [release](Dependences::release).
    pub(crate) fn new_node(&mut self, task: u64) -> NodeId {
        self.nodes.add(task)
    }

    /// The task of this node no longer holds it. `end`: the point of the task's end, if known.
    pub(crate) fn release(&mut self, node: NodeId, end: Option<(Point, Anchor)>) {
        if end.is_some() {
            self.nodes[node].end = end;
        }
        self.nodes.release(node);
    }

    /// Notes that `successor` depends on the task of this node; false if that is already known.
    pub(crate) fn precedes(&mut self, node: NodeId, successor: u64) -> bool {
        self.nodes[node].precedes(successor)
    }

    /// A child of `parent` was created with these dependences. Returns the tasks on which it depends. `stays` is false
    /// for a taskwait, which no later sibling can overtake.
    pub(crate) fn add(
        &mut self,
        parent: u64,
        task: NodeId,
        dependences: &[Dependence],
        stays: bool,
    ) -> Vec<Predecessor> {
        let nodes = &mut self.nodes;
        let siblings = self.parents.entry(parent).or_default();
        let successor = nodes[task].task;
        let mut predecessors = Vec::new();
        for dependence in dependences {
            let found = match kind(dependence.dependence_type) {
                Some(Kind::AllMemory) => siblings.all(nodes, task, stays),
                Some(Kind::Variable(kind)) => siblings.one(nodes, task, dependence.variable, kind, stays),
                None => continue,
            };
            for id in found {
                let node = &mut nodes[id];
                if node.precedes(successor) {
                    let (task, end) = (node.task, node.end);
                    predecessors.push(Predecessor { task, end });
                }
                nodes.release(id);
            }
        }
        predecessors
    }

    /// `parent` has ended, so it gets no more children.
    #[inline]
    pub(crate) fn forget_children(&mut self, parent: u64) {
        if !self.parents.is_empty()
            && let Some(siblings) = self.parents.remove(&parent)
        {
            siblings.forget(&mut self.nodes);
        }
    }
}

impl Siblings {
    /// Returns the predecessors, held by the caller.
    fn one(
        &mut self,
        nodes: &mut Nodes,
        task: NodeId,
        variable: u64,
        kind: ompt::ompt_dependence_type_t,
        stays: bool,
    ) -> Vec<NodeId> {
        let all_memory = self.all_memory;
        let known = self.variables.len();
        let variable = self.variables.entry(variable).or_insert_with(|| Variable {
            kind: ompt::ompt_dependence_type_inout,
            generation: all_memory.map(|id| nodes.hold(id)).into_iter().collect(),
            previous: Vec::new(),
        });
        let predecessors = variable.add(nodes, task, kind, stays);
        if known < self.variables.len() && is_many(self.variables.len()) {
            let ended = self.variables.extract_if(|_, variable| !variable.is_alive(nodes));
            let ended: Vec<Variable> = ended.map(|(_, variable)| variable).collect();
            ended.into_iter().for_each(|variable| variable.forget(nodes));
        }
        predecessors
    }

    /// Like [`Siblings::one`].
    fn all(&mut self, nodes: &mut Nodes, task: NodeId, stays: bool) -> Vec<NodeId> {
        let newest = |variable: &Variable| variable.generation.clone();
        let mut predecessors: Vec<_> = self.variables.values().flat_map(newest).collect();
        predecessors.extend(self.all_memory);
        predecessors.sort_by_key(|id| nodes[*id].task);
        for id in &predecessors {
            nodes.hold(*id);
        }
        if stays {
            let all_memory = Some(nodes.hold(task));
            let before = std::mem::replace(self, Siblings { variables: FastMap::default(), all_memory });
            before.forget(nodes);
        }
        predecessors
    }

    fn forget(self, nodes: &mut Nodes) {
        for variable in self.variables.into_values() {
            variable.forget(nodes);
        }
        nodes.release_all(self.all_memory);
    }
}

impl Variable {
    /// Like [`Siblings::one`].
    fn add(
        &mut self,
        nodes: &mut Nodes,
        task: NodeId,
        kind: ompt::ompt_dependence_type_t,
        stays: bool,
    ) -> Vec<NodeId> {
        let joins = kind == self.kind && kind != ompt::ompt_dependence_type_inout;
        let before = if !stays {
            if joins { &self.previous } else { &self.generation }
        } else {
            if !joins {
                let ended = std::mem::take(&mut self.generation);
                let ended = std::mem::replace(&mut self.previous, ended);
                nodes.release_all(ended);
                self.kind = kind;
            }
            self.generation.push(nodes.hold(task));
            if is_many(self.generation.len()) {
                self.forget_ended(nodes);
            }
            &self.previous
        };
        before.iter().map(|id| nodes.hold(*id)).collect()
    }

    /// Forgets the ended tasks of the generation, except for the one that ended last.
    fn forget_ended(&mut self, nodes: &mut Nodes) {
        let end = |nodes: &Nodes, id: NodeId| nodes[id].end.map(|(end, _)| end.time);
        let ends = self.generation.iter().filter_map(|id| end(nodes, *id));
        let last = ends.max();
        let is_forgotten = |id: &mut NodeId| end(nodes, *id).is_some_and(|end| Some(end) != last);
        let forgotten: Vec<NodeId> = self.generation.extract_if(.., is_forgotten).collect();
        nodes.release_all(forgotten);
    }

    fn is_alive(&self, nodes: &Nodes) -> bool {
        let mut all = self.generation.iter().chain(&self.previous);
        all.any(|id| nodes[*id].end.is_none())
    }

    fn forget(self, nodes: &mut Nodes) {
        nodes.release_all(self.generation);
        nodes.release_all(self.previous);
    }
}

fn is_many(number: usize) -> bool {
    number >= MANY && number.is_power_of_two()
}

enum Kind {
    /// `out` is treated as `inout`, as most runtimes do.
    Variable(ompt::ompt_dependence_type_t),
    AllMemory,
}

/// The kind of a task dependence; `None` for the doacross kinds and unknown ones.
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
    use crate::model::Ns;

    const IN: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_in;
    const OUT: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_out;
    const INOUT: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_inout;
    const MUTEX: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_mutexinoutset;
    const ALL: ompt::ompt_dependence_type_t = ompt::ompt_dependence_type_out_all_memory;

    /// The predecessors of tasks 1, 2, ... with these dependences.
    fn edges(tasks: &[&[(ompt::ompt_dependence_type_t, u64)]]) -> Vec<Vec<u64>> {
        let mut dependences = Dependences::default();
        let mut add = |(clauses, task): (&&[(ompt::ompt_dependence_type_t, u64)], u64)| {
            let list: Vec<Dependence> = clauses
                .iter()
                .map(|&(dependence_type, variable)| Dependence { variable, dependence_type })
                .collect();
            let node = dependences.new_node(task);
            let predecessors = dependences.add(0, node, &list, true);
            predecessors.iter().map(|before| before.task).collect()
        };
        tasks.iter().zip(1..).map(&mut add).collect()
    }

    #[test]
    fn readers_wait_for_the_writer_and_the_next_writer_for_them() {
        let found = edges(&[&[(OUT, 8)], &[(IN, 8)], &[(IN, 8)], &[(INOUT, 8)], &[(IN, 8)]]);
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
        let reads = [Dependence { variable: 8, dependence_type: IN }];
        for task in 1..100_000 {
            let node = dependences.new_node(task);
            dependences.add(0, node, &reads, true);
            let end = Point { location: crate::model::LocationId(0), time: task as Ns };
            dependences.release(node, Some((end, Anchor::Moment)));
        }
        let kept = dependences.parents[&0].variables[&8].generation.len();
        assert!(kept <= MANY, "{kept}");
        let places = dependences.nodes.all.len();
        assert!(places <= MANY + 1, "{places}");
    }

    #[test]
    fn nodes_that_nobody_holds_make_place_for_others() {
        let mut dependences = Dependences::default();
        let clauses = [(OUT, 8), (OUT, 8), (ALL, 0), (IN, 16), (MUTEX, 16)];
        let list = clauses.map(|(dependence_type, variable)| Dependence { variable, dependence_type });
        for parent in 1..100 {
            for task in 0..10 {
                let node = dependences.new_node(100 * parent + task);
                dependences.add(parent, node, &list, task != 9);
                dependences.release(node, None);
            }
            dependences.forget_children(parent);
            assert_eq!(dependences.nodes.free.len(), dependences.nodes.all.len());
        }
        assert!(dependences.nodes.all.len() <= 10);
    }
}
