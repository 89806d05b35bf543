//! A snapshot of one process in a window of time: its answers, and the accounting of each thread. It is taken
//! repeatedly while the process runs, so nothing is replayed.

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
pub struct LiveSnapshot {
    /// The answers for the window, without the savings of changes.
    pub answers: Answers,
    /// The threads, in the order of display.
    pub threads: Vec<LiveThread>,
}

/// The accounting of a thread in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveThread {
    /// Its name.
    pub thread: String,
    /// The thread's id in the operating system; 0 if unknown.
    pub os_tid: u32,
    /// Its time by cause.
    pub accounting: Accounting,
    /// The rest of the window, during which the thread did not exist or had nothing to do.
    pub rest_ns: u64,
}

impl LiveSnapshot {
    /// A snapshot of the only process of `reader`, and the problems of its trace. `window`: a half-open interval in
    /// nanoseconds since the session's start. `threads`: N, if the user gave it. `None` if the process did not run in
    /// the window.
    pub fn of(
        reader: &Reader,
        symbols: &Table,
        window: (Ns, Ns),
        threads: Option<NonZero<u32>>,
    ) -> Option<(LiveSnapshot, Report)> {
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
        let threads = threads.into_iter().map(|(_, thread)| LiveThread {
            rest_ns: duration.saturating_sub(thread.accounting.total()),
            ..thread
        });
        let glance = LiveSnapshot { answers: part.answers(None), threads: threads.collect() };
        Some((glance, report))
    }
}

/// Collects the answers and the threads.
struct Looking {
    collector: Windowed<Collector<0>>,
    threads: Vec<(LocationId, LiveThread)>,
}

impl Sink for Looking {
    fn wants(&self) -> Wants {
        self.collector.wants()
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Item::Location(location) = item
            && let LocationKind::Thread { os_tid, .. } = location.kind
        {
            let thread = LiveThread { thread: location.name.clone(), os_tid, ..LiveThread::default() };
            self.threads.push((location.id, thread));
        }
        self.collector.item(item);
    }
}
