//! What was played.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::argument::Line;
use super::device::Played;
use super::tool::Found;

/// The steps that were played.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Each round up to the one that ended the process, or all.
    pub rounds: Vec<PlayedRound>,
}

/// The steps that were played in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlayedRound {
    /// The result of the search for a tool.
    pub tool: Found,
    /// By thread, in the script's order.
    pub threads: Vec<PlayedThread>,
    /// By device; all rounds so far.
    pub devices: Vec<Played>,
}

/// The steps that a thread played.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlayedThread {
    /// The kernel's id of the thread.
    pub os_tid: i32,
    /// The calls that returned, in order. Those of callbacks that the tool has not registered are left out.
    pub played: Vec<Line>,
    /// How many of them had returned before the round's [`End`](super::End) began.
    pub played_before_end: usize,
    /// The results of each call of `control_tool`, in order.
    pub control_tool_results: Vec<i32>,
    /// The steps that the threads of its children played, in order.
    pub children: Vec<PlayedThread>,
}

/// The log, whoever panicked with it.
pub(super) fn lock(log: &Mutex<PlayedThread>) -> MutexGuard<'_, PlayedThread> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
