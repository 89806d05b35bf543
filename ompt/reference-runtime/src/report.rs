//! What was played.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::argument::Line;
use super::device::Played;
use super::tool::Found;

/// What was played.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// All rounds, or those up to the one that ended the process.
    pub rounds: Vec<PlayedRound>,
}

/// What was played in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlayedRound {
    /// The result of the search for a tool.
    pub tool: Found,
    /// By thread, in the script's order.
    pub threads: Vec<PlayedThread>,
    /// By device, for all rounds so far.
    pub devices: Vec<Played>,
}

/// What a thread played.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlayedThread {
    /// The kernel's id of the thread.
    pub os_tid: i32,
    /// The calls that returned, in order, without those of callbacks that the tool has not registered.
    pub played: Vec<Line>,
    /// Number of these calls that had returned before the round's [`End`](super::End) began.
    pub played_before_end: usize,
    /// The results of each call of `control_tool`, in order.
    pub control_tool_results: Vec<i32>,
    /// What the threads of its forked children played, in order.
    pub children: Vec<PlayedThread>,
}

/// Locks the log, even if a thread has panicked with it.
pub(super) fn lock(log: &Mutex<PlayedThread>) -> MutexGuard<'_, PlayedThread> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
