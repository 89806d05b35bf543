//! Generates scripts for property tests: any callbacks with any arguments in any order, on a few threads.

use ompt_sys::*;
use proptest::prelude::prop;
use proptest::strategy::Union;
pub use proptest::strategy::{BoxedStrategy, Strategy};

use super::argument::*;
pub use super::argument::{Any, GENERATED_SLOTS};
use super::call::Call;
use super::script::{Round, Script, Step};

/// A script of one round with up to `threads` threads of up to `calls` calls each, which synchronize sometimes. Threads
/// share no slots, so the values in slots do not depend on the schedule.
pub fn script(threads: usize, calls: usize) -> impl Strategy<Value = Script> {
    let steps = prop::collection::vec(call().prop_map(Step::from), 0..calls);
    prop::collection::vec(steps, 1..=threads).prop_map(|mut threads| {
        for (thread, steps) in threads.iter_mut().enumerate() {
            move_slots(steps, thread as u32 * GENERATED_SLOTS);
            // All threads synchronize twice: at the start, and in the middle of their steps.
            steps.insert(steps.len() / 2, Step::Sync(1));
            steps.insert(0, Step::Sync(0));
        }
        Script { rounds: vec![Round::new(threads)], ..Script::default() }
    })
}

/// Any call that does not ask the tool to stop recording.
pub fn call() -> impl Strategy<Value = Call> {
    Union::new(Call::any_of_each()).prop_map(sound)
}

/// One call of each callback.
pub fn one_of_each() -> impl Strategy<Value = Vec<Call>> {
    Call::any_of_each().prop_map(|calls| calls.into_iter().map(sound).collect())
}

/// The kinds of dispatch whose instance points to a chunk.
const CHUNKS: [ompt_dispatch_t; 3] =
    [ompt_dispatch_ws_loop_chunk, ompt_dispatch_taskloop_chunk, ompt_dispatch_distribute_chunk];

fn move_slots(steps: &mut [Step], distance: u32) {
    for step in steps {
        if let Step::Call(call) = step {
            call.move_slots(distance);
        }
    }
}

/// Changes what no runtime can pass, or what would end the recording.
fn sound(mut call: Call) -> Call {
    match &mut call {
        Call::Dependences { deps, ndeps, .. } => match_count(deps, ndeps),
        Call::Dispatch { kind, instance, .. } => match_kind(*kind, instance),
        Call::Error { message: Text(Some(message)), length, .. } => *length = message.len() as u64,
        Call::ControlTool { command, arg, .. } => match_argument(command, arg),
        Call::TargetMap { nitems, host_addr, device_addr, bytes, mapping_flags, .. }
        | Call::TargetMapEmi { nitems, host_addr, device_addr, bytes, mapping_flags, .. } => {
            let arrays = [&*host_addr, &*device_addr, &*bytes];
            let lengths = arrays.map(Numbers::count).into_iter();
            let shortest = lengths.chain([mapping_flags.count()]).flatten().min();
            // Without any array the number has no meaning, and tools must not rely on it.
            *nitems = shortest.map_or(*nitems, |shortest| shortest as u32);
            for array in [host_addr, device_addr, bytes] {
                array.truncate(*nitems as usize);
            }
            mapping_flags.truncate(*nitems as usize);
        }
        Call::ParallelBegin { encountering_task_data, parallel_data, .. } => {
            part(*parallel_data, [encountering_task_data])
        }
        Call::TaskCreate { encountering_task_data, new_task_data, .. } => {
            part(*new_task_data, [encountering_task_data])
        }
        Call::ImplicitTask { parallel_data, task_data, .. } => part(*task_data, [parallel_data]),
        Call::TargetEmi { task_data, target_task_data, target_data, .. } => {
            part(*target_data, [task_data, target_task_data])
        }
        Call::TargetDataOpEmi { target_task_data, target_data, host_op_id, .. } => {
            part(*host_op_id, [target_task_data, target_data])
        }
        Call::TargetSubmitEmi { target_data, host_op_id, .. } => part(*host_op_id, [target_data]),
        _ => {}
    }
    call
}

/// Makes the new slot differ from all others.
fn part<const N: usize>(new: New, others: [&mut Data; N]) {
    for other in others.into_iter().filter(|other| **other == new.0) {
        *other = Data::Null;
    }
}

/// Gives an array as many elements as its count says. Keeps a negative count, on which tools must not rely.
fn match_count(deps: &mut Dependences, ndeps: &mut i32) {
    if let Dependences(Some(deps)) = deps {
        match *ndeps {
            ..0 => deps.clear(),
            _ => *ndeps = deps.len() as i32,
        }
    }
}

/// Makes the instance a chunk exactly if the kind is one.
fn match_kind(kind: Enum<ompt_dispatch_t>, instance: &mut Instance) {
    let is_chunk = CHUNKS.contains(&ompt_dispatch_t(kind.0));
    match *instance {
        Instance::Word(_) if is_chunk => *instance = Instance::Word(0),
        Instance::Chunk { start, .. } if !is_chunk => *instance = Instance::Word(start),
        _ => {}
    }
}

/// Makes the argument a name exactly if the command is for a phase. Avoids OpenMP's own commands, which change what is
/// recorded.
fn match_argument(command: &mut u64, argument: &ControlArgument) {
    const FIRST_PHASE: u64 = 64;
    const PHASES: u64 = 2;
    const USER: u64 = 1000;

    let is_phase = (FIRST_PHASE..FIRST_PHASE + PHASES).contains(command);
    let is_openmp = omp_control_tool_t::VALUES.iter().any(|&(_, value)| u64::from(value) == *command);
    match argument {
        ControlArgument::Phase(_) => *command = FIRST_PHASE + *command % PHASES,
        ControlArgument::Address(_) if is_phase || is_openmp => *command = USER,
        ControlArgument::Address(_) => {}
    }
}
