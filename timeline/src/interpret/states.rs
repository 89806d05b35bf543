//! The states of threads as intervals, if requested (`OMPTRACE_EVENTS=state`).
//!
//! The tracer asks the runtime only at some events. While a wait is open, the state follows from the wait; otherwise,
//! the newest answer applies until the next one. A thread has no state before its first answer.

use super::*;
use crate::model::LocationId;

/// The name of states in the tracer's settings.
const NAME: &str = "state";
const EVENTS: &str = "OMPTRACE_EVENTS";

/// A state, and the id of what the thread waits for in it.
type State = (ompt::ompt_state_t, u64);

/// The states of a process's threads; empty if not requested.
#[derive(Default)]
pub(crate) struct States {
    is_on: bool,
    threads: FastMap<usize, OfThread>,
}

/// A thread with a known state.
struct OfThread {
    track: LocationId,
    /// The runtime's newest answer.
    answer: State,
    /// The current state, and its start.
    now: State,
    since: Ns,
}

impl States {
    pub(crate) fn of(metadata: &Metadata) -> States {
        let events = metadata.settings.get(EVENTS);
        let mut names = events.iter().flat_map(|events| events.split(','));
        States { is_on: names.any(|name| name == NAME), threads: FastMap::default() }
    }

    pub(super) fn are_on(&self) -> bool {
        self.is_on
    }

    /// The runtime's answer for the thread with this name.
    pub(super) fn answered(
        &mut self,
        stage: &mut Stage<'_>,
        (thread, name): (usize, &str),
        time: Ns,
        answer: State,
    ) {
        let new = || OfThread {
            track: stage.location(LocationKind::Track, format!("states of {name}")),
            answer,
            now: answer,
            since: time,
        };
        self.threads.entry(thread).or_insert_with(new).answer = answer;
    }

    /// Sets the wait in which the thread is, if any.
    pub(super) fn settle(&mut self, stage: &mut Stage<'_>, thread: usize, time: Ns, wait: Option<Construct>) {
        if let Some(of_thread) = self.threads.get_mut(&thread) {
            let state = wait.and_then(state_of).map(|state| (state, 0));
            let state = state.unwrap_or(of_thread.answer);
            if state != of_thread.now {
                of_thread.show(stage, time);
                of_thread.now = state;
            }
        }
    }

    /// The thread ends.
    pub(super) fn end(&mut self, stage: &mut Stage<'_>, thread: usize, time: Ns) {
        if let Some(mut of_thread) = self.threads.remove(&thread) {
            of_thread.show(stage, time);
        }
    }

    /// The process ends.
    pub(super) fn finish(&mut self, stage: &mut Stage<'_>, time: Ns) {
        let mut threads: Vec<usize> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.end(stage, thread, time);
        }
    }
}

impl OfThread {
    /// Emits the state up to now.
    fn show(&mut self, stage: &mut Stage<'_>, time: Ns) {
        let (state, wait_id) = self.now;
        let begin = std::mem::replace(&mut self.since, time);
        if begin >= time {
            return;
        }
        let arguments = [argument("wait_id", hex(wait_id))];
        let known = usize::from(wait_id != 0);
        stage.interval(Interval {
            track: self.track,
            name: &crate::names::construct::state_name(state),
            category: Category::Omptrace,
            begin,
            end: time,
            arguments: &arguments[..known],
            work: None,
        });
    }
}

/// The state of a thread in this wait.
fn state_of(wait: Construct) -> Option<ompt::ompt_state_t> {
    Some(match wait {
        Construct::SyncRegionWait(kind) => match kind {
            ompt::ompt_sync_region_taskwait => ompt::ompt_state_wait_taskwait,
            ompt::ompt_sync_region_taskgroup => ompt::ompt_state_wait_taskgroup,
            ompt::ompt_sync_region_barrier_explicit => ompt::ompt_state_wait_barrier_explicit,
            ompt::ompt_sync_region_barrier_implicit => ompt::ompt_state_wait_barrier_implicit,
            ompt::ompt_sync_region_barrier_implicit_workshare => {
                ompt::ompt_state_wait_barrier_implicit_workshare
            }
            ompt::ompt_sync_region_barrier_implicit_parallel => {
                ompt::ompt_state_wait_barrier_implicit_parallel
            }
            ompt::ompt_sync_region_barrier_implementation => ompt::ompt_state_wait_barrier_implementation,
            ompt::ompt_sync_region_barrier_teams => ompt::ompt_state_wait_barrier_teams,
            ompt::ompt_sync_region_barrier => ompt::ompt_state_wait_barrier,
            _ => return None,
        },
        Construct::MutexWait(kind) => match kind {
            ompt::ompt_mutex_lock | ompt::ompt_mutex_nest_lock => ompt::ompt_state_wait_lock,
            ompt::ompt_mutex_critical => ompt::ompt_state_wait_critical,
            ompt::ompt_mutex_atomic => ompt::ompt_state_wait_atomic,
            ompt::ompt_mutex_ordered => ompt::ompt_state_wait_ordered,
            _ => return None,
        },
        _ => return None,
    })
}
