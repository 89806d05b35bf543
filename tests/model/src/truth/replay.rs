//! What changes gain: the graph is replayed with other durations, or without some of its edges.
//!
//! Which thread runs which task, and the order in which threads get a mutex, stay as they were. So does what each meeting took beyond the
//! last of those that it waits for.

use std::collections::{BTreeMap, BTreeSet};

use super::accounting::overlap;
use crate::callback::{Callback, Status};
use crate::program::{Code, Ns};
use crate::run::{Edge, Hold, Piece, PieceId, Run, team_at};

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
    /// Barriers whose last member comes from here are over when the mean member is there.
    Balanced(Code),
    /// Members go on at once at barriers inside regions whose last member comes from here.
    Nowait(Code),
    /// Barriers whose last task is from here are over when all work is done that members and tasks have, spread evenly.
    TasksBalanced(Code),
}

/// A barrier whose members' work is spread evenly.
struct Spread {
    team: usize,
    number: usize,
    /// How long the mutex was held that was held longest since the barrier before.
    held: Ns,
    /// It is not over before the last member has come.
    waits_for_members: bool,
}

/// When the program would have ended.
pub fn replay(run: &Run, change: Change) -> Ns {
    let spread = spread(run, change);
    let passed = passed(run, change);
    let mut ends: Vec<Ns> = Vec::with_capacity(run.pieces.len());
    // Of each piece, what its thread has waited for others in its team until then.
    let mut waits: Vec<BTreeMap<usize, Ns>> = Vec::with_capacity(run.pieces.len());
    for (index, piece) in run.pieces.iter().enumerate() {
        let before = || piece.before.iter().filter(|(_, edge)| *edge != Edge::Task);
        let recorded = before().map(|(other, _)| run.pieces[*other].end).max().unwrap_or(0);
        let cost = match change {
            Change::WithoutOverhead if piece.is_overhead => 0,
            _ => piece.begin - recorded,
        };
        let kept = before().filter(|(other, edge)| !is_dropped(&run.pieces[*other], *edge, change));
        let ended = |(other, edge): &(PieceId, Edge)| match edge {
            Edge::Thread => ends[*other],
            _ => ended_before(run, &spread, &ends, *other, (index, piece)),
        };
        let mut begin = kept.map(ended).max().unwrap_or(0) + cost;
        // Whoever leaves a barrier whose work is spread evenly has done no more than its part.
        let left = before().find(|(other, _)| piece.is_overhead && spread.contains_key(other));
        if let Some((release, _)) = left {
            begin = ends[*release] + cost;
        }
        if let Some(spread) = spread.get(&index) {
            begin = begin.min(in_balance(run, spread, &ends, &waits) + cost);
        }
        let own = piece.before.iter().find(|(_, edge)| *edge == Edge::Thread).map(|(own, _)| *own);
        let mut waited = own.map_or_else(BTreeMap::new, |own| waits[own].clone());
        let is_meeting = piece.before.iter().any(|(_, edge)| *edge == Edge::Meeting);
        if let Some(own) = own.filter(|_| is_meeting && !piece.is_overhead && !is_release(run, index)) {
            *waited.entry(piece.team).or_default() += begin.saturating_sub(ends[own] + cost);
        }
        waits.push(waited);
        let is_passed = piece.is_overhead && before().any(|(other, _)| passed.contains(other));
        match own.filter(|_| is_passed) {
            Some(own) => ends.push(ends[own]),
            None => ends.push(begin + duration(piece, change)),
        }
    }
    ends[run.last]
}

/// When what a piece waits for is there. What was released or complete before a barrier whose work is spread evenly is so behind it.
fn ended_before(
    run: &Run,
    spread: &BTreeMap<PieceId, Spread>,
    ends: &[Ns],
    other: PieceId,
    (index, piece): (PieceId, &Piece),
) -> Ns {
    let between = spread.range(other..index).filter(|(barrier, spread)| {
        let members = &run.teams[spread.team].members;
        members.contains(&run.pieces[other].thread)
            && (members.contains(&piece.thread) || is_behind(run, index, **barrier))
    });
    between.map(|(barrier, _)| ends[*barrier]).chain([ends[other]]).min().unwrap_or(0)
}

/// Whether a piece is behind another one: a chain of waits leads there.
fn is_behind(run: &Run, piece: PieceId, other: PieceId) -> bool {
    let (mut found, mut next) = (BTreeSet::new(), vec![piece]);
    while let Some(piece) = next.pop() {
        let before = run.pieces[piece].before.iter().map(|(before, _)| *before);
        next.extend(before.filter(|before| *before >= other && found.insert(*before)));
    }
    found.contains(&other)
}

fn is_release(run: &Run, piece: PieceId) -> bool {
    run.teams.iter().any(|team| team.barriers.iter().any(|barrier| barrier.release == Some(piece)))
}

/// The barriers that a change spreads work at, by the piece at which each is over.
fn spread(run: &Run, change: Change) -> BTreeMap<PieceId, Spread> {
    let (Change::Balanced(place) | Change::TasksBalanced(place)) = change else {
        return BTreeMap::new();
    };
    let waits_for_members = matches!(change, Change::TasksBalanced(_));
    let mut spread = BTreeMap::new();
    for (team, record) in run.teams.iter().enumerate().skip(1) {
        for (number, barrier) in record.barriers.iter().enumerate() {
            let Some(release) = barrier.release else {
                continue;
            };
            let since = number.checked_sub(1).and_then(|before| record.barriers[before].released);
            let window = (since.unwrap_or(record.begin), barrier.released.unwrap_or(record.end));
            let is_from_there = match waits_for_members {
                true => barrier.tasks.contains(&place),
                false => last_member(run, team, number) == Some(place),
            };
            if !is_from_there {
                continue;
            }
            let mut held: BTreeMap<_, Ns> = BTreeMap::new();
            let is_in_region = |hold: &&Hold| run.is_inside(team_at(run, hold.thread, hold.begin), team);
            for hold in run.holds.iter().filter(is_in_region) {
                let is_within = window.0 <= hold.begin && hold.end <= window.1;
                *held.entry((hold.kind, hold.number)).or_default() +=
                    if is_within { hold.end - hold.begin } else { 0 };
            }
            let held = held.values().copied().max().unwrap_or(0);
            spread.insert(release, Spread { team, number, held, waits_for_members });
        }
    }
    spread
}

/// The barriers at which nobody waits any more, by the piece at which each is over.
fn passed(run: &Run, change: Change) -> BTreeSet<PieceId> {
    let Change::Nowait(place) = change else {
        return BTreeSet::new();
    };
    let mut passed = BTreeSet::new();
    for (team, record) in run.teams.iter().enumerate().skip(1) {
        for (number, barrier) in record.barriers.iter().enumerate() {
            let is_from_there = !barrier.is_last && last_member(run, team, number) == Some(place);
            passed.extend(barrier.release.filter(|_| is_from_there));
        }
    }
    passed
}

/// Where the last member of a barrier comes from: its longest piece of work since the barrier before.
fn last_member(run: &Run, team: usize, number: usize) -> Option<Code> {
    let record = &run.teams[team];
    let barrier = &record.barriers[number];
    let thread = run.pieces[barrier.arrivals.iter().rev().find(|(_, edge)| *edge == Edge::Thread)?.0].thread;
    let since = number.checked_sub(1).and_then(|before| record.barriers[before].released);
    let window = (since.unwrap_or(record.begin), barrier.all_arrived?);
    let mut longest: Option<(Ns, Code)> = None;
    // When the piece ends, how long it is, and where.
    let mut so_far: (Ns, Ns, Code) = (0, 0, 0);
    // An event divides what is done. That a nested lock is had once more is none, nor is a doacross dependence or the end of a
    // detached task.
    let is_event = |callback: &Callback| {
        !matches!(
            callback,
            Callback::NestLock { .. }
                | Callback::Doacross { .. }
                | Callback::TaskSchedule { status: Status::EarlyFulfill | Status::LateFulfill, .. }
        )
    };
    let own: Vec<Ns> = run
        .callbacks
        .iter()
        .filter(|(_, of, callback)| *of == thread && is_event(callback))
        .map(|(time, ..)| *time)
        .collect();
    let is_divided = |time: Ns| own.contains(&time);
    for piece in run.pieces.iter().filter(|piece| piece.thread == thread && piece.work > 0) {
        let ns = overlap((piece.begin, piece.end), window);
        let goes_on = (so_far.0, so_far.2) == (piece.begin, piece.place) && !is_divided(piece.begin);
        so_far = (piece.end, if goes_on { so_far.1 + ns } else { ns }, piece.place);
        if ns > 0 && longest.is_none_or(|(most, _)| so_far.1 >= most) {
            longest = Some((so_far.1, piece.place));
        }
    }
    longest.map(|(_, place)| place)
}

/// When a barrier would be over, if all that was done since the one before were spread evenly.
fn in_balance(run: &Run, spread: &Spread, ends: &[Ns], waits: &[BTreeMap<usize, Ns>]) -> Ns {
    let record = &run.teams[spread.team];
    let barrier = &record.barriers[spread.number];
    let before = spread.number.checked_sub(1).and_then(|before| record.barriers[before].release);
    let began = ends[before.unwrap_or(record.fork)];
    let release = barrier.release.unwrap_or(0);
    let known = ends.len().min(release);
    let waited = |piece: PieceId| waits[piece].get(&spread.team).copied().unwrap_or(0);
    let mut sum = 0;
    for member in &record.members {
        let own = |piece: &PieceId| run.pieces[*piece].thread == *member;
        let last = (0..known).rev().find(own).unwrap_or(0);
        // Where it has left the barrier before, or has begun.
        let first = (0..known).rev().find(|piece| {
            let of = &run.pieces[*piece];
            own(piece) && of.is_overhead && of.team == spread.team
        });
        let since = first.map_or(0, waited);
        sum += ends[last] - (waited(last) - since);
    }
    let mean = sum / record.members.len().max(1) as Ns;
    let arrived = barrier.arrivals.iter().map(|(piece, _)| ends[*piece]).max().unwrap_or(0);
    let least = if spread.waits_for_members { arrived } else { 0 };
    // Nobody else can do what hidden helpers do.
    let before = run.pieces[release].before.iter().map(|(piece, _)| *piece);
    let by_helpers = before.filter(|piece| run.helpers.contains(&run.pieces[*piece].thread));
    let least = by_helpers.map(|piece| ends[piece]).max().unwrap_or(0).max(least);
    mean.max(began + spread.held).max(least)
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
        Change::TwiceAsFast(place) if piece.place == place && piece.work > 0 => ns / 2,
        _ => ns,
    }
}

/// What a change gains.
pub fn gain(run: &Run, change: Change) -> Ns {
    run.end.saturating_sub(replay(run, change))
}
