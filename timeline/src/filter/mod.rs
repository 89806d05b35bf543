//! Less of a timeline: adapters between interpretation and a format, so that every format can have them.
//!
//! ```text
//! timeline -> threads -> duration -> window -> arguments -> format
//! ```
//!
//! Durations are those of the whole timeline: a long slice of which the window shows a short piece stays. Teams, tasks and
//! locks ([`ThreadEvent`](crate::sink::ThreadEvent)) are reported for whole timelines only: of a part, begins would miss their
//! ends.

mod arguments;
mod duration;
mod kept;
mod threads;
mod window;

pub use kept::{KeptEnter, KeptValue};
pub use threads::{ThreadName, threads};
pub use window::Window;

use crate::sink::{Ns, Sink};
use arguments::Arguments;
use duration::MinDuration;
use threads::Threads;

/// What of a timeline is exported; by default all of it.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Which arguments.
    pub arguments: ArgumentChoice,
    /// Only what happens from the first time to before the second; what is longer is cut.
    pub window: Option<(Ns, Ns)>,
    /// Only these threads, by name or number (see [`ThreadName::is_meant_by`]); all where empty. Other tracks stay.
    pub threads: Vec<String>,
    /// The shortest slice that is kept; instants are always kept.
    pub min_duration_ns: u64,
}

/// Which arguments are exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentChoice {
    /// None.
    None,
    /// Ids and addresses: what identifies the task or lock.
    Ids,
    /// All.
    #[default]
    All,
}

impl Selection {
    /// A sink that passes what is selected on to `sink`.
    pub fn of(&self, mut sink: Box<dyn Sink>) -> Box<dyn Sink> {
        if self.arguments != ArgumentChoice::All {
            sink = Box::new(Arguments::new(sink, self.arguments));
        }
        if let Some((begin, end)) = self.window {
            sink = Box::new(Window::new(sink, begin, end));
        }
        if self.min_duration_ns > 0 {
            sink = Box::new(MinDuration::new(sink, self.min_duration_ns));
        }
        if !self.threads.is_empty() {
            sink = Box::new(Threads::new(sink, self.threads.clone()));
        }
        sink
    }
}

/// Turns names of [`Sink`]'s methods into methods that pass the call on to the field `inner` as it is.
macro_rules! pass_on {
    ($($method:ident)*) => { $($crate::filter::pass_on_one!($method);)* };
}

macro_rules! pass_on_one {
    (start) => {
        fn start(&mut self, realtime_ns: u64) {
            self.inner.start(realtime_ns);
        }
    };
    (process) => {
        fn process(&mut self, process: &$crate::sink::Process) {
            self.inner.process(process);
        }
    };
    (location) => {
        fn location(&mut self, location: &$crate::sink::Location) {
            self.inner.location(location);
        }
    };
    (region) => {
        fn region(&mut self, region: &$crate::sink::Region) {
            self.inner.region(region);
        }
    };
    (counter) => {
        fn counter(&mut self, counter: &$crate::sink::Counter) {
            self.inner.counter(counter);
        }
    };
    (count) => {
        fn count(&mut self, counter: $crate::sink::CounterId, time: $crate::sink::Ns, value: i64) {
            self.inner.count(counter, time, value);
        }
    };
    (wants_thread_events) => {
        fn wants_thread_events(&self) -> bool {
            self.inner.wants_thread_events()
        }
    };
    (thread_event) => {
        fn thread_event(&mut self, at: $crate::sink::Point, event: $crate::sink::ThreadEvent) {
            self.inner.thread_event(at, event);
        }
    };
    (flow) => {
        fn flow(&mut self, flow: &$crate::sink::Flow) {
            self.inner.flow(flow);
        }
    };
    (note) => {
        fn note(&mut self, process: $crate::sink::ProcessId, text: &str) {
            self.inner.note(process, text);
        }
    };
    (summary) => {
        fn summary(&mut self, process: $crate::sink::ProcessId, summary: &$crate::sink::Summary) {
            self.inner.summary(process, summary);
        }
    };
    (failed) => {
        fn failed(&self) -> bool {
            self.inner.failed()
        }
    };
    (finish) => {
        fn finish(self: Box<Self>) -> std::io::Result<()> {
            self.inner.finish()
        }
    };
}

pub(crate) use {pass_on, pass_on_one};
