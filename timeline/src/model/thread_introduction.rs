//! What the start of a stream says of its thread.

use ompt_sys as ompt;
use omptrace_trace_format::field::{Address, Id};

use crate::model::ThreadRole;

/// The name of the process's first thread.
pub(crate) const MAIN: &str = "main";

/// A stream's thread, as far as the start of its stream says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadIntroduction {
    /// The number of its stream in the trace.
    pub stream: u32,
    /// The operating system's id for it; 0 where that is not known.
    pub os_tid: u32,
    /// The operating system's name of the thread; empty where it is not known.
    pub os_name: String,
    /// Why the thread exists; `None` where it never said so.
    pub thread_type: Option<ompt::ompt_thread_t>,
    /// The first parallel region that it begins.
    pub first_region: Option<FirstRegion>,
    /// The first team that it is a member of.
    pub team: Option<Membership>,
    /// The stream is not a thread's but that of this device.
    pub device_num: Option<i32>,
    /// The stream is not a thread's but holds the samples of the thread that has this stream.
    pub samples_of: Option<u32>,
    /// It is a hidden helper.
    pub is_helper: bool,
    /// Its name for people; unique within the process.
    pub name: String,
}

/// A parallel region that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstRegion {
    /// The runtime's id of it.
    pub id: Id,
    /// When, in raw ticks.
    pub ticks: u64,
    /// The code address that it was encountered at.
    pub codeptr_ra: Address,
}

/// A place in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The parallel region whose team it is.
    pub region: Id,
    /// The thread's number in the team.
    pub index: u32,
}

impl ThreadIntroduction {
    /// Whether it is a thread of the program's own.
    pub fn is_initial(&self) -> bool {
        self.thread_type == Some(ompt::ompt_thread_initial)
    }

    /// The thread's role for people; a device's stream is no thread.
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
