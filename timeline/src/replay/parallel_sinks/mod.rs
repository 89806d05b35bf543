//! Runs sinks on other threads. One thread interprets the events and collects the items in batches; the others replay the
//! batches to their [`Sink`]s, each of which gets all items in the same order.
//!
//! ```text
//! interprets --> batch of items --+--> a thread --> sink, sink
//!                     ^           +--> a thread --> sink
//!                     +--- spare ------ from the last thread that replayed it
//! ```
//!
//! Threads meet in what is interpreted, so that is one thread's work, in the order of time. What sinks make of it costs as much,
//! or several times that. Handing items over costs a seventh to a third of interpretation (docs/lab-notes/performance.md), so it pays where
//! there are processors to spare.

mod batch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::model::{Item, Sink, Wants};
use crate::replay::parallel_sinks::batch::Batch;
pub use crate::replay::parallel_sinks::batch::KeptArguments;

/// Items of a batch: as many as spare most of the hand-overs and stay in a processor's cache.
const BATCH: usize = 4096;
/// Batches that wait for the thread that gives them to a sink.
const BATCHES_UNDER_WAY: usize = 4;

/// Calls `work` with a sink whose items all of `sinks` get; they have got all when this returns. At most `threads` other threads
/// give them, with these `arguments` at least. Where there are none, or can be none, the thread that makes items gives them at
/// once.
pub fn handed_over<R>(
    mut sinks: Vec<&mut dyn Sink>,
    threads: usize,
    arguments: KeptArguments,
    work: impl FnOnce(&mut dyn Sink) -> R,
) -> R {
    let work = match threads {
        0 => work,
        _ => match to_threads(&mut sinks, threads, arguments, work) {
            Ok(result) => return result,
            Err(work) => work,
        },
    };
    match &mut sinks[..] {
        [only] => work(*only),
        _ => work(&mut Several(sinks)),
    }
}

/// Several sinks that get the same timeline at once.
struct Several<'s>(Vec<&'s mut dyn Sink>);

impl Sink for Several<'_> {
    fn wants(&self) -> Wants {
        wants(&self.0)
    }

    fn item(&mut self, item: &Item<'_>) {
        for sink in &mut self.0 {
            sink.item(item);
        }
    }

    fn failed(&self) -> bool {
        self.0.iter().any(|sink| sink.failed())
    }
}

/// The items that any of them wants.
fn wants(sinks: &[&mut dyn Sink]) -> Wants {
    let each = sinks.iter().map(|sink| sink.wants());
    each.fold(Wants::NONE, Wants::and)
}

/// Calls `work` with a sink whose items other threads give, each to its part of `sinks`. Gives `work` back where there cannot be
/// those.
fn to_threads<R, W: FnOnce(&mut dyn Sink) -> R>(
    sinks: &mut [&mut dyn Sink],
    threads: usize,
    arguments: KeptArguments,
    work: W,
) -> Result<R, W> {
    let failed = AtomicBool::new(false);
    let wants = wants(sinks);
    thread::scope(|scope| {
        let (to_spare, spare) = channel();
        let mut full = Vec::new();
        let of_each = sinks.len().div_ceil(threads).max(1);
        for sinks in sinks.chunks_mut(of_each) {
            let (batches, of_thread) = sync_channel(BATCHES_UNDER_WAY);
            let (failed, to_spare) = (&failed, to_spare.clone());
            let give = move || give(sinks, of_thread, failed, &to_spare);
            let thread = thread::Builder::new().name("omptrace-sink".into());
            if thread.spawn_scoped(scope, give).is_err() {
                return Err(work);
            }
            full.push(batches);
        }
        let mut keeper = Keeper { batch: Batch::default(), full, spare, failed: &failed, wants, arguments };
        let result = work(&mut keeper);
        keeper.hand_over();
        Ok(result)
    })
}

/// Gives all batches to each of `sinks`.
fn give(
    sinks: &mut [&mut dyn Sink],
    batches: Receiver<Arc<Batch>>,
    failed: &AtomicBool,
    to_spare: &Sender<Batch>,
) {
    for batch in batches {
        for sink in &mut *sinks {
            batch.give(*sink);
            if sink.failed() {
                // Relaxed: it only ends the work early; the error itself is the sink's.
                failed.store(true, Ordering::Relaxed);
            }
        }
        // The last thread that has given it lets it be filled again.
        if let Some(mut batch) = Arc::into_inner(batch) {
            batch.clear();
            // Nobody fills it again where the work has ended.
            let _ = to_spare.send(batch);
        }
    }
}

/// Keeps items until other threads take them.
struct Keeper<'f> {
    batch: Batch,
    /// To each thread.
    full: Vec<SyncSender<Arc<Batch>>>,
    /// Batches whose items all sinks have.
    spare: Receiver<Batch>,
    failed: &'f AtomicBool,
    wants: Wants,
    arguments: KeptArguments,
}

impl Keeper<'_> {
    #[cold]
    fn hand_over(&mut self) {
        let next = self.spare.try_recv().unwrap_or_default();
        let batch = Arc::new(std::mem::replace(&mut self.batch, next));
        let copies: Vec<_> = self.full.iter().map(|_| Arc::clone(&batch)).collect();
        // From here on they alone have it, so that the last of them finds that it is.
        drop(batch);
        for (full, batch) in self.full.iter().zip(copies) {
            // It takes no more only when it panicked, which the end of the scope reports.
            let _ = full.send(batch);
        }
    }
}

impl Sink for Keeper<'_> {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn item(&mut self, item: &Item<'_>) {
        self.batch.keep(item, self.arguments);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    fn failed(&self) -> bool {
        // Relaxed: see where it is stored.
        self.failed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Anchor, Awaited, Category, Communicator, CommunicatorId, CommunicatorKind, Construct, Count, Counter,
        CounterId, DeviceWork, Enter, Instant, Interval, Leave, Link, LinkKind, Location, LocationId,
        LocationKind, MpiEvent, Part, Point, Process, ProcessId, Region, RegionId, Source, Summary, TeamId,
        ThreadEvent, ThreadRole, Value, argument,
    };

    /// Writes its items down.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl Sink for Log {
        fn wants(&self) -> Wants {
            Wants::ALL
        }

        fn item(&mut self, item: &Item<'_>) {
            self.0.push(format!("{item:?}"));
        }

        fn failed(&self) -> bool {
            self.0.len() > 2 * BATCH * ITEMS
        }
    }

    /// The number of items that [`give`] gives.
    const ITEMS: usize = 23;

    /// Gives each kind of item, with every kind of argument.
    fn give(sink: &mut dyn Sink) {
        let (process, location, region) = (ProcessId(1), LocationId(2), RegionId(3));
        let at = Point { location, time: 4 };
        let word = format!("word {}", 5);
        let arguments = [
            argument("uint", Value::Uint(6)),
            argument("text", Value::Text(&word)),
            argument("int", Value::Int(-7)),
            argument("hex", Value::Hex(8)),
        ];
        let source =
            Source { function: Some("f".to_owned()), line: Some(("a.c".to_owned(), 9)), ..Source::default() };
        sink.item(&Item::Start { realtime_ns: 10 });
        sink.item(&Item::Process(&Process {
            id: process,
            name: "program".to_owned(),
            os_pid: 11,
            has_namesake: true,
            host: "host".to_owned(),
            rank: Some(12),
            command_line: vec!["program".to_owned()],
            exit_status: Some(13),
            processors: Some(14),
            ..Process::default()
        }));
        sink.item(&Item::Location(&Location {
            id: location,
            process,
            kind: LocationKind::Thread { os_tid: 14, stream: 15, role: ThreadRole::Worker },
            name: "thread".to_owned(),
        }));
        sink.item(&Item::Region(&Region {
            id: region,
            name: "region".to_owned(),
            category: Category::Work,
            construct: Construct::Masked,
            source: Some(source.clone()),
        }));
        sink.item(&Item::Counter(&Counter {
            id: CounterId(15),
            process,
            name: "counter".to_owned(),
            unit: "tasks",
        }));
        sink.item(&Item::Count(Count { counter: CounterId(15), time: 16, value: (-17).into() }));
        sink.item(&Item::Enter(Enter {
            at,
            region,
            part: Part::Further,
            awaited: Some(Awaited::Barrier { team: TeamId(18), number: 1 }),
            arguments: &arguments,
        }));
        sink.item(&Item::Instant(Instant { at, region, arguments: &arguments[1..2] }));
        sink.item(&Item::Leave(Leave { at, arguments: &[] }));
        let team = TeamId(18);
        sink.item(&Item::ThreadEvent(at, ThreadEvent::Join { team }));
        let communicator = Communicator {
            id: CommunicatorId(25),
            name: word.clone(),
            parent: Some(CommunicatorId(26)),
            kind: CommunicatorKind::Between,
            members: vec![27],
            remote: vec![28, 29],
        };
        sink.item(&Item::Communicator(&communicator));
        sink.item(&Item::Mpi(at, &MpiEvent::Freed(communicator.id)));
        sink.item(&Item::Link(Link {
            id: 19,
            kind: LinkKind::TaskCreate,
            from: at,
            cause: Anchor::End,
            to: at,
            effect: Anchor::Begin,
        }));
        let works = [
            None,
            Some(DeviceWork::Kernel(&source)),
            Some(DeviceWork::TransferTo { bytes: 20, source: &source }),
            Some(DeviceWork::TransferFrom { bytes: 21, source: &source }),
            Some(DeviceWork::DataOp(ompt_sys::ompt_target_data_transfer_to_device)),
            Some(DeviceWork::Native),
        ];
        for work in works {
            sink.item(&Item::Interval(Interval {
                track: location,
                name: &word,
                category: Category::Mutex,
                begin: 22,
                end: 23,
                arguments: &arguments[..3],
                work,
            }));
        }
        let arguments = &arguments;
        sink.item(&Item::Leave(Leave { at, arguments }));
        sink.item(&Item::Note(process, "a note"));
        sink.item(&Item::Segment);
        let events = 24;
        let summary = Summary { events, ..Summary::default() };
        sink.item(&Item::Summary(process, &summary));
    }

    #[test]
    fn what_is_handed_over_arrives_as_it_was() {
        let mut at_once = Log::default();
        give(&mut at_once);
        assert_eq!(at_once.0.len(), ITEMS);
        let mut log = Log::default();
        let mut other = Log::default();
        let mut third = Log::default();
        for threads in [0, 1, 2, 3, 9] {
            let sinks: Vec<&mut dyn Sink> = vec![&mut log, &mut other, &mut third];
            let result = handed_over(sinks, threads, KeptArguments::All, |sink| {
                (0..BATCH).for_each(|_| give(sink));
                sink.failed()
            });
            assert!(!result);
            for log in [&mut log, &mut other, &mut third] {
                assert_eq!(log.0.len(), BATCH * ITEMS);
                assert!(log.0.chunks(ITEMS).all(|given| given == at_once.0));
                log.0.clear();
            }
        }
    }

    #[test]
    fn counts_alone_are_handed_over_where_no_sink_looks_at_others() {
        let mut log = Log::default();
        handed_over(vec![&mut log], 1, KeptArguments::Counts, give);
        assert_eq!(log.0.len(), ITEMS);
        let has = |what: &str| log.0.iter().any(|item| item.contains(what));
        assert!(has("Uint(6)"));
        assert!(!has("Hex(8)") && !has("Int(-7)"));
    }

    #[test]
    fn failure_is_seen_by_who_hands_over() {
        let mut log = Log::default();
        let failed = handed_over(vec![&mut log], 1, KeptArguments::All, |sink| {
            (0..4 * BATCH).any(|_| {
                give(sink);
                sink.failed()
            })
        });
        assert!(failed);
    }
}
