//! Who needs whom in a collective operation.

use crate::model::operation;

/// Who needs whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Barrier,
    AllToAll,
    FromRoot,
    ToRoot,
    Scan,
    /// Each process needs those that are next to it in the topology.
    Neighbours,
}

impl Shape {
    /// `None` where nothing is known.
    pub(super) fn of(function: &str) -> Option<Shape> {
        let name = operation(function)?;
        Some(match &name[..] {
            "barrier" => Shape::Barrier,
            "allreduce"
            | "allgather"
            | "allgatherv"
            | "alltoall"
            | "alltoallv"
            | "alltoallw"
            | "reduce_scatter"
            | "reduce_scatter_block" => Shape::AllToAll,
            "bcast" | "scatter" | "scatterv" => Shape::FromRoot,
            "reduce" | "gather" | "gatherv" => Shape::ToRoot,
            "scan" | "exscan" => Shape::Scan,
            _ if name.starts_with("neighbor_") => Shape::Neighbours,
            _ => return None,
        })
    }

    /// The bytes that a process sends and receives: it passes a buffer of `own`, the root one of `of_root`, and all together `sum`.
    pub(super) fn bytes(
        self,
        function: &str,
        (own, of_root, sum): (u64, u64, u64),
        is_root: bool,
        members: u64,
    ) -> (u64, u64) {
        let name = operation(function).unwrap_or_default();
        let has_counts = name.ends_with('v') || name.ends_with('w');
        match self {
            Shape::Barrier => (0, 0),
            // Each process has a number for each other one.
            Shape::AllToAll if has_counts && name.starts_with("alltoall") => (own, own),
            Shape::AllToAll if has_counts => (own.saturating_mul(members), sum),
            Shape::AllToAll if name.starts_with("reduce") => (own, own),
            Shape::AllToAll => (own.saturating_mul(members), own.saturating_mul(members)),
            Shape::FromRoot if has_counts => (if is_root { own } else { 0 }, 0),
            Shape::FromRoot => (if is_root { own.saturating_mul(members) } else { 0 }, of_root),
            Shape::ToRoot if is_root && has_counts => (own, sum),
            Shape::ToRoot => (own, if is_root { own.saturating_mul(members) } else { 0 }),
            Shape::Scan | Shape::Neighbours => (own, own),
        }
    }
}
