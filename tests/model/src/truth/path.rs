//! The longest chains of work: the critical path of a run, and the span of a region.

use std::collections::BTreeMap;

use crate::program::{Code, Ns};
use crate::run::{Edge, Piece, Run};

/// The longest chain of what `weight` counts to the end of each piece, along the edges that `follows` accepts.
pub fn longest(run: &Run, weight: impl Fn(&Piece) -> Ns, follows: impl Fn(Edge) -> bool) -> Vec<Ns> {
    let mut longest: Vec<Ns> = Vec::with_capacity(run.pieces.len());
    for (index, piece) in run.pieces.iter().enumerate() {
        let before = piece.before.iter().filter(|(_, edge)| follows(*edge));
        let before = before.map(|(other, _)| {
            assert!(*other < index, "piece {index} comes after piece {other}, which comes later");
            longest[*other]
        });
        longest.push(before.max().unwrap_or(0) + weight(piece));
    }
    longest
}

/// The work on the critical path. An acquisition of a free mutex is a meeting with whoever had it last.
pub fn critical_path(run: &Run) -> Ns {
    longest(run, |piece| piece.work, |edge| edge != Edge::Task)[run.last]
}

/// An outermost region by its place, over all of its visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Region {
    pub visits: u64,
    pub duration: Ns,
    /// All work in it.
    pub work: Ns,
    /// All useful time in it.
    pub useful: Ns,
    /// The sum of the visits' longest chains that must be done one after the other.
    pub span: Ns,
    /// Explicit tasks that were deferred.
    pub tasks: u64,
    /// The members of its team, at most.
    pub threads: u64,
}

/// The outermost regions, by place.
pub fn regions(run: &Run) -> BTreeMap<Code, Region> {
    let mut regions: BTreeMap<Code, Region> = BTreeMap::new();
    for (number, team) in run.teams.iter().enumerate().skip(1) {
        let outermost = run.outermost(number);
        let region = regions.entry(run.teams[outermost].place).or_default();
        region.tasks += team.tasks;
        if outermost != number {
            continue;
        }
        let own = |piece: &Piece| {
            if piece.region == number { piece.work } else { 0 }
        };
        region.visits += 1;
        region.threads = region.threads.max(team.members.len() as u64);
        region.duration += team.end - team.begin;
        region.work += run.pieces.iter().map(own).sum::<Ns>();
        region.useful += run.pieces.iter().filter(|piece| !piece.is_call).map(own).sum::<Ns>();
        let by_task = |edge| matches!(edge, Edge::Task | Edge::Meeting);
        region.span += longest(run, own, by_task).into_iter().max().unwrap_or(0);
    }
    regions
}
