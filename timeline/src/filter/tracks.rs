//! Adds tracks to those of a trace, which show the results of an analysis at the time to which they refer.
//!
//! ```text
//! main           |--work--|....barrier....|--work--|
//!                         \               ^
//! worker 1       |........work............|
//! critical path  |--main--|---worker 1----|--main--|
//! ```
//!
//! An arrow leads from the end of one thread's interval to the start of another thread's interval. Both ends are marks:
//! a thread may be in no region, and an importer may take an instant before for the innermost one.

use std::sync::Arc;

use crate::filter::filtered::{Filter, relocated};
use crate::model::{
    Anchor, Category, Interval, Item, Link, LinkKind, Location, LocationId, LocationKind, Ns, Point,
    ProcessId, Sink, Value, Wants, argument,
};

/// A track that is added at the end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraTrack {
    /// The process, by its number on the timeline.
    pub process: ProcessId,
    /// The displayed name.
    pub name: String,
    /// The category of its intervals.
    pub category: Category,
    /// Its intervals, in chronological order and without overlap.
    pub intervals: Arc<[ExtraInterval]>,
    /// The kind of the arrows that lead along the intervals, from thread to thread; `None` for no arrows.
    pub arrows: Option<LinkKind>,
}

/// An interval on such a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraInterval {
    /// Its name.
    pub name: Arc<str>,
    /// The name of the thread on which it happened; `None` if it is not of a single thread.
    pub thread: Option<Arc<str>>,
    /// The thread's number among the locations of its process, from 0; `None` if unknown.
    pub location: Option<u32>,
    /// The start, in nanoseconds since the timeline's start.
    pub begin: Ns,
    /// The end.
    pub end: Ns,
}

/// The number of the first arrow. A timeline has fewer links of its own.
const FIRST_LINK: u64 = 1 << 36;

/// Adds tracks to processes, after the last of their other items.
#[derive(Debug)]
pub(super) struct ExtraTracks {
    tracks: Vec<ExtraTrack>,
    /// The number of the next location behind this filter.
    next: u32,
    /// The number of the process's first location behind this filter.
    first: u32,
    /// Number of tracks added so far, by which the numbers of later locations increase.
    added: u32,
    next_link: u64,
}

impl ExtraTracks {
    pub(super) fn new(tracks: Vec<ExtraTrack>) -> ExtraTracks {
        ExtraTracks { tracks, next: 0, first: 0, added: 0, next_link: FIRST_LINK }
    }

    fn add(&mut self, process: ProcessId, out: &mut dyn Sink) {
        let tracks = self.tracks.iter();
        let tracks: Vec<ExtraTrack> = tracks.filter(|track| track.process == process).cloned().collect();
        for track in tracks {
            let id = LocationId(self.next);
            self.next += 1;
            self.added += 1;
            out.item(&Item::Location(&Location {
                id,
                process,
                kind: LocationKind::Track,
                name: track.name.clone(),
            }));
            // A process starts before its tracer, so possibly before the timeline.
            for interval in track.intervals.iter().filter(|interval| interval.end > 0) {
                let thread = interval.thread.as_ref().map(|thread| argument("thread", Value::Text(thread)));
                out.item(&Item::Interval(Interval {
                    track: id,
                    name: &interval.name,
                    category: track.category,
                    begin: interval.begin.max(0),
                    end: interval.end,
                    arguments: thread.as_slice(),
                    work: None,
                }));
            }
            if let Some(kind) = track.arrows {
                for pair in track.intervals.windows(2) {
                    self.arrow(kind, &pair[0], &pair[1], out);
                }
            }
        }
    }

    /// Adds an arrow if `to` is on another thread than `from`.
    fn arrow(&mut self, kind: LinkKind, from: &ExtraInterval, to: &ExtraInterval, out: &mut dyn Sink) {
        let (Some(cause), Some(effect)) = (from.location, to.location) else {
            return;
        };
        if cause == effect || from.end <= 0 {
            return;
        }
        let point = |location: u32, time| Point { location: LocationId(self.first + location), time };
        let link = Link {
            id: self.next_link,
            kind,
            from: point(cause, from.end),
            cause: Anchor::Moment,
            to: point(effect, to.begin),
            effect: Anchor::Moment,
        };
        self.next_link += 1;
        out.item(&Item::Link(link));
    }
}

impl Filter for ExtraTracks {
    const LEAVES_OUT: Wants = Wants::ANNOTATIONS;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        let behind = |id: LocationId| Some(LocationId(id.0 + self.added));
        match item {
            Item::Process(_) => self.first = self.next,
            Item::Location(location) => {
                let id = LocationId(location.id.0 + self.added);
                self.next = id.0 + 1;
                return out.item(&Item::Location(&Location { id, ..(*location).clone() }));
            }
            Item::Summary(process, _) => self.add(*process, out),
            _ => {
                if let Some(item) = relocated(item, behind) {
                    out.item(&item);
                }
                return;
            }
        }
        out.item(item);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::filter::filtered::Filtered;
    use crate::model::{Process, Summary, ThreadRole};

    /// Logs where each item happens.
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Sink for Log {
        fn wants(&self) -> Wants {
            Wants::ALL
        }

        fn item(&mut self, item: &Item<'_>) {
            let line = match item {
                Item::Location(at) => format!("{} is {}", at.id.0, at.name),
                Item::Leave(leave) => format!("leave on {}", leave.at.location.0),
                Item::Interval(of) => {
                    format!("{} from {} on {}", of.name, of.begin, of.track.0)
                }
                Item::Link(link) => format!(
                    "from {} at {} to {} at {}",
                    link.from.location.0, link.from.time, link.to.location.0, link.to.time
                ),
                _ => return,
            };
            self.0.lock().expect("one thread").push(line);
        }

        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    fn step(location: u32, begin: Ns, end: Ns) -> ExtraInterval {
        ExtraInterval {
            name: format!("step {end}").into(),
            thread: Some("thread".into()),
            location: Some(location),
            begin,
            end,
        }
    }

    #[test]
    fn each_process_has_a_track_of_its_own_and_arrows_between_its_threads() {
        let path: Arc<[ExtraInterval]> =
            [step(0, -5, 10), step(1, 12, 20), step(1, 20, 25), step(0, 30, 40)].into();
        let lines = Arc::default();
        let log = Log(Arc::clone(&lines));
        let track = |process| ExtraTrack {
            process: ProcessId(process),
            name: "critical path".to_owned(),
            category: Category::Work,
            intervals: path.clone(),
            arrows: Some(LinkKind::CriticalPath),
        };
        let filter = ExtraTracks::new(vec![track(0), track(1)]);
        let mut sink = Filtered::new(filter, Box::new(log));
        let mut locations = (0..).map(LocationId);
        for number in 0..2 {
            let id = ProcessId(number);
            sink.item(&Item::Process(&Process { id, ..Process::default() }));
            let mut last = LocationId(0);
            for name in ["main", "worker"] {
                last = locations.next().expect("no end");
                let (os_tid, stream, role) = (0, 0, ThreadRole::Main);
                sink.item(&Item::Location(&Location {
                    id: last,
                    process: id,
                    kind: LocationKind::Thread { os_tid, stream, role },
                    name: name.to_owned(),
                }));
            }
            let at = Point { location: last, time: 40 };
            let arguments = &[][..];
            sink.item(&Item::Leave(crate::model::Leave { at, arguments }));
            sink.item(&Item::Summary(id, &Summary::default()));
        }
        let expected = [
            "0 is main",
            "1 is worker",
            "leave on 1",
            "2 is critical path",
            "step 10 from 0 on 2",
            "step 20 from 12 on 2",
            "step 25 from 20 on 2",
            "step 40 from 30 on 2",
            "from 0 at 10 to 1 at 12",
            "from 1 at 25 to 0 at 30",
            "3 is main",
            "4 is worker",
            "leave on 4",
            "5 is critical path",
            "step 10 from 0 on 5",
            "step 20 from 12 on 5",
            "step 25 from 20 on 5",
            "step 40 from 30 on 5",
            "from 3 at 10 to 4 at 12",
            "from 4 at 25 to 3 at 30",
        ];
        assert_eq!(*lines.lock().expect("one thread"), expected);
    }
}
