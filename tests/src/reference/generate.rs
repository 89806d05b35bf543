//! Scripts for property tests: any callback with any arguments in any order, on a few threads.

use ompt_sys::*;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::argument::*;
use super::call::Call;
use super::script::{Round, Script, Step};

/// A script of one round with up to `threads` threads of up to `calls` calls each, which meet now and then. Threads
/// share no slots, so what each slot holds does not depend on the schedule.
pub fn script(threads: usize, calls: usize) -> impl Strategy<Value = Script> {
    let steps = prop::collection::vec(call().prop_map(Step::from), 0..calls);
    prop::collection::vec(steps, 1..=threads).prop_map(|mut threads| {
        for (thread, steps) in threads.iter_mut().enumerate() {
            move_slots(steps, thread as u32 * GENERATED_SLOTS);
            // Everyone meets twice: at the beginning, and in the middle of what each does.
            steps.insert(steps.len() / 2, Step::Sync(1));
            steps.insert(0, Step::Sync(0));
        }
        Script {
            rounds: vec![Round::new(threads)],
            ..Script::default()
        }
    })
}

/// Any call that does not tell the tool to stop recording.
pub fn call() -> impl Strategy<Value = Call> {
    Union::new(Call::any_of_each()).prop_map(sound)
}

/// One call of each callback.
pub fn one_of_each() -> impl Strategy<Value = Vec<Call>> {
    Call::any_of_each().prop_map(|calls| calls.into_iter().map(sound).collect())
}

/// The kinds of dispatch whose instance points to a chunk.
const CHUNKS: [ompt_dispatch_t; 3] = [
    ompt_dispatch_ws_loop_chunk,
    ompt_dispatch_taskloop_chunk,
    ompt_dispatch_distribute_chunk,
];

fn move_slots(steps: &mut [Step], distance: u32) {
    for step in steps {
        if let Step::Call(call) = step {
            call.move_slots(distance);
        }
    }
}

/// Changes what no runtime can pass: an array shorter than the count beside it says, a chunk that is no pointer.
fn sound(mut call: Call) -> Call {
    match &mut call {
        Call::Dependences {
            deps: Dependences(Some(deps)),
            ndeps,
            ..
        } => {
            // Sometimes a number without sense, with an array that nobody may read.
            match ndeps {
                ..0 => deps.clear(),
                _ => *ndeps = deps.len() as i32,
            }
        }
        Call::TargetMap {
            nitems,
            host_addr,
            device_addr,
            bytes,
            mapping_flags,
            ..
        }
        | Call::TargetMapEmi {
            nitems,
            host_addr,
            device_addr,
            bytes,
            mapping_flags,
            ..
        } => {
            let arrays = [&mut host_addr.0, &mut device_addr.0, &mut bytes.0];
            let lengths = arrays.iter().map(|array| array.as_ref().map(Vec::len));
            let shortest = lengths
                .chain([mapping_flags.0.as_ref().map(Vec::len)])
                .flatten()
                .min();
            if let Some(shortest) = shortest {
                *nitems = shortest as u32;
                arrays
                    .into_iter()
                    .flatten()
                    .for_each(|array| array.truncate(shortest));
                mapping_flags
                    .0
                    .iter_mut()
                    .for_each(|array| array.truncate(shortest));
            }
        }
        Call::Error {
            message: Text(Some(message)),
            length,
            ..
        } => *length = message.len() as u64,
        Call::Dispatch { kind, instance, .. } => {
            let is_chunk = CHUNKS.contains(&ompt_dispatch_t(kind.0));
            match instance {
                Instance::Word(word) if is_chunk => *word = 0,
                Instance::Chunk { start, .. } if !is_chunk => *instance = Instance::Word(*start),
                _ => {}
            }
        }
        Call::ControlTool { command, arg, .. } => {
            if *command <= u64::from(omp_control_tool_end.0) {
                *command += 1000;
            }
            match arg {
                ControlArgument::Address(address) => {
                    if (64..66).contains(command) {
                        *arg = ControlArgument::Phase(Text(None));
                    } else {
                        *address += 1;
                    }
                }
                ControlArgument::Phase(_) => *command = 64 + *command % 2,
            }
        }
        _ => {}
    }
    call
}
