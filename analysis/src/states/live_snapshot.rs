//! A look at one process in a window of time: its answers, and what each of its threads did. For those who look again and
//! again while the process runs, so nothing is replayed.

use std::num::NonZero;

use omptrace_symbols::Table;
use omptrace_timeline::model::{Item, LocationId, LocationKind, Ns, Sink, Wants};
use omptrace_timeline::{Manner, Report, Timeline};
use omptrace_trace_format::Reader;
use serde::{Deserialize, Serialize};

use super::collector::Collector;
use crate::model::accounting::Accounting;
use crate::model::answers::Answers;
use crate::passes::window::{Windowed, Windows};

/// The answers of a process in a window, and its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// As of a whole run, of the window alone. What a change would gain is not among them.
    pub answers: Answers,
    /// In the order of display.
    pub threads: Vec<ThreadGlance>,
}

/// What a thread did in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadGlance {
    /// Its name.
    pub thread: String,
    /// The operating system's id for it; 0 where that is not known.
    pub os_tid: u32,
    /// Its time by cause.
    pub accounting: Accounting,
    /// The rest of the window: the thread was not there, or had nothing to do.
    pub rest_ns: u64,
}

impl Glance {
    /// The look at the one process of `reader`, and what was wrong with the trace. `window` is from the first time to before
    /// the second, in nanoseconds since the session's start. `threads` is N, where the user says it. `None` where the process
    /// did not run in the window.
    pub fn of(
        reader: &Reader,
        symbols: &Table,
        window: (Ns, Ns),
        threads: Option<NonZero<u32>>,
    ) -> Option<(Glance, Report)> {
        let windows = Windows::of(vec![window]);
        let duration = windows.duration();
        let mut looking = Looking {
            collector: Windowed::new(Some(windows.clone()), Collector::observing().with_threads(threads)),
            threads: Vec::new(),
        };
        let manner = Manner { ahead: false, ..Manner::default() };
        let table = |_: &Reader| symbols.clone();
        let inputs = [reader];
        let timeline = Timeline::of(&inputs);
        let report = timeline.replay(0, 1, &table, manner, &mut looking, &mut |_| {});
        let Looking { collector, mut threads } = looking;
        let mut collector = collector.inner;
        for span in collector.take_spans() {
            let is_it = |(id, _): &&mut (LocationId, _)| id.0 as usize == span.location;
            if let Some((_, thread)) = threads.iter_mut().find(is_it) {
                let (cause, ..) = span.why;
                thread.accounting.add(cause, span.end.abs_diff(span.begin));
            }
        }
        let mut part = collector.finish();
        if part.is_empty() {
            return None;
        }
        part.on_timeline(&windows);
        let threads = threads.into_iter().map(|(_, thread)| ThreadGlance {
            rest_ns: duration.saturating_sub(thread.accounting.total()),
            ..thread
        });
        let glance = Glance { answers: part.answers(None), threads: threads.collect() };
        Some((glance, report))
    }
}

/// Gathers the answers, and who the threads are.
struct Looking {
    collector: Windowed<Collector<0>>,
    threads: Vec<(LocationId, ThreadGlance)>,
}

impl Sink for Looking {
    fn wants(&self) -> Wants {
        self.collector.wants()
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Item::Location(location) = item
            && let LocationKind::Thread { os_tid, .. } = location.kind
        {
            let thread = ThreadGlance { thread: location.name.clone(), os_tid, ..ThreadGlance::default() };
            self.threads.push((location.id, thread));
        }
        self.collector.item(item);
    }
}
