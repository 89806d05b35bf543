//! Measures the cost of an event on this machine, by recording some thousand events into unused memory.

use ompt_sys::ompt_mutex_critical;
use omptrace_trace_format::block::CHUNK_HEADER_WORDS;
use omptrace_trace_format::event::{CompactRow, MutexAcquire, MutexAcquired, MutexReleased, encode_compact};
use omptrace_trace_format::field::Address;

use crate::os::system;
use crate::os::time::clock;
use crate::recorder::recorder::Recorder;

/// Number of words for events.
const WORDS: usize = 1 << 13;
/// Number of rounds per batch, which is timed as a whole; a round has three events. Preemption of the thread spoils one
/// batch.
const ROUNDS: usize = 64;
const BATCHES: usize = 40;
/// If batches take longer than usual, fewer are measured: none is started after this many nanoseconds.
const MAX_NS: u64 = 150_000;

/// Duration of recording a typical event, in ticks of the session's clock: the median of several batches. `None` if
/// there is no memory. Takes at most 0.2 ms.
pub(crate) fn event_ticks() -> Option<f64> {
    let chunk = Memory::new((CHUNK_HEADER_WORDS + WORDS) * size_of::<u64>())?;
    let memory = Memory::new(size_of::<Recorder>())?;
    // SAFETY: zeroed memory of the right size, page-aligned, and all zeros is a valid recorder. Only this thread uses
    // it.
    let recorder: &Recorder = unsafe { &*memory.base.cast() };
    let words = chunk.base.cast::<u64>().wrapping_add(CHUNK_HEADER_WORDS);
    // SAFETY: only this thread uses the memory, and zeros before the words are a header with published length 0.
    unsafe { recorder.begin_trial(words, WORDS, clock::ticks()) };
    let mut ticks: Vec<u64> = Vec::with_capacity(BATCHES);
    let begun = system::clock_ns(libc::CLOCK_MONOTONIC);
    // Warm up the predictors.
    (0..4).for_each(|_| {
        put_first(recorder, acquire());
        put_first(recorder, acquired());
        put_first(recorder, released());
    });
    while ticks.len() < BATCHES {
        let before = clock::ticks();
        for _ in 0..ROUNDS {
            if !(put(recorder, acquire()) && put(recorder, acquired()) && put(recorder, released())) {
                return None;
            }
        }
        ticks.push(clock::ticks().wrapping_sub(before));
        if system::clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(begun) > MAX_NS {
            break;
        }
    }
    ticks.sort_unstable();
    Some(ticks[ticks.len() / 2] as f64 / (3 * ROUNDS) as f64)
}

/// Records an event like a callback.
#[inline(always)]
fn put<R: CompactRow>(recorder: &Recorder, row: R) -> bool {
    recorder.try_put_predicted(|_| row) || recorder.try_put(|_| row)
}

fn put_first<R: CompactRow>(recorder: &Recorder, row: R) {
    let _ = recorder.put_slowly(clock::ticks(), |state, ticks, out| encode_compact(row, state, ticks, out));
}

/// The lock in all events.
const LOCK: Address = Address(1);
/// The code address of all events.
const CODE: Address = Address(2);

fn acquire() -> MutexAcquire {
    MutexAcquire { kind: ompt_mutex_critical, hint: 0, r#impl: 0, wait_id: LOCK, codeptr_ra: CODE }
}

fn acquired() -> MutexAcquired {
    MutexAcquired { kind: ompt_mutex_critical, wait_id: LOCK, codeptr_ra: CODE }
}

fn released() -> MutexReleased {
    MutexReleased { kind: ompt_mutex_critical, wait_id: LOCK, codeptr_ra: CODE }
}

/// Zeroed memory, freed on drop.
struct Memory {
    base: *mut u8,
    len: usize,
}

impl Memory {
    fn new(len: usize) -> Option<Memory> {
        let base = system::map_zeroed(len).ok()?;
        Some(Memory { base, len })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        system::unmap(self.base, self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_cost_whichever_the_clock_is() {
        // Before a clock is chosen, it is not the counter.
        for choose in [|| {}, clock::choose_counter] {
            choose();
            let ticks = event_ticks().expect("memory");
            assert!(ticks > 0.0, "{ticks}");
        }
    }
}
