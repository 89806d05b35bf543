//! What a thread did while others waited for it.
//!
//! All ranks of a collective operation may wait for one thread, for the same time. Reading the thread's spans once for
//! each of them would take too long in large jobs, so blocks of spans have sums.

use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::sum::Sum as _;

/// What a thread did: the cause, and the number of the place in the job. `None` if this was not recorded.
pub(super) type Done = Option<(Cause, Option<u32>)>;

/// The time of a thread with one cause.
pub(super) type Span = (Ns, Ns, Cause, Option<u32>);

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The thread waited in an MPI call.
    Wait(Done, (Ns, Ns)),
    /// It did anything else, this long in nanoseconds.
    Other(Done, u64),
}

impl Part {
    pub(super) fn done(&self) -> Done {
        let (Part::Wait(done, _) | Part::Other(done, _)) = self;
        *done
    }

    pub(super) fn ns(&self) -> u64 {
        match self {
            Part::Wait(_, (begin, end)) => begin.abs_diff(*end),
            Part::Other(_, ns) => *ns,
        }
    }
}

/// The spans of a thread.
#[derive(Debug)]
pub(super) struct Activity {
    /// In chronological order.
    spans: Vec<Span>,
    /// Of each [`BLOCK`] spans.
    blocks: Vec<Block>,
}

/// Number of spans in a block.
const BLOCK: usize = 64;

/// The sums of consecutive spans, from the begin of the first to the end of the last.
#[derive(Debug)]
struct Block {
    begin: Ns,
    end: Ns,
    /// A part for each thing that the thread did, including what was not recorded, and for each of its waits.
    parts: Vec<Part>,
}

impl Activity {
    pub(super) fn of(spans: Vec<Span>) -> Activity {
        let blocks = spans.chunks(BLOCK).map(Block::of).collect();
        Activity { spans, blocks }
    }

    /// The parts of a time, in any order: a block in it is one part for each thing that the thread did there.
    pub(super) fn parts(&self, (begin, end): (Ns, Ns), each: &mut dyn FnMut(Part)) {
        let mut until = begin;
        let mut place = self.spans.partition_point(|(_, end, ..)| *end <= begin);
        while let Some(span) = self.spans.get(place).filter(|(from, ..)| *from < end) {
            let block = self.blocks.get(place / BLOCK).filter(|_| place.is_multiple_of(BLOCK));
            match block.filter(|it| until <= it.begin && it.end <= end) {
                Some(block) => {
                    not_recorded(until, block.begin, each);
                    block.parts.iter().for_each(|part| each(*part));
                    until = block.end;
                    place += BLOCK;
                }
                None => {
                    until = part(span, (until, end), each);
                    place += 1;
                }
            }
        }
        not_recorded(until, end, each);
    }
}

/// The part of a time that is in a span, and what is before it. Returns the end of what has been passed on.
fn part((from, to, cause, place): &Span, (until, end): (Ns, Ns), each: &mut dyn FnMut(Part)) -> Ns {
    let (from, to) = ((*from).max(until), (*to).min(end));
    if from >= to {
        return until;
    }
    not_recorded(until, from, each);
    let done = Some((*cause, *place));
    each(match cause {
        Cause::MpiWait => Part::Wait(done, (from, to)),
        _ => Part::Other(done, from.abs_diff(to)),
    });
    to
}

fn not_recorded(begin: Ns, end: Ns, each: &mut dyn FnMut(Part)) {
    if begin < end {
        each(Part::Other(None, begin.abs_diff(end)));
    }
}

impl Block {
    fn of(spans: &[Span]) -> Block {
        let begin = spans.first().map_or(0, |span| span.0);
        let mut parts: Vec<Part> = Vec::new();
        let mut end = begin;
        for span in spans {
            end = part(span, (end, Ns::MAX), &mut |part| {
                let sum = parts.iter_mut().find_map(|it| match it {
                    Part::Other(done, ns) if *done == part.done() => Some(ns),
                    _ => None,
                });
                match (part, sum) {
                    (Part::Other(_, ns), Some(sum)) => sum.grow_by(ns),
                    _ => parts.push(part),
                }
            });
        }
        Block { begin, end, parts }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Spans with gaps. In each block, one overlaps the next span.
    fn spans(waits: bool) -> Vec<Span> {
        let causes = [Cause::Useful, Cause::MpiTransfer, Cause::MpiOther];
        let span = |number: i64| {
            let cause = if waits && number % 97 == 0 { Cause::MpiWait } else { causes[number as usize % 3] };
            let begin = number * 10 + number % 4;
            (
                begin,
                begin + 4 + number % 3 + if number % BLOCK as i64 == 10 { 12 } else { 0 },
                cause,
                Some((number % 5) as u32),
            )
        };
        (0..1000).map(span).collect()
    }

    type Sums = BTreeMap<Done, u64>;

    fn sums(time: (Ns, Ns), parts: impl FnOnce(&mut dyn FnMut(Part))) -> Sums {
        let mut sums = Sums::new();
        parts(&mut |part| *sums.entry(part.done()).or_default() += part.ns());
        assert_eq!(sums.values().sum::<u64>(), time.0.abs_diff(time.1), "{time:?}");
        sums
    }

    #[test]
    fn blocks_have_the_sums_of_their_spans() {
        for waits in [false, true] {
            let spans = spans(waits);
            let activity = Activity::of(spans.clone());
            for time in [
                (0, 10_020),
                (-5, 700),
                (3, 641),
                (640, 1_281),
                (1_000, 1_001),
                (1_003, 9_999),
                (20_000, 20_001),
            ] {
                let one_by_one = sums(time, |each| {
                    let mut until = time.0;
                    for span in spans.iter().filter(|span| span.0 < time.1) {
                        until = part(span, (until, time.1), each);
                    }
                    not_recorded(until, time.1, each);
                });
                assert_eq!(sums(time, |each| activity.parts(time, each)), one_by_one, "{time:?}");
            }
        }
    }

    #[test]
    fn a_long_time_has_few_parts() {
        for waits in [false, true] {
            let mut count = 0;
            Activity::of(spans(waits)).parts((0, 10_020), &mut |_| count += 1);
            assert!(count < 320, "{count}");
        }
    }
}
