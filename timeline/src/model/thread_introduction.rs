//! What the start of a stream shows about its thread.

use ompt_sys as ompt;
use omptrace_trace_format::field::{Address, Id};

use crate::model::ThreadRole;

/// The name of the process's first thread.
pub(crate) const MAIN: &str = "main";

/// A stream's thread, as far as the start of the stream shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadIntroduction {
    /// The number of its stream in the trace.
    pub stream: u32,
    /// The thread's id in the operating system; 0 if unknown.
    pub os_tid: u32,
    /// The thread's name in the operating system; empty if unknown.
    pub os_name: String,
    /// The thread's type; `None` if it never announced itself.
    pub thread_type: Option<ompt::ompt_thread_t>,
    /// The first parallel region that it starts.
    pub first_region: Option<FirstRegion>,
    /// The first team of which it is a member.
    pub team: Option<Membership>,
    /// If the stream does not belong to a thread but to a device: the device's number.
    pub device_num: Option<i32>,
    /// If the stream contains the samples of a thread: that thread's stream.
    pub samples_of: Option<u32>,
    /// It is a hidden helper of the runtime.
    pub is_helper: bool,
    /// The displayed name; unique within the process.
    pub name: String,
}

/// A parallel region that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstRegion {
    /// Its id.
    pub id: Id,
    /// Its start, in raw ticks.
    pub ticks: u64,
    /// Its code address.
    pub codeptr_ra: Address,
}

/// A membership in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The team's parallel region.
    pub region: Id,
    /// The thread's number in the team.
    pub index: u32,
}

impl ThreadIntroduction {
    /// Whether the thread is one of the program's own.
    pub fn is_initial(&self) -> bool {
        self.thread_type == Some(ompt::ompt_thread_initial)
    }

    /// The displayed role of the thread; the stream of a device is not a thread.
    pub fn role(&self) -> ThreadRole {
        match self.thread_type {
            _ if self.name == MAIN => ThreadRole::Main,
            _ if self.is_helper => ThreadRole::Helper,
            Some(ompt::ompt_thread_initial) => ThreadRole::Initial,
            Some(ompt::ompt_thread_worker) => ThreadRole::Worker,
            _ => ThreadRole::Other,
        }
    }
}
