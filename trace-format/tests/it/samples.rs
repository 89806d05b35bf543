//! Samples are read unchanged, with all frames of their stacks.

use ompt_sys as ompt;
use omptrace_trace_format::DiagnosticKind;
use omptrace_trace_format::codec::Packer;
use omptrace_trace_format::event::{Context, Event, Sample, SampleStream};
use omptrace_trace_format::field::{Address, Id, SampleClock, Stack, StackEnd};
use omptrace_trace_format::stack::Stacks;

use crate::build::{Trace, chunk, encode, random, read};

fn sample(stack: Stack<'_>) -> Event<'_> {
    Event::from(Sample {
        weight_ns: 4_000_000,
        state: ompt::ompt_state_work_parallel,
        wait_id: Address(0),
        task_flags: ompt::ompt_task_implicit,
        exit_frame: 2,
        enter_frame: -1,
        end: StackEnd::outermost,
        stack,
    })
}

fn context(stack: Stack<'_>) -> Event<'_> {
    Event::from(Context { parallel_data: Id(77), task_data: Id::NULL, end: StackEnd::outermost, stack })
}

fn stream() -> Event<'static> {
    Event::from(SampleStream { thread_stream: 1, clock: SampleClock::cpu, period_ns: 1_000_000 })
}

/// The words of a chunk with samples of these stacks; the last stack is that of a context.
fn words(first_id: u64, stacks: &[Vec<u64>]) -> Vec<u64> {
    let mut coder = Stacks::default();
    let mut events = vec![stream()];
    for (index, frames) in stacks.iter().enumerate() {
        let stack = coder.shorten(frames);
        events.push(match index + 1 == stacks.len() {
            true => context(stack),
            false => sample(stack),
        });
    }
    encode(first_id, &events)
}

/// The frames of all events that have a stack.
fn frames(events: &[(u32, u64, Event<'static>)]) -> Vec<Vec<u64>> {
    let stacks = events.iter().filter_map(|(_, _, event)| event.stack().cloned());
    stacks
        .map(|stack| {
            assert_eq!(stack.shared, 0, "all frames are there");
            stack.frames.into_owned()
        })
        .collect()
}

#[test]
fn each_chunk_gives_whole_stacks() {
    let stacks = vec![vec![40, 20, 10], vec![41, 20, 10], vec![20, 10], vec![50, 30, 10]];
    let (first, second) = (chunk(2, 0), chunk(2, 1));
    let trace = Trace::new()
        .raw(first, &words(first.first_id, &stacks))
        .packed(second, &words(second.first_id, &stacks))
        .end();
    let found = read(&trace.write());
    assert_eq!(found.kinds(), []);
    assert_eq!(frames(&found.events), [&stacks[..], &stacks[..]].concat());
}

/// Stacks that share frames with an unreadable stack would have wrong frames.
#[test]
fn what_shares_frames_with_a_stack_that_cannot_be_read_is_no_sample() {
    let stacks = vec![vec![4, 2, 1], vec![5, 2, 1], vec![6, 2, 1], vec![9]];
    let chunk = chunk(2, 0);
    let mut words = words(chunk.first_id, &stacks);
    let second = words.iter().rposition(|word| *word == 5).expect("its frame");
    // The number of shared frames of the second stack, which becomes larger than the first stack.
    words[second - 1] = 7;
    let found = read(&Trace::new().raw(chunk, &words).end().write());
    assert_eq!(found.kinds(), [DiagnosticKind::EventsDamaged]);
    assert_eq!(found.diagnostics[0].count, 2);
    assert_eq!(frames(&found.events), [vec![4, 2, 1], vec![9]]);
}

/// Samples with 12 frames, of which the innermost three vary; the goal is 16 bytes per sample.
#[test]
fn a_packed_sample_takes_few_bytes() {
    const SAMPLES: usize = 2000;
    let mut random = random(1);
    let mut any = |base: u64, count: u64| base + 16 * (random() % count);
    let stacks: Vec<Vec<u64>> = (0..SAMPLES)
        .map(|_| {
            let leaf = [any(0x5555_5555_1000, 60), any(0x5555_5555_2000, 6), any(0x5555_5555_3000, 3)];
            let root = (0..9).map(|frame| 0x7fff_f7a0_0000 + 0x1230 * frame);
            leaf.into_iter().chain(root).collect()
        })
        .collect();
    let words = words(0, &stacks);
    let mut packer = Packer::new(3, words.len()).unwrap();
    let bytes = packer.pack(&words).expect("whole events").payload.len();
    assert!(bytes < 16 * SAMPLES, "{} bytes per sample", bytes / SAMPLES);
}
