//! What changes gain: the graph is replayed with other durations, or without some of its edges.
//!
//! Which thread runs which task, and the order in which threads get a mutex, stay as they were. So does what each meeting took beyond the
//! last of those that it waits for.

use crate::program::{Code, Ns};
use crate::run::{Edge, Piece, Run};

/// A change that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// None: the end is the recorded one.
    Nothing,
    /// The work at a place takes half of its time.
    TwiceAsFast(Code),
    /// Nobody waits for mutexes that are held at this place.
    WithoutMutex(Code),
    /// Regions and barriers cost nothing.
    WithoutOverhead,
}

/// When the program would have ended.
pub fn replay(run: &Run, change: Change) -> Ns {
    let mut ends: Vec<Ns> = Vec::with_capacity(run.pieces.len());
    for piece in &run.pieces {
        let before = || piece.before.iter().filter(|(_, edge)| *edge != Edge::Task);
        let recorded = before().map(|(other, _)| run.pieces[*other].end).max().unwrap_or(0);
        let waited = match change {
            Change::WithoutOverhead if piece.is_overhead => 0,
            _ => piece.begin - recorded,
        };
        let kept = before().filter(|(other, edge)| !is_dropped(&run.pieces[*other], *edge, change));
        let begin = kept.map(|(other, _)| ends[*other]).max().unwrap_or(0) + waited;
        ends.push(begin + duration(piece, change));
    }
    ends[run.last]
}

fn is_dropped(before: &Piece, edge: Edge, change: Change) -> bool {
    let Change::WithoutMutex(place) = change else {
        return false;
    };
    matches!(edge, Edge::Mutex | Edge::FreeMutex) && before.releases == Some(place)
}

fn duration(piece: &Piece, change: Change) -> Ns {
    let ns = piece.end - piece.begin;
    match change {
        Change::TwiceAsFast(place) if piece.place == place && piece.useful > 0 => ns / 2,
        _ => ns,
    }
}

/// What a change gains.
pub fn gain(run: &Run, change: Change) -> Ns {
    run.end.saturating_sub(replay(run, change))
}
