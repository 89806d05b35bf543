//! Flame graph: the CPU time of samples by stack, for all threads and processes together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::StackFrame;

use crate::model::answers::FunctionName;
use crate::model::sum::add;

/// Number of nodes that are kept per process. Further frames are counted for their caller.
const MAX_NODES: usize = 1 << 18;

/// Number of frames of a stack that are kept.
const MAX_DEPTH: usize = 128;

/// A flame graph: each frame is followed by the frames that it called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameGraph {
    /// The frames; among callees of one caller, those with the most time first. The first frame stands for all samples,
    /// and has no name.
    pub frames: Vec<FlameFrame>,
}

/// All calls of a function on one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameFrame {
    /// The function.
    pub name: FunctionName,
    /// The number of frames below this one on the stack.
    pub depth: usize,
    /// CPU time, including callees.
    pub total_ns: u64,
    /// CPU time, excluding callees.
    pub self_ns: u64,
}

/// The stacks of a process, with functions as numbers.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Function, time, and the index of the caller's node. The first node is the root.
    nodes: Vec<(u32, u64, u32)>,
    by_call: FastMap<(u32, u32), u32>,
}

impl Stacks {
    /// Adds a sample on `stack`, outermost frame first.
    pub(crate) fn sample(&mut self, stack: &[StackFrame], ns: u64) {
        if self.nodes.is_empty() {
            self.nodes.push((0, 0, 0));
        }
        let mut node = 0;
        for frame in stack.iter().take(MAX_DEPTH) {
            let call = (node, frame.function.0);
            node = match self.by_call.get(&call) {
                Some(known) => *known,
                None if self.nodes.len() >= MAX_NODES => break,
                None => {
                    let new = self.nodes.len() as u32;
                    self.nodes.push((frame.function.0, 0, node));
                    self.by_call.insert(call, new);
                    new
                }
            };
        }
        add(&mut self.nodes[node as usize].1, ns);
    }

    /// The tree of these stacks, with functions by name.
    pub(crate) fn tree(self, names: &[FunctionName]) -> Tree {
        let trees = self.nodes.iter().map(|(_, ns, _)| Tree { self_ns: *ns, calls: BTreeMap::new() });
        let mut trees: Vec<Tree> = trees.collect();
        // Callers precede their callees.
        for (function, _, caller) in self.nodes.into_iter().skip(1).rev() {
            let called = trees.pop().unwrap_or_default();
            let name = names.get(function as usize).cloned().unwrap_or_default();
            let calls = &mut trees[caller as usize].calls;
            calls.entry(name).or_default().merge(called);
        }
        trees.pop().unwrap_or_default()
    }
}

/// CPU time by stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    self_ns: u64,
    calls: BTreeMap<FunctionName, Tree>,
}

impl Tree {
    /// Adds the tree of another process.
    pub(crate) fn merge(&mut self, other: Tree) {
        add(&mut self.self_ns, other.self_ns);
        for (name, called) in other.calls {
            self.calls.entry(name).or_default().merge(called);
        }
    }

    /// The graph; empty if there are no samples.
    pub(crate) fn graph(self) -> FlameGraph {
        let mut graph = FlameGraph::default();
        let all = self.called(FunctionName::default(), 0);
        if all.frame.total_ns > 0 {
            graph.add(all);
        }
        graph
    }

    fn called(self, name: FunctionName, depth: usize) -> Called {
        let calls = self.calls.into_iter();
        let calls = calls.map(|(name, tree)| tree.called(name, depth + 1));
        let mut calls: Vec<Called> = calls.collect();
        calls.sort_by_key(|called| Reverse(called.frame.total_ns));
        let totals = calls.iter().map(|called| called.frame.total_ns);
        Called {
            frame: FlameFrame {
                name,
                depth,
                total_ns: totals.fold(self.self_ns, u64::saturating_add),
                self_ns: self.self_ns,
            },
            calls,
        }
    }
}

/// A frame and its callees, those with the most time first.
struct Called {
    frame: FlameFrame,
    calls: Vec<Called>,
}

impl FlameGraph {
    fn add(&mut self, called: Called) {
        self.frames.push(called.frame);
        called.calls.into_iter().for_each(|called| self.add(called));
    }

    /// The `most` frames with the most time, each together with its callers.
    pub fn largest(&self, most: usize) -> FlameGraph {
        let mut order: Vec<usize> = (0..self.frames.len()).collect();
        order.sort_by_key(|index| (Reverse(self.frames[*index].total_ns), *index));
        order.truncate(most);
        order.sort_unstable();
        let frames = order.into_iter().map(|index| self.frames[index].clone());
        FlameGraph { frames: frames.collect() }
    }
}

#[cfg(test)]
mod tests {
    use omptrace_timeline::model::FunctionId;

    use super::*;

    fn stack(functions: &[u32]) -> Vec<StackFrame> {
        let frame = |function: &u32| StackFrame { function: FunctionId(*function), line: None };
        functions.iter().map(frame).collect()
    }

    fn names() -> Vec<FunctionName> {
        let name = |name: &str| FunctionName { function: name.to_owned(), ..FunctionName::default() };
        ["main", "a", "b"].map(name).to_vec()
    }

    fn shown(graph: &FlameGraph) -> Vec<(usize, &str, u64, u64)> {
        let frames = graph.frames.iter();
        frames
            .map(|frame| {
                let name = frame.name.function.as_str();
                (frame.depth, name, frame.total_ns, frame.self_ns)
            })
            .collect()
    }

    #[test]
    fn stacks_of_processes_become_one_graph() {
        let mut one = Stacks::default();
        one.sample(&stack(&[0, 1]), 5);
        one.sample(&stack(&[0, 2, 1]), 7);
        one.sample(&stack(&[0]), 1);
        let mut other = Stacks::default();
        // The same stack with functions numbered in another order.
        other.sample(&stack(&[2, 1]), 3);
        let mut tree = one.tree(&names());
        let mut of_other = names();
        of_other.swap(0, 2);
        tree.merge(other.tree(&of_other));
        let graph = tree.graph();
        let expected = [(0, "", 16, 0), (1, "main", 16, 1), (2, "a", 8, 8), (2, "b", 7, 0), (3, "a", 7, 7)];
        assert_eq!(shown(&graph), expected);
        assert_eq!(shown(&graph.largest(4)), expected[..4]);
        assert_eq!(Tree::default().graph(), FlameGraph::default());
    }

    #[test]
    fn a_recursion_without_end_is_cut() {
        let mut stacks = Stacks::default();
        stacks.sample(&stack(&[0; 5000]), 9);
        let graph = stacks.tree(&names()).graph();
        assert_eq!(graph.frames.len(), MAX_DEPTH + 1);
        assert_eq!(graph.frames[MAX_DEPTH].self_ns, 9);
    }
}
