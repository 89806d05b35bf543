//! A timeline handed over: one thread interprets and notes the calls of a [`Sink`], another makes them, in the same order.
//!
//! Interpretation is one thread's work, since threads meet there, and encoding costs about as much. Handing calls over
//! costs a seventh to a third of either (docs/performance.md), so it pays where there are processors to spare.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use omptrace_timeline::filter::KeptValue;
use omptrace_timeline::sink::{
    Argument, Category, Counter, CounterId, DeviceWork, Flow, Interval, Location, LocationId, Ns,
    Point, Process, ProcessId, Region, RegionId, Sink, Source, Summary, ThreadEvent,
};

/// Calls of a batch: as many as spare most of the hand-overs and stay in a processor's cache.
const BATCH: usize = 4096;
/// Batches that wait for the thread that makes the calls.
const BATCHES_UNDER_WAY: usize = 4;

/// Calls `work` with a sink whose calls another thread makes on `sink`; all are made when this returns. Where there can be
/// no other thread, `sink` gets them at once.
pub(crate) fn handed_over<R>(sink: &mut dyn Sink, work: impl FnOnce(&mut dyn Sink) -> R) -> R {
    let failed = AtomicBool::new(false);
    let wants_thread_events = sink.wants_thread_events();
    let handed_over = thread::scope(|scope| {
        let (full, batches) = sync_channel::<Batch>(BATCHES_UNDER_WAY);
        let (to_spare, spare) = channel();
        let (failed, sink) = (&failed, &mut *sink);
        let encode = move || {
            for mut batch in batches {
                batch.make_calls(sink);
                batch.clear();
                if sink.failed() {
                    // Relaxed: it only ends the work early; the error itself is the sink's.
                    failed.store(true, Ordering::Relaxed);
                }
                // Nobody fills it again where the work has ended.
                let _ = to_spare.send(batch);
            }
        };
        let encoder = thread::Builder::new().name("omptrace-encode".into());
        if encoder.spawn_scoped(scope, encode).is_err() {
            return Err(work);
        }
        let mut notes = Notes {
            batch: Batch::default(),
            full,
            spare,
            failed,
            wants_thread_events,
        };
        let result = work(&mut notes);
        notes.hand_over();
        Ok(result)
    });
    handed_over.unwrap_or_else(|work| work(sink))
}

/// Notes calls.
struct Notes<'f> {
    batch: Batch,
    full: SyncSender<Batch>,
    /// Batches whose calls were made.
    spare: Receiver<Batch>,
    failed: &'f AtomicBool,
    wants_thread_events: bool,
}

/// Calls, and what they refer to. Bytes are what a hand-over costs, for they go from one processor's cache to another's:
/// so a call is short, and what has many is in lists of its own, in the order of the calls.
#[derive(Default)]
struct Batch {
    calls: Vec<Call>,
    arguments: Vec<(&'static str, KeptValue<Text>)>,
    thread_events: Vec<(Point, ThreadEvent)>,
    flows: Vec<Flow>,
    intervals: Vec<NotedInterval>,
    definitions: Vec<Definition>,
    /// The texts of all calls.
    texts: String,
}

/// A text of the batch.
type Text = Range<u32>;

/// A call with the number of its arguments, or the name of the list that has the call.
enum Call {
    Enter(LocationId, Ns, RegionId, u32),
    Leave(LocationId, Ns, u32),
    Instant(LocationId, Ns, RegionId, u32),
    Count(CounterId, Ns, i64),
    ThreadEvent,
    Flow,
    Interval,
    Definition,
}

const _: () = assert!(size_of::<Call>() == 24);

struct NotedInterval {
    track: LocationId,
    name: Text,
    category: Category,
    begin: Ns,
    end: Ns,
    arguments: u32,
    work: Option<NotedWork>,
}

enum NotedWork {
    Kernel(Box<Source>),
    Other(DeviceWork<'static>),
}

enum Definition {
    Start(u64),
    Process(Process),
    Location(Location),
    Region(Region),
    Counter(Counter),
    Note(ProcessId, String),
    Summary(ProcessId, Summary),
}

impl Batch {
    fn clear(&mut self) {
        let Batch {
            calls,
            arguments,
            thread_events,
            flows,
            intervals,
            definitions,
            texts,
        } = self;
        calls.clear();
        arguments.clear();
        thread_events.clear();
        flows.clear();
        intervals.clear();
        definitions.clear();
        texts.clear();
    }

    fn text(&mut self, text: &str) -> Text {
        let start = self.texts.len() as u32;
        self.texts.push_str(text);
        start..self.texts.len() as u32
    }

    #[inline]
    fn arguments(&mut self, arguments: &[Argument<'_>]) -> u32 {
        for argument in arguments {
            let value = KeptValue::new(argument.value, |text| self.text(text));
            self.arguments.push((argument.name, value));
        }
        arguments.len() as u32
    }

    fn make_calls(&self, sink: &mut dyn Sink) {
        let text = |text: &Text| &self.texts[text.start as usize..text.end as usize];
        let mut rest = self.arguments.iter();
        let mut arguments = Vec::new();
        let mut take = |count: u32, arguments: &mut Vec<_>| {
            arguments.clear();
            let taken = rest.by_ref().take(count as usize);
            arguments.extend(taken.map(|(name, value)| Argument {
                name,
                value: value.value(text),
            }));
        };
        let mut thread_events = self.thread_events.iter();
        let mut flows = self.flows.iter();
        let mut intervals = self.intervals.iter();
        let mut definitions = self.definitions.iter();
        let at = |location, time| Point { location, time };
        for call in &self.calls {
            match *call {
                Call::Enter(location, time, region, count) => {
                    take(count, &mut arguments);
                    sink.enter(at(location, time), region, &arguments);
                }
                Call::Leave(location, time, count) => {
                    take(count, &mut arguments);
                    sink.leave(at(location, time), &arguments);
                }
                Call::Instant(location, time, region, count) => {
                    take(count, &mut arguments);
                    sink.instant(at(location, time), region, &arguments);
                }
                Call::Count(counter, time, value) => sink.count(counter, time, value),
                Call::ThreadEvent => {
                    if let Some((at, event)) = thread_events.next() {
                        sink.thread_event(*at, *event);
                    }
                }
                Call::Flow => {
                    if let Some(flow) = flows.next() {
                        sink.flow(flow);
                    }
                }
                Call::Interval => {
                    if let Some(interval) = intervals.next() {
                        take(interval.arguments, &mut arguments);
                        sink.interval(&Interval {
                            track: interval.track,
                            name: text(&interval.name),
                            category: interval.category,
                            begin: interval.begin,
                            end: interval.end,
                            arguments: &arguments,
                            work: interval.work.as_ref().map(|work| match work {
                                NotedWork::Kernel(source) => DeviceWork::Kernel(source),
                                NotedWork::Other(work) => *work,
                            }),
                        });
                    }
                }
                Call::Definition => {
                    if let Some(definition) = definitions.next() {
                        definition.call(sink);
                    }
                }
            }
        }
    }
}

impl Definition {
    fn call(&self, sink: &mut dyn Sink) {
        match self {
            Definition::Start(realtime_ns) => sink.start(*realtime_ns),
            Definition::Process(process) => sink.process(process),
            Definition::Location(location) => sink.location(location),
            Definition::Region(region) => sink.region(region),
            Definition::Counter(counter) => sink.counter(counter),
            Definition::Note(process, text) => sink.note(*process, text),
            Definition::Summary(process, summary) => sink.summary(*process, summary),
        }
    }
}

impl Notes<'_> {
    #[inline]
    fn call(&mut self, call: Call) {
        self.batch.calls.push(call);
        if self.batch.calls.len() >= BATCH {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let next = self.spare.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        // It takes no more only when it panicked, which the end of the scope reports.
        let _ = self.full.send(batch);
    }

    fn define(&mut self, definition: Definition) {
        self.batch.definitions.push(definition);
        self.call(Call::Definition);
    }
}

impl Sink for Notes<'_> {
    fn start(&mut self, realtime_ns: u64) {
        self.define(Definition::Start(realtime_ns));
    }

    fn process(&mut self, process: &Process) {
        self.define(Definition::Process(process.clone()));
    }

    fn location(&mut self, location: &Location) {
        self.define(Definition::Location(location.clone()));
    }

    fn region(&mut self, region: &Region) {
        self.define(Definition::Region(region.clone()));
    }

    fn counter(&mut self, counter: &Counter) {
        self.define(Definition::Counter(counter.clone()));
    }

    fn count(&mut self, counter: CounterId, time: Ns, value: i64) {
        self.call(Call::Count(counter, time, value));
    }

    fn enter(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let count = self.batch.arguments(arguments);
        self.call(Call::Enter(at.location, at.time, region, count));
    }

    fn leave(&mut self, at: Point, arguments: &[Argument<'_>]) {
        let count = self.batch.arguments(arguments);
        self.call(Call::Leave(at.location, at.time, count));
    }

    fn instant(&mut self, at: Point, region: RegionId, arguments: &[Argument<'_>]) {
        let count = self.batch.arguments(arguments);
        self.call(Call::Instant(at.location, at.time, region, count));
    }

    fn wants_thread_events(&self) -> bool {
        self.wants_thread_events
    }

    fn thread_event(&mut self, at: Point, event: ThreadEvent) {
        self.batch.thread_events.push((at, event));
        self.call(Call::ThreadEvent);
    }

    fn interval(&mut self, interval: &Interval<'_>) {
        let noted = NotedInterval {
            track: interval.track,
            name: self.batch.text(interval.name),
            category: interval.category,
            begin: interval.begin,
            end: interval.end,
            arguments: self.batch.arguments(interval.arguments),
            work: interval.work.map(NotedWork::of),
        };
        self.batch.intervals.push(noted);
        self.call(Call::Interval);
    }

    fn flow(&mut self, flow: &Flow) {
        self.batch.flows.push(*flow);
        self.call(Call::Flow);
    }

    fn note(&mut self, process: ProcessId, text: &str) {
        self.define(Definition::Note(process, text.to_owned()));
    }

    fn summary(&mut self, process: ProcessId, summary: &Summary) {
        self.define(Definition::Summary(process, summary.clone()));
    }

    fn failed(&self) -> bool {
        // Relaxed: see where it is stored.
        self.failed.load(Ordering::Relaxed)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        // Who handed the timeline over finishes the sink.
        Ok(())
    }
}

impl NotedWork {
    fn of(work: DeviceWork<'_>) -> NotedWork {
        NotedWork::Other(match work {
            DeviceWork::Kernel(source) => return NotedWork::Kernel(Box::new(source.clone())),
            DeviceWork::TransferTo { bytes } => DeviceWork::TransferTo { bytes },
            DeviceWork::TransferFrom { bytes } => DeviceWork::TransferFrom { bytes },
            DeviceWork::DataOp(kind) => DeviceWork::DataOp(kind),
            DeviceWork::Native => DeviceWork::Native,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omptrace_timeline::sink::{
        Anchor, Construct, FlowKind, Lifetime, LocationKind, Reports, ThreadRole, Value, argument,
    };

    /// Writes down its calls.
    #[derive(Default)]
    struct Log(Vec<String>);

    macro_rules! log {
        ($($method:ident($($name:ident: $Type:ty),*);)*) => {
            $(fn $method(&mut self, $($name: $Type),*) {
                self.0.push(format!(concat!(stringify!($method), " {:?}"), ($($name,)*)));
            })*
        };
    }

    impl Sink for Log {
        log! {
            start(realtime_ns: u64);
            process(process: &Process);
            location(location: &Location);
            region(region: &Region);
            counter(counter: &Counter);
            count(counter: CounterId, time: Ns, value: i64);
            enter(at: Point, region: RegionId, arguments: &[Argument<'_>]);
            leave(at: Point, arguments: &[Argument<'_>]);
            instant(at: Point, region: RegionId, arguments: &[Argument<'_>]);
            thread_event(at: Point, event: ThreadEvent);
            interval(interval: &Interval<'_>);
            flow(flow: &Flow);
            note(process: ProcessId, text: &str);
            summary(process: ProcessId, summary: &Summary);
        }

        fn wants_thread_events(&self) -> bool {
            true
        }

        fn failed(&self) -> bool {
            self.0.len() > 2 * BATCH * CALLS
        }

        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    /// What [`tell`] calls each time.
    const CALLS: usize = 20;

    /// Each call of a sink, with every kind of argument.
    fn tell(sink: &mut dyn Sink) {
        let (process, location, region) = (ProcessId(1), LocationId(2), RegionId(3));
        let at = Point { location, time: 4 };
        let word = format!("word {}", 5);
        let arguments = [
            argument("uint", Value::Uint(6)),
            argument("text", Value::Text(&word)),
            argument("int", Value::Int(-7)),
            argument("hex", Value::Hex(8)),
        ];
        let source = Source {
            function: Some("f".to_owned()),
            line: Some(("a.c".to_owned(), 9)),
        };
        sink.start(10);
        sink.process(&Process {
            id: process,
            name: "program".to_owned(),
            os_pid: 11,
            has_namesake: true,
            host: "host".to_owned(),
            rank: Some(12),
            command_line: vec!["program".to_owned()],
            exit_status: Some(13),
            lifetime: Lifetime::default(),
            reports: Reports::default(),
            is_overwritten: false,
        });
        sink.location(&Location {
            id: location,
            process,
            kind: LocationKind::Thread {
                os_tid: 14,
                stream: 15,
                role: ThreadRole::Worker,
            },
            name: "thread".to_owned(),
        });
        sink.region(&Region {
            id: region,
            name: "region".to_owned(),
            category: Category::Work,
            construct: Construct::Masked,
            source: Some(source.clone()),
        });
        sink.counter(&Counter {
            id: CounterId(15),
            process,
            name: "counter".to_owned(),
            unit: "tasks",
        });
        sink.count(CounterId(15), 16, -17);
        sink.enter(at, region, &arguments);
        sink.instant(at, region, &arguments[1..2]);
        sink.leave(at, &[]);
        sink.thread_event(at, ThreadEvent::Join { team: 18 });
        sink.flow(&Flow {
            id: 19,
            kind: FlowKind::TaskCreate,
            from: at,
            cause: Anchor::End,
            to: at,
            effect: Anchor::Begin,
        });
        let works = [
            None,
            Some(DeviceWork::Kernel(&source)),
            Some(DeviceWork::TransferTo { bytes: 20 }),
            Some(DeviceWork::TransferFrom { bytes: 21 }),
            Some(DeviceWork::DataOp(
                ompt_sys::ompt_target_data_transfer_to_device,
            )),
            Some(DeviceWork::Native),
        ];
        for work in works {
            sink.interval(&Interval {
                track: location,
                name: &word,
                category: Category::Mutex,
                begin: 22,
                end: 23,
                arguments: &arguments[..3],
                work,
            });
        }
        sink.leave(at, &arguments);
        sink.note(process, "a note");
        let events = 24;
        sink.summary(
            process,
            &Summary {
                events,
                ..Summary::default()
            },
        );
    }

    #[test]
    fn what_is_handed_over_arrives_as_it_was() {
        let mut at_once = Log::default();
        tell(&mut at_once);
        assert_eq!(at_once.0.len(), CALLS);
        let mut log = Log::default();
        let result = handed_over(&mut log, |sink| {
            (0..BATCH).for_each(|_| tell(sink));
            sink.failed()
        });
        assert!(!result);
        assert_eq!(log.0.len(), BATCH * CALLS);
        assert!(log.0.chunks(CALLS).all(|told| told == at_once.0));
    }

    #[test]
    fn failure_is_seen_by_who_hands_over() {
        let mut log = Log::default();
        let failed = handed_over(&mut log, |sink| {
            (0..4 * BATCH).any(|_| {
                tell(sink);
                sink.failed()
            })
        });
        assert!(failed);
    }
}
