//! The events of a thread that creates tasks and runs each at once, within a lock: as events, and as words.

use ompt_sys as ompt;
use omptrace_trace_format::event::{
    Event, MutexAcquire, MutexAcquired, MutexReleased, TaskCreate, TaskSchedule, decode,
};
use omptrace_trace_format::field::{Address, Id};
use omptrace_trace_format::predict::State;

const FIRST_ID: u64 = 1 << 40;
const TASKS: u64 = 4000;
/// The ticks between the chunk's base and its first event, and between events.
const TICKS: u64 = 90;
/// The zstd level that the tracer uses.
pub(crate) const LEVEL: i32 = 1;

/// The events.
pub(crate) fn events() -> Vec<Event<'static>> {
    let implicit = Id(FIRST_ID + 1);
    let (kind, wait_id) = (ompt::ompt_mutex_lock, Address(0x7f00_1234_5678));
    let codeptr_ra = Address(0x40_1200);
    let schedule = |prior_task_data, prior_task_status, next_task_data| {
        Event::from(TaskSchedule { prior_task_data, prior_task_status, next_task_data })
    };
    let task = |number: u64| {
        let task = Id(FIRST_ID + 2 + number);
        [
            TaskCreate {
                has_dependences: 0,
                encountering_task_data: implicit,
                exit_frame: Address(0x7ffc_0000_1000),
                enter_frame: Address(0x7ffc_0000_0f00),
                exit_frame_flags: ompt::ompt_frame_flag_t(0x20),
                enter_frame_flags: ompt::ompt_frame_flag_t(0x20),
                new_task_data: task,
                flags: ompt::ompt_task_explicit,
                codeptr_ra,
            }
            .into(),
            schedule(implicit, ompt::ompt_task_switch, task),
            MutexAcquire { kind, hint: 0, r#impl: 2, wait_id, codeptr_ra }.into(),
            MutexAcquired { kind, wait_id, codeptr_ra }.into(),
            MutexReleased { kind, wait_id, codeptr_ra }.into(),
            schedule(task, ompt::ompt_task_complete, implicit),
        ]
    };
    (0..TASKS).flat_map(task).collect()
}

/// Replaces `words` with the encoded `events`.
pub(crate) fn encode(events: &[Event<'_>], words: &mut Vec<u64>) {
    words.clear();
    let mut state = State::new(FIRST_ID + 1);
    let mut out = [0; 16];
    for (event, index) in events.iter().zip(1..) {
        let len = event.encode(&mut state, index * TICKS, &mut out);
        words.extend_from_slice(&out[..len.expect("16 words suffice")]);
    }
}

/// Decodes the events in `words`, and returns the sum of their times.
pub(crate) fn read(mut words: &[u64]) -> u64 {
    let mut state = State::new(FIRST_ID + 1);
    let mut ticks = 0;
    while let Ok(decoded) = decode(words, &mut state) {
        ticks += decoded.ticks;
        words = &words[decoded.len..];
    }
    ticks
}
