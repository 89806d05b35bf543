//! The format of records in a thread's ring: a sample, or the stack of a region's or task's creator; header words, then
//! the frames.

use omptrace_trace_format::field::StackEnd;

use crate::samples::runtime_state::Answer;

/// The words before the frames.
const HEAD_WORDS: usize = 6;
/// Position of the kind in the last header word.
const KIND_SHIFT: u32 = 32;
const SAMPLE: u64 = 0;
const CONTEXT: u64 = 1;

/// A record that a thread stores in its ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    Sample(Sample),
    Context(Context),
}

/// A sample of what the thread was doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) ticks: u64,
    /// The CPU time that the sample represents.
    pub(super) weight_ns: u64,
    pub(super) answer: Answer,
    /// Number of frames inside of the task's exit frame, and of its enter frame.
    pub(super) inside: [i32; 2],
    pub(super) end: StackEnd,
}

/// The region or task that the thread created on this stack; the other id is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) ticks: u64,
    pub(super) parallel_data: u64,
    pub(super) task_data: u64,
    pub(super) end: StackEnd,
}

impl Taken {
    /// The header words.
    pub(super) fn words(&self) -> [u64; HEAD_WORDS] {
        let pair = |[low, high]: [u32; 2]| u64::from(low) | u64::from(high) << 32;
        match self {
            Taken::Sample(sample) => [
                sample.ticks,
                sample.weight_ns,
                sample.answer.wait_id,
                pair([sample.answer.state, sample.answer.task_flags]),
                pair(sample.inside.map(|frames| frames as u32)),
                SAMPLE << KIND_SHIFT | u64::from(sample.end.0),
            ],
            Taken::Context(context) => [
                context.ticks,
                context.parallel_data,
                context.task_data,
                0,
                0,
                CONTEXT << KIND_SHIFT | u64::from(context.end.0),
            ],
        }
    }

    /// Decodes a record, and returns its frames; `None` if it is too short.
    pub(super) fn of_words(words: &[u64]) -> Option<(Taken, &[u64])> {
        let pair = |word: u64| [word as u32, (word >> 32) as u32];
        let (head, frames) = words.split_first_chunk::<HEAD_WORDS>()?;
        let [ticks, second, third, state_and_flags, inside, last] = *head;
        let end = StackEnd(last as u32);
        let [state, task_flags] = pair(state_and_flags);
        let taken = match last >> KIND_SHIFT {
            SAMPLE => Taken::Sample(Sample {
                ticks,
                weight_ns: second,
                answer: Answer { state, wait_id: third, task_flags, frames: [0; 2] },
                inside: pair(inside).map(|frames| frames as i32),
                end,
            }),
            _ => Taken::Context(Context { ticks, parallel_data: second, task_data: third, end }),
        };
        Some((taken, frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_stored() {
        let sample = Taken::Sample(Sample {
            ticks: u64::MAX,
            weight_ns: 4_000_000,
            answer: Answer {
                state: 0x102,
                wait_id: 0x7fff_0000_1234,
                task_flags: 0x8000_0001,
                frames: [0; 2],
            },
            inside: [-2, 300],
            end: StackEnd::limit,
        });
        let context = Taken::Context(Context {
            ticks: 5,
            parallel_data: 1 << 40,
            task_data: 9,
            end: StackEnd::outermost,
        });
        for taken in [sample, context] {
            let words = [&taken.words()[..], &[7, 8]].concat();
            let (read, frames) = Taken::of_words(&words).unwrap();
            assert_eq!(read.words(), taken.words());
            assert_eq!(frames, [7, 8]);
        }
        assert!(Taken::of_words(&[0; 5]).is_none());
    }
}
