//! Less of a timeline: adapters between interpretation and a format, so that every format can have them.
//!
//! ```text
//! timeline -> tracks -> threads -> duration -> window -> arguments -> format
//! ```
//!
//! Durations are those of the whole timeline: a long slice of which the window shows a short piece stays. Teams, tasks and
//! locks ([`ThreadEvent`](crate::sink::ThreadEvent)) and [causes](Wants::CAUSES) are reported for whole timelines only: of a
//! part, begins would miss their ends.

mod arguments;
mod duration;
mod kept;
mod threads;
mod tracks;
mod window;

pub use kept::{KeptArguments, KeptValue};
pub use threads::{ThreadName, threads};
pub use tracks::{ExtraInterval, ExtraTrack};
pub use window::Window;

use std::fmt;
use std::io;

use crate::sink::{
    Counted, Enter, Instant, Interval, Item, Leave, Link, LocationId, Ns, Point, ProcessId, Sample, Sink,
    Wants,
};
use arguments::ChosenArguments;
use duration::MinDuration;
use threads::Threads;
use tracks::ExtraTracks;

/// The items that only whole timelines have.
const OF_WHOLE_TIMELINES: Wants = Wants::THREAD_EVENTS.and(Wants::SAMPLE_TIMES).and(Wants::CAUSES);

/// The part of a timeline that is exported; by default all of it.
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
    /// Tracks that are added to the timeline.
    pub extra_tracks: Vec<ExtraTrack>,
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
    /// Whether all of the timeline is selected, and nothing is added.
    pub fn is_all(&self) -> bool {
        let Selection { arguments, window, threads, min_duration_ns, extra_tracks } = self;
        *arguments == ArgumentChoice::All
            && window.is_none()
            && threads.is_empty()
            && *min_duration_ns == 0
            && extra_tracks.is_empty()
    }

    /// A sink that passes what is selected on to `sink`.
    pub fn of(&self, mut sink: Box<dyn Sink>) -> Box<dyn Sink> {
        if self.arguments != ArgumentChoice::All {
            sink = Box::new(Filtered::new(ChosenArguments(self.arguments), sink));
        }
        if let Some((begin, end)) = self.window {
            sink = Box::new(Filtered::new(Window::new(begin, end), sink));
        }
        if self.min_duration_ns > 0 {
            sink = Box::new(Filtered::new(MinDuration::new(self.min_duration_ns), sink));
        }
        if !self.threads.is_empty() {
            sink = Box::new(Filtered::new(Threads::new(self.threads.clone()), sink));
        }
        if !self.extra_tracks.is_empty() {
            let tracks = ExtraTracks::new(self.extra_tracks.clone());
            sink = Box::new(Filtered::new(tracks, sink));
        }
        sink
    }

    /// The same for one process of `step`, beginning with that of number `first`, which count up from 0 there.
    pub fn of_processes(&self, first: usize, step: usize) -> Selection {
        let tracks = self.extra_tracks.iter().filter_map(|track| {
            let later = (track.process.0 as usize).checked_sub(first)?;
            let process = ProcessId((later / step) as u32);
            (later % step == 0).then(|| ExtraTrack { process, ..track.clone() })
        });
        Selection { extra_tracks: tracks.collect(), ..self.clone() }
    }
}

/// Makes less of a timeline, item by item.
pub trait Filter: Send {
    /// Optional items of which it cannot make less: they are left out.
    const LEAVES_OUT: Wants;

    /// Passes on to `out` what stays of `item`.
    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink);

    /// The timeline is at its end: passes on what was kept back.
    fn end(&mut self, out: &mut dyn Sink) {
        let _ = out;
    }
}

/// The item with what `location` makes of the locations that it lies on; `None` where that gives none. Not of definitions.
fn relocated<'a>(item: &Item<'a>, location: impl Fn(LocationId) -> Option<LocationId>) -> Option<Item<'a>> {
    let point = |at: Point| {
        let location = location(at.location)?;
        Some(Point { location, ..at })
    };
    Some(match *item {
        Item::Enter(enter) => Item::Enter(Enter { at: point(enter.at)?, ..enter }),
        Item::Leave(leave) => Item::Leave(Leave { at: point(leave.at)?, ..leave }),
        Item::Instant(instant) => Item::Instant(Instant { at: point(instant.at)?, ..instant }),
        Item::Interval(interval) => Item::Interval(Interval { track: location(interval.track)?, ..interval }),
        Item::Link(link) => Item::Link(Link { from: point(link.from)?, to: point(link.to)?, ..link }),
        Item::Sample(sample) => Item::Sample(Sample { at: point(sample.at)?, ..sample }),
        Item::Counted(counted) => Item::Counted(Counted { at: point(counted.at)?, ..counted }),
        Item::ThreadEvent(at, event) => Item::ThreadEvent(point(at)?, event),
        other => other,
    })
}

/// A sink that gets less than the whole timeline.
pub struct Filtered<F> {
    filter: F,
    out: Box<dyn Sink>,
}

impl<F: Filter> Filtered<F> {
    /// Passes on to `out` what `filter` leaves.
    pub fn new(filter: F, out: Box<dyn Sink>) -> Filtered<F> {
        Filtered { filter, out }
    }
}

impl<F> fmt::Debug for Filtered<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").finish_non_exhaustive()
    }
}

impl<F: Filter> Sink for Filtered<F> {
    fn wants(&self) -> Wants {
        self.out.wants().without(F::LEAVES_OUT)
    }

    #[inline]
    fn item(&mut self, item: &Item<'_>) {
        self.filter.item(item, &mut *self.out);
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.filter.end(&mut *self.out);
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wants everything.
    struct Greedy;

    impl Sink for Greedy {
        fn wants(&self) -> Wants {
            Wants::ALL
        }

        fn item(&mut self, _: &Item<'_>) {}
    }

    #[test]
    fn filters_forward_what_a_sink_wants_but_what_only_whole_timelines_have() {
        let wants = |selection: Selection| selection.of(Box::new(Greedy)).wants();
        let whole = Selection { arguments: ArgumentChoice::Ids, ..Selection::default() };
        assert_eq!(wants(whole), Wants::ALL);
        let parts = [
            Selection { window: Some((1, 2)), ..Selection::default() },
            Selection { threads: vec!["main".to_owned()], ..Selection::default() },
            Selection { min_duration_ns: 1, ..Selection::default() },
        ];
        for part in parts {
            let of_parts = Wants::COUNTS.and(Wants::ARROWS).and(Wants::SAMPLES).and(Wants::COUNTERS);
            assert_eq!(wants(part), of_parts);
        }
    }
}
