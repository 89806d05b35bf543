//! The script that is to be played.

pub mod steps;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::call::Call;
use super::device::Device;
use super::dialect::Dialect;

use steps::{Collect, Entry, Offload, Tr2};

/// A whole process: one round after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The generation of the tools interface.
    pub dialect: Dialect,
    /// Where it is that of 2014: how the runtime finds the tool; then `dialect` means nothing.
    pub tr2: Option<Entry>,
    /// The runtime's version that `ompt_start_tool` gets; empty: its own name.
    pub runtime_version: String,
    /// The answer of `ompt_set_callback` for a callback, by its name without `ompt_callback_`: a number of
    /// `ompt_set_result_t`. Those below `ompt_set_sometimes` are not delivered. Where nothing is said, `ompt_set_always`.
    pub grants: BTreeMap<String, u32>,
    /// Its devices, which are numbered from 0.
    pub devices: Vec<Device>,
    /// The steps between one initialization of the tool and its end.
    pub rounds: Vec<Round>,
}

/// From the search for a tool to its end. A second round is what follows `omp_pause_resource_all` in LLVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// The steps of each thread. All are alive until the last one is done, so their thread ids differ.
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

/// One thing that a thread does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Calls the tool, if it registered the callback.
    Call(Call),
    /// Waits until every thread of the round that has a step with this number is at it.
    Sync(u32),
    /// Calls a collector, if it registered the event.
    Collect(Collect),
    /// Calls a tool of 2014, if it registered the event.
    Tr2(Tr2),
    /// Forks.
    Fork(Fork),
    /// Target regions on a device.
    Offload(Offload),
    /// A device writes records of kernels that no host has submitted.
    Storm {
        /// The device's number.
        device: u32,
        /// How many.
        records: u64,
    },
    /// Does all of `steps`, `times` times.
    Repeat {
        /// How often.
        times: u32,
        /// The steps.
        steps: Vec<Step>,
    },
}

/// A fork; the thread that forks waits for the child.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fork {
    /// Where the child's runtime searches for a tool again, as TR2, 6.1.1, says of one that is initialized again: how.
    pub searches_again: Option<Entry>,
    /// The steps of the child on its only thread.
    pub steps: Vec<Step>,
    /// How it ends then.
    pub end: ChildEnd,
}

/// How a child ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    /// It calls `exit`.
    #[default]
    Exit,
    /// It calls `_exit`: no destructor runs.
    QuickExit,
    /// It executes this program, which plays the script.
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
    /// `None`: when all threads are done. Else while they go on: as soon as each has made that number of calls.
    pub after_calls: Option<usize>,
    /// The way in which the main thread ends it.
    pub how: How,
}

/// The end of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The runtime calls the tool's finalize. Threads that go on still make their calls, as late workers of real
    /// runtimes do; the library is closed when they are done.
    #[default]
    Finalize,
    /// `main` returns, and nobody finalizes the tool.
    Return,
    /// The program calls `exit`.
    Exit,
    /// The program calls `_exit`: no destructor runs.
    QuickExit,
    /// The program aborts.
    Abort,
}
