//! Items that one thread keeps and others give to their sinks.

use std::ops::Range;

use crate::filter::OwnedValue;
use crate::model::{
    Argument, Arguments, Count, Counted, Enter, Instant, Interval, Item, KeptInterval, Leave, Link, MpiEvent,
    Point, Sample, Sink, Source, ThreadEvent, Value,
};

/// Items, and what they refer to. Each kind has a list, in the order of the items. `kinds` has their order among each other.
///
/// A hand-over costs by the bytes that go from one processor's cache to another's, and so lists have items of one size.
#[derive(Default)]
pub(crate) struct Batch {
    kinds: Vec<Kind>,
    /// Each of these with the number of its arguments.
    enters: Vec<Enter<u32>>,
    leaves: Vec<Leave<u32>>,
    instants: Vec<Instant<u32>>,
    intervals: Vec<KeptInterval<u32, Text, Box<Source>>>,
    counts: Vec<Count>,
    thread_events: Vec<(Point, ThreadEvent)>,
    links: Vec<Link>,
    mpi: Vec<(Point, MpiEvent)>,
    rare: Vec<Rare>,
    /// The arguments of all items.
    arguments: Vec<(&'static str, OwnedValue<Text>)>,
    /// The texts of all arguments and names.
    texts: String,
}

/// The arguments that are handed over with their items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptArguments {
    /// All.
    All,
    /// Counts: [`Value::Uint`].
    Counts,
}

/// The list that an item is in.
#[derive(Clone, Copy)]
enum Kind {
    Enter,
    Leave,
    Instant,
    Interval,
    Count,
    ThreadEvent,
    Link,
    Mpi,
    Rare,
}

/// A text of the batch.
type Text = Range<u32>;

/// Gives an item of which a timeline has few.
type Rare = Box<dyn Fn(&mut dyn Sink) + Send + Sync>;

impl Batch {
    /// Forgets all items.
    pub(crate) fn clear(&mut self) {
        let Batch {
            kinds,
            enters,
            leaves,
            instants,
            intervals,
            counts,
            thread_events,
            links,
            mpi,
            rare,
            arguments,
            texts,
        } = self;
        kinds.clear();
        enters.clear();
        leaves.clear();
        instants.clear();
        intervals.clear();
        counts.clear();
        thread_events.clear();
        links.clear();
        mpi.clear();
        rare.clear();
        arguments.clear();
        texts.clear();
    }

    #[inline]
    fn arguments(&mut self, arguments: Arguments<'_>, wanted: KeptArguments) -> u32 {
        let before = self.arguments.len();
        for argument in arguments {
            if wanted == KeptArguments::Counts && !matches!(argument.value, Value::Uint(_)) {
                continue;
            }
            let value = OwnedValue::new(argument.value, |text| keep_text(&mut self.texts, text));
            self.arguments.push((argument.name, value));
        }
        (self.arguments.len() - before) as u32
    }

    /// How many items it has.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Keeps an item and its `wanted` arguments.
    pub(crate) fn keep(&mut self, item: &Item<'_>, wanted: KeptArguments) {
        let kind = match item {
            Item::Enter(enter) => {
                let arguments = self.arguments(enter.arguments, wanted);
                self.enters.push(enter.with(arguments));
                Kind::Enter
            }
            Item::Leave(leave) => {
                let arguments = self.arguments(leave.arguments, wanted);
                self.leaves.push(leave.with(arguments));
                Kind::Leave
            }
            Item::Instant(instant) => {
                let arguments = self.arguments(instant.arguments, wanted);
                self.instants.push(instant.with(arguments));
                Kind::Instant
            }
            Item::Interval(interval) => {
                let kept = self.interval(interval, wanted);
                self.intervals.push(kept);
                Kind::Interval
            }
            Item::Count(count) => {
                self.counts.push(*count);
                Kind::Count
            }
            Item::ThreadEvent(at, event) => {
                self.thread_events.push((*at, *event));
                Kind::ThreadEvent
            }
            Item::Link(link) => {
                self.links.push(*link);
                Kind::Link
            }
            Item::Mpi(at, event) => {
                self.mpi.push((*at, **event));
                Kind::Mpi
            }
            _ => {
                self.rare.extend(rare(item));
                Kind::Rare
            }
        };
        self.kinds.push(kind);
    }

    fn interval(
        &mut self,
        interval: &Interval<'_>,
        wanted: KeptArguments,
    ) -> KeptInterval<u32, Text, Box<Source>> {
        KeptInterval {
            track: interval.track,
            name: keep_text(&mut self.texts, interval.name),
            category: interval.category,
            begin: interval.begin,
            end: interval.end,
            arguments: self.arguments(interval.arguments, wanted),
            work: interval.work.map(|work| work.map(|source| Box::new(source.clone()))),
        }
    }

    /// Gives all items to `sink`.
    pub(crate) fn give(&self, sink: &mut dyn Sink) {
        let text = |text: &Text| &self.texts[text.start as usize..text.end as usize];
        // All at once: item by item costs twice as much.
        let all = self.arguments.iter();
        let all: Vec<Argument<'_>> =
            all.map(|(name, value)| Argument { name, value: value.value(text) }).collect();
        let mut rest = &all[..];
        let mut take = |count: u32| {
            let (taken, others) = rest.split_at(count as usize);
            rest = others;
            taken
        };
        let (mut enters, mut leaves) = (self.enters.iter(), self.leaves.iter());
        let (mut instants, mut intervals) = (self.instants.iter(), self.intervals.iter());
        let (mut counts, mut links) = (self.counts.iter(), self.links.iter());
        let (mut thread_events, mut rare) = (self.thread_events.iter(), self.rare.iter());
        let mut mpi = self.mpi.iter();
        let mut give = |kind: Kind| {
            match kind {
                Kind::Enter => {
                    let enter = enters.next()?;
                    sink.item(&Item::Enter(enter.with(take(enter.arguments))));
                }
                Kind::Leave => {
                    let leave = leaves.next()?;
                    sink.item(&Item::Leave(leave.with(take(leave.arguments))));
                }
                Kind::Instant => {
                    let instant = instants.next()?;
                    sink.item(&Item::Instant(instant.with(take(instant.arguments))));
                }
                Kind::Interval => {
                    let interval = intervals.next()?;
                    sink.item(&Item::Interval(Interval {
                        track: interval.track,
                        name: text(&interval.name),
                        category: interval.category,
                        begin: interval.begin,
                        end: interval.end,
                        arguments: take(interval.arguments),
                        work: interval.work.as_ref().map(|work| work.as_ref().map(|source| &**source)),
                    }));
                }
                Kind::Count => sink.item(&Item::Count(*counts.next()?)),
                Kind::ThreadEvent => {
                    let (at, event) = *thread_events.next()?;
                    sink.item(&Item::ThreadEvent(at, event));
                }
                Kind::Link => sink.item(&Item::Link(*links.next()?)),
                Kind::Mpi => {
                    let (at, event) = *mpi.next()?;
                    sink.item(&Item::Mpi(at, &event));
                }
                Kind::Rare => rare.next()?(sink),
            }
            Some(())
        };
        for kind in &self.kinds {
            // Each kind has as many items as `kinds` says.
            let given = give(*kind);
            debug_assert!(given.is_some());
        }
    }
}

fn keep_text(texts: &mut String, text: &str) -> Text {
    let start = texts.len() as u32;
    texts.push_str(text);
    start..texts.len() as u32
}

/// Keeps an item of which a timeline has few; `None` for the others.
fn rare(item: &Item<'_>) -> Option<Rare> {
    /// Gives the item that `item` makes of `kept`.
    fn giving<T, F>(kept: T, item: F) -> Rare
    where
        T: Send + Sync + 'static,
        F: Fn(&T) -> Item<'_> + Send + Sync + 'static,
    {
        Box::new(move |sink| sink.item(&item(&kept)))
    }
    Some(match *item {
        Item::Start { realtime_ns } => giving(realtime_ns, |start| Item::Start { realtime_ns: *start }),
        Item::Process(process) => giving(process.clone(), |process| Item::Process(process)),
        Item::Location(location) => giving(location.clone(), |location| Item::Location(location)),
        Item::Region(region) => giving(region.clone(), |region| Item::Region(region)),
        Item::Counter(counter) => giving(counter.clone(), |counter| Item::Counter(counter)),
        Item::Communicator(communicator) => {
            giving(communicator.clone(), |communicator| Item::Communicator(communicator))
        }
        Item::Function(function) => giving(function.clone(), |function| Item::Function(function)),
        Item::Sample(Sample { at, weight_ns, activity, stack }) => {
            giving(stack.to_vec(), move |stack| Item::Sample(Sample { at, weight_ns, activity, stack }))
        }
        Item::Counted(Counted { at, since, values }) => {
            giving(values.to_vec(), move |values| Item::Counted(Counted { at, since, values }))
        }
        Item::Annotation(annotation) => giving(annotation.clone(), |annotation| Item::Annotation(annotation)),
        Item::Note(process, text) => giving(text.to_owned(), move |text| Item::Note(process, text)),
        Item::Segment => giving((), |()| Item::Segment),
        Item::Summary(process, summary) => {
            giving(summary.clone(), move |summary| Item::Summary(process, summary))
        }
        Item::Count(_)
        | Item::Enter(_)
        | Item::Leave(_)
        | Item::Instant(_)
        | Item::ThreadEvent(..)
        | Item::Mpi(..)
        | Item::Interval(_)
        | Item::Link(_) => return None,
    })
}
