//! Matches the places of two builds of a program.

use std::collections::BTreeMap;

use crate::model::place::{Place, Position};

/// Number of lines that a place may move within its function, in addition to the move of the whole function.
const MAX_LINES: u64 = 20;
/// The cost of leaving a place unmatched, in lines.
const ALONE: u64 = 15;
/// Largest number of a function's places for which every common move is tried.
const MAX_TRIED: usize = 400;

/// Indexes of a place before and of the same place after; `None` on the side that lacks it.
pub(crate) type Pair = (Option<usize>, Option<usize>);

/// Matches each place with at most one other. The pairs are in the order of `before`, followed by the places that exist
/// only in `after`.
pub(crate) fn pairs(before: &[Place], after: &[Place]) -> Vec<Pair> {
    let mut partner: Vec<Option<usize>> = vec![None; before.len()];
    let mut is_taken = vec![false; after.len()];
    // The most reliable keys first: functions and files may have other names in another build.
    let keys: [(Key, bool); 3] = [(by_function, true), (by_function_only, true), (by_file, false)];
    for (key, may_move) in keys {
        let mut groups: BTreeMap<[&str; 4], [Vec<usize>; 2]> = BTreeMap::new();
        for (index, place) in before.iter().enumerate() {
            if let (None, Some(key)) = (partner[index], key(place)) {
                groups.entry(key).or_default()[0].push(index);
            }
        }
        for (index, place) in after.iter().enumerate() {
            if let (false, Some(key)) = (is_taken[index], key(place)) {
                groups.entry(key).or_default()[1].push(index);
            }
        }
        for [mut old, mut new] in groups.into_values() {
            let line = |place: &Place| place.line.unwrap_or(0);
            old.sort_by_key(|index| line(&before[*index]));
            new.sort_by_key(|index| line(&after[*index]));
            let old_lines: Vec<u32> = old.iter().map(|index| line(&before[*index])).collect();
            let new_lines: Vec<u32> = new.iter().map(|index| line(&after[*index])).collect();
            for (one, other) in aligned(&old_lines, &new_lines, may_move) {
                partner[old[one]] = Some(new[other]);
                is_taken[new[other]] = true;
            }
        }
    }
    let old = partner.iter().enumerate();
    let old = old.map(|(index, partner)| (Some(index), *partner));
    let new = (0..after.len()).filter(|index| !is_taken[*index]);
    old.chain(new.map(|index| (None, Some(index)))).collect()
}

/// The names that two places must have in common to match; `None` if a place lacks one of them.
type Key = fn(&Place) -> Option<[&str; 4]>;

fn file(place: &Place) -> Option<&str> {
    let file = place.file.as_deref()?;
    Some(file.rsplit('/').next().unwrap_or(file))
}

/// Tells places that name a line from places that name only what contains the line.
fn how(place: &Place) -> &'static str {
    match place.position {
        Some(Position::Inside) => "inside",
        Some(Position::Near) => "near",
        _ => "",
    }
}

fn by_function(place: &Place) -> Option<[&str; 4]> {
    let function = place.function.as_deref().unwrap_or_default();
    let file = file(place).unwrap_or_default();
    Some([&place.construct, how(place), function, file])
}

fn by_file(place: &Place) -> Option<[&str; 4]> {
    Some([&place.construct, how(place), "", file(place)?])
}

fn by_function_only(place: &Place) -> Option<[&str; 4]> {
    Some([&place.construct, how(place), place.function.as_deref()?, ""])
}

/// Matches lines, both sorted, keeping their order and minimising the sum of distances. With `may_move`, all lines may
/// have moved by a common distance.
fn aligned(old: &[u32], new: &[u32], may_move: bool) -> Vec<(usize, usize)> {
    let moves: Vec<i64> = match old.len() * new.len() {
        0 => return Vec::new(),
        _ if !may_move => vec![0],
        1..=MAX_TRIED => {
            let moves = old.iter().flat_map(|old| new.iter().map(move |new| (old, new)));
            let moves = moves.map(|(old, new)| i64::from(*new) - i64::from(*old));
            [0].into_iter().chain(moves).collect()
        }
        _ => vec![0, i64::from(new[0]) - i64::from(old[0])],
    };
    let tried = moves.into_iter().map(|moved| {
        let (cost, pairs) = aligned_at(old, new, moved);
        (cost + u64::from(moved != 0), moved.unsigned_abs(), pairs)
    });
    let best = tried.min_by_key(|(cost, moved, _)| (*cost, *moved));
    best.map(|(_, _, pairs)| pairs).unwrap_or_default()
}

/// Matches `old` with `new` after moving all lines by `moved`; also returns the cost.
fn aligned_at(old: &[u32], new: &[u32], moved: i64) -> (u64, Vec<(usize, usize)>) {
    let distance = |one: usize, other: usize| {
        let distance = i64::from(new[other]) - i64::from(old[one]) - moved;
        Some(distance.unsigned_abs()).filter(|lines| *lines <= MAX_LINES)
    };
    let width = new.len() + 1;
    // The least cost of matching the rest, from each pair of positions on.
    let mut costs = vec![0u64; (old.len() + 1) * width];
    for one in (0..=old.len()).rev() {
        for other in (0..=new.len()).rev() {
            let at = one * width + other;
            let mut ways = Vec::new();
            if one < old.len() {
                ways.push(costs[at + width] + ALONE);
            }
            if other < new.len() {
                ways.push(costs[at + 1] + ALONE);
            }
            if one < old.len()
                && other < new.len()
                && let Some(lines) = distance(one, other)
            {
                ways.push(costs[at + width + 1] + lines);
            }
            costs[at] = ways.into_iter().min().unwrap_or(0);
        }
    }
    let (mut one, mut other, mut pairs) = (0, 0, Vec::new());
    while one < old.len() && other < new.len() {
        let at = one * width + other;
        let paired = distance(one, other).map(|lines| costs[at + width + 1] + lines);
        if paired == Some(costs[at]) {
            pairs.push((one, other));
            (one, other) = (one + 1, other + 1);
        } else if costs[at] == costs[at + width] + ALONE {
            one += 1;
        } else {
            other += 1;
        }
    }
    (costs[0], pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, line: u32) -> Place {
        Place::at("!$omp parallel", Some("/old/a.c"), Some(line), Some(function))
    }

    fn lines(old: &[u32], new: &[u32]) -> Vec<(Option<u32>, Option<u32>)> {
        let places = |lines: &[u32]| lines.iter().map(|line| place("main", *line)).collect();
        let (before, after): (Vec<Place>, Vec<Place>) = (places(old), places(new));
        let pairs = pairs(&before, &after).into_iter();
        let line = |of: &[Place], index: Option<usize>| index.and_then(|index| of[index].line);
        pairs.map(|(one, other)| (line(&before, one), line(&after, other))).collect()
    }

    #[test]
    fn places_move_with_their_function() {
        assert_eq!(lines(&[10], &[310]), [(Some(10), Some(310))]);
        assert_eq!(
            lines(&[10, 20, 90], &[114, 124, 196]),
            [(Some(10), Some(114)), (Some(20), Some(124)), (Some(90), Some(196))]
        );
    }

    #[test]
    fn a_place_that_is_new_or_gone_has_no_other() {
        assert_eq!(
            lines(&[10, 20, 90], &[10, 92]),
            [(Some(10), Some(10)), (Some(20), None), (Some(90), Some(92))]
        );
        assert_eq!(
            lines(&[50, 60], &[10, 50, 60]),
            [(Some(50), Some(50)), (Some(60), Some(60)), (None, Some(10))]
        );
    }

    #[test]
    fn functions_and_files_may_have_other_names() {
        let before = [place("step", 10), place("solve", 50), place("gone", 400)];
        let mut after = [place("step(int)", 12), place("solve", 55), place("new", 70)];
        after[1].file = Some("/new/b.c".to_owned());
        assert_eq!(
            pairs(&before, &after),
            [(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), None), (None, Some(2))]
        );
    }

    #[test]
    fn constructs_are_not_mixed_up() {
        let mut after = place("main", 10);
        after.construct = "teams".to_owned();
        assert_eq!(pairs(&[place("main", 10)], &[after]), [(Some(0), None), (None, Some(0))]);
    }

    #[test]
    fn many_places_of_a_function_are_paired_too() {
        let old: Vec<u32> = (0..300).map(|line| line * 3).collect();
        let new: Vec<u32> = old.iter().map(|line| line + 1000).collect();
        assert!(lines(&old, &new).iter().all(|pair| pair.0.map(|line| line + 1000) == pair.1));
    }
}
