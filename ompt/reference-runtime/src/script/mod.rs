//! The script to play.

pub mod steps;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::call::Call;
use super::device::Device;
use super::dialect::Dialect;

use steps::{Collect, Entry, Offload, Tr2};

/// A script for a whole process, which plays one round after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The generation of the tools interface.
    pub dialect: Dialect,
    /// For OMPT of 2014: how the runtime finds the tool; `dialect` is then ignored.
    pub tr2: Option<Entry>,
    /// The version text passed to `ompt_start_tool`; if empty, the runtime's own name.
    pub runtime_version: String,
    /// The results of `ompt_set_callback`, as numbers of `ompt_set_result_t`, by callback name without
    /// `ompt_callback_`. Callbacks with a result below `ompt_set_sometimes` are not delivered. The default is
    /// `ompt_set_always`.
    pub grants: BTreeMap<String, u32>,
    /// The script's devices, numbered from 0.
    pub devices: Vec<Device>,
    /// Each round is played between an initialization of the tool and its finalization.
    pub rounds: Vec<Round>,
}

/// From the search for a tool to its finalization. A second round corresponds to what follows `omp_pause_resource_all`
/// in LLVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// The steps of each thread. All threads exist until the last one is done, so their thread ids differ.
    pub threads: Vec<Vec<Step>>,
    /// How the round ends.
    pub end: End,
}

impl Round {
    /// A round that ends regularly.
    pub fn new(threads: Vec<Vec<Step>>) -> Round {
        Round { threads, end: End::default() }
    }
}

/// A step of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Calls the tool, if it has registered the callback.
    Call(Call),
    /// Waits until every thread of the round that has a step with this number has reached it.
    Sync(u32),
    /// Calls a collector, if it has registered the event.
    Collect(Collect),
    /// Calls a tool for OMPT of 2014, if it has registered the event.
    Tr2(Tr2),
    /// Forks.
    Fork(Fork),
    /// Target regions on a device.
    Offload(Offload),
    /// A device writes kernel records that do not belong to operations of the host.
    Storm {
        /// The device's number.
        device: u32,
        /// Number of records.
        records: u64,
    },
    /// Plays all of `steps`, `times` times.
    Repeat {
        /// Number of repetitions.
        times: u32,
        /// The steps.
        steps: Vec<Step>,
    },
}

/// A fork; the thread that forks waits for the child.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fork {
    /// How the child's runtime searches for a tool again, if it does (TR2, 6.1.1, for a runtime that is initialized
    /// again).
    pub searches_again: Option<Entry>,
    /// The steps of the child's only thread.
    pub steps: Vec<Step>,
    /// How the child ends after that.
    pub end: ChildEnd,
}

/// How a forked child ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    /// It calls `exit`.
    #[default]
    Exit,
    /// It calls `_exit`: no destructor runs.
    QuickExit,
    /// It executes this program again, which plays the script.
    Exec(Box<Script>),
}

impl From<Call> for Step {
    fn from(call: Call) -> Step {
        Step::Call(call)
    }
}

impl From<Collect> for Step {
    fn from(event: Collect) -> Step {
        Step::Collect(event)
    }
}

impl From<Tr2> for Step {
    fn from(event: Tr2) -> Step {
        Step::Tr2(event)
    }
}

impl From<Fork> for Step {
    fn from(fork: Fork) -> Step {
        Step::Fork(fork)
    }
}

/// How and when a round ends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// `None`: when all threads are done. Otherwise, while threads continue: as soon as each has made this number of
    /// calls.
    pub after_calls: Option<usize>,
    /// How the main thread ends the round.
    pub how: How,
}

/// The end of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The runtime calls the tool's finalize function. Threads that continue still make their calls, as late workers of
    /// real runtimes do; the library is closed when they are done.
    #[default]
    Finalize,
    /// `main` returns without finalizing the tool.
    Return,
    /// The program calls `exit`.
    Exit,
    /// The program calls `_exit`: no destructor runs.
    QuickExit,
    /// The program aborts.
    Abort,
}
