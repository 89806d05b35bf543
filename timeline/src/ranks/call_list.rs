//! The calls of a rank in chronological order, and when the rank began and ended.

use std::sync::Arc;

use omptrace_trace_format::event::{CallBegin, CallEnd};
use omptrace_trace_format::field::CallClass;

use crate::model::Ns;
use crate::ranks::call_store::{CallFile, CallStore, RankCall};
use crate::ranks::posting::{ANY, CallNumber, Span, name_of};

/// The calls of one rank.
#[derive(Debug, Default)]
pub(super) struct CallList {
    /// The thread that made the first call.
    pub(super) thread: Option<u32>,
    /// Its calls, if they are wanted.
    pub(super) calls: CallStore,
    /// The call of `MPI_Finalize`.
    pub(super) finalize: Option<Span>,
    /// The latest event of the process.
    pub(super) last: Option<Ns>,
    /// Why it is not known how the rank would have gone on at other times.
    pub(super) obstacle: Option<String>,
    is_wanted: bool,
    /// A call of the thread, and its function.
    open: Option<(Ns, u32)>,
}

impl CallList {
    /// A list that keeps its calls in `file`; without one, it keeps none.
    pub(super) fn new(file: Option<Arc<CallFile>>) -> CallList {
        let is_wanted = file.is_some();
        CallList { is_wanted, calls: CallStore::of(file.unwrap_or_default()), ..CallList::default() }
    }

    /// The time of the next event of the process.
    pub(super) fn event(&mut self, time: Ns) {
        self.last = self.last.max(Some(time));
    }

    /// A thread begins a call. Returns its number; `None` if the thread's calls are not listed.
    pub(super) fn begin(&mut self, thread: u32, time: Ns, e: &CallBegin) -> Option<CallNumber> {
        if self.obstacle.is_none() {
            self.obstacle = obstacle(e);
        }
        if *self.thread.get_or_insert(thread) != thread {
            self.obstacle.get_or_insert_with(|| "calls MPI from several threads".to_owned());
            return None;
        }
        // An error handler may have left the call before by `longjmp`.
        if let Some((begin, _)) = self.open.replace((time, e.function)) {
            self.push(begin, time, e.class);
        }
        let number = u32::try_from(self.calls.len()).ok()?.checked_add(1)?;
        CallNumber::new(number).filter(|_| self.is_wanted)
    }

    /// A thread ends a call.
    pub(super) fn end(&mut self, thread: u32, time: Ns, e: &CallEnd) {
        if self.thread != Some(thread) {
            return;
        }
        let Some((begin, _)) = self.open.take_if(|(_, open)| *open == e.function) else { return };
        if name_of(e.function) == "MPI_Finalize" {
            let number = u32::try_from(self.calls.len()).ok().and_then(|count| count.checked_add(1));
            let call = number.and_then(CallNumber::new).filter(|_| self.is_wanted);
            // The waits in this call are not summed up by call site.
            self.finalize = Some(Span { thread, site: u32::MAX, call, begin, end: time });
        }
        self.push(begin, time, e.class);
    }

    /// Calls of a thread do not overlap, whatever a trace says.
    fn push(&mut self, begin: Ns, end: Ns, class: CallClass) {
        if self.is_wanted {
            let begin = begin.max(self.calls.last().map_or(Ns::MIN, |last| last.end));
            let communicates = !matches!(class, CallClass::management | CallClass::file | CallClass::other);
            self.calls.push(RankCall { begin, end: end.max(begin), communicates });
        }
    }

    /// Why it is not known how the rank would have gone on, once all events are known.
    pub(super) fn obstacle(&self) -> Option<String> {
        let is_open = self.open.is_some();
        self.obstacle.clone().or_else(|| is_open.then(|| "did not return from its last MPI call".to_owned()))
    }
}

/// What a call does whose result depends on which message comes first.
fn obstacle(e: &CallBegin) -> Option<String> {
    let name = name_of(e.function);
    let does = match e.class {
        CallClass::receive | CallClass::nonblocking_receive | CallClass::probe | CallClass::start
            if e.peer == ANY =>
        {
            "receives messages from any source"
        }
        CallClass::test => "tests whether operations are complete",
        CallClass::wait if matches!(name, "MPI_Waitany" | "MPI_Waitsome") => {
            "continues when any of several operations is complete"
        }
        CallClass::probe if matches!(name, "MPI_Iprobe" | "MPI_Improbe") => {
            "tests whether messages have arrived"
        }
        CallClass::one_sided if name.starts_with("MPI_Win_") && name != "MPI_Win_fence" => {
            "synchronises one-sided communication with some ranks only"
        }
        _ if matches!(name, "MPI_Psend_init" | "MPI_Precv_init") => "uses partitioned communication",
        CallClass::collective | CallClass::nonblocking_collective | CallClass::start
            if name.to_ascii_lowercase().contains("neighbor_") =>
        {
            "takes part in neighbourhood collectives, whose neighbours are not recorded"
        }
        _ => return None,
    };
    Some(format!("{does} ({name})"))
}
