//! Segments of a process: what lies between two checkpoints. Each can be interpreted by itself, at the same time as others.
//!
//! ```text
//! in one go    items ... Segment, items ... Segment, items ...
//! by itself    of the second: what is open when it begins, Segment, items
//! ```
//!
//! The items behind an [`Item::Segment`] are the same in both ways, but for the numbers of what was defined on the way.
//!
//! Some checkpoints lie where a parallel region has just ended, and only the initial thread goes on. What comes behind such a one
//! depends on nothing that was before, so that sums of what lies between two of them [add up](Segments::between_regions).

use std::ops::Range;
use std::sync::Arc;

use omptrace_trace_format::Reader;
use omptrace_trace_format::checkpoint::Packed;

use crate::interpret::annotations::Texts;
use crate::interpret::{Restart, may_have_checkpoints};
use crate::model::session_clock::SessionClock;
use crate::model::thread_introduction::ThreadIntroduction;
use crate::model::{Item, Ns, Sink, ThreadRole, Wants};
use crate::replay::report::is_overwritten;
use crate::runtime_quirks::capabilities::Reports;
use crate::threads::locations::introductions;

/// Events of a segment, at least: to begin one costs as much as to interpret some thousand.
pub const MIN_SEGMENT_EVENTS: u64 = 1 << 14;

/// Segments of a process, at most. Of more checkpoints, some are passed over.
pub const MAX_SEGMENTS: usize = 1 << 12;

/// Streams that are read at once, at most, each with up to a MiB: what is decoded of it, and its chunk.
pub const MAX_STREAMS: usize = 192;

/// The segments of one process.
#[derive(Debug)]
pub struct Segments {
    /// The begins of all but the first, in raw ticks.
    cuts: Vec<u64>,
    /// The events before the last.
    events: u64,
    /// The checkpoints at these, where they are not the trace's own.
    made: Vec<Packed>,
    pub(crate) introductions: Vec<ThreadIntroduction>,
    /// The names in annotations, wherever they are defined.
    pub(crate) texts: Arc<Texts>,
}

impl Segments {
    /// The segments of `reader`'s process, each of `min_events` or more; `None` where it has one only. Then there are no checkpoints,
    /// or all are near its begin. Or something is damaged since they were made, so that who begins there would see something else.
    pub fn of(reader: &Reader, min_events: u64) -> Option<Segments> {
        let cuts = cuts(reader, &[], min_events, |_| true);
        let step = cuts.len().div_ceil(MAX_SEGMENTS - 1).max(1);
        let cuts: Vec<Cut> = cuts.into_iter().step_by(step).collect();
        Segments::at(reader, Vec::new(), cuts, introductions(reader))
    }

    /// At most `parts` segments of about as many events, each of `min_events` or more. A parallel region has ended when one begins,
    /// and only the initial thread goes on. `None` where that is not known to be so anywhere else than at the begin of the process.
    /// Only the boundaries for which `is_wanted` is true are used. `made`: the [checkpoints](crate::ProcessReport::checkpoints) of a
    /// trace that has none of its own.
    pub fn between_regions(
        reader: &Reader,
        made: Vec<Packed>,
        parts: usize,
        min_events: u64,
        is_wanted: impl Fn(Boundary) -> bool,
    ) -> Option<Segments> {
        if parts < 2 {
            return None;
        }
        let introductions = introductions(reader);
        let roles = roles_with_one_initial(reader, &introductions)?;
        let possible = cuts(reader, &made, min_events, |restart| {
            restart.is_between_regions(&roles) && Boundary::of(reader, restart).is_some_and(&is_wanted)
        });
        // There are about as many events before the first and after the last as between two.
        let (first, last) =
            possible.first().zip(possible.last()).map_or((0, 0), |(first, last)| (first.events, last.events));
        let between = (last - first) / (possible.len() as u64).saturating_sub(1).max(1);
        let before = match between {
            0 => 0,
            _ => first.saturating_sub(between),
        };
        let all = last - before + if between > 0 { between } else { last };
        let mut cuts: Vec<Cut> = Vec::new();
        for part in 1..parts as u64 {
            let wanted = before + (u128::from(all) * u128::from(part) / parts as u128) as u64;
            let nearest = possible.iter().min_by_key(|cut| cut.events.abs_diff(wanted));
            let last = cuts.last().map_or(0, |cut| cut.ticks);
            cuts.extend(nearest.filter(|cut| cut.ticks > last).copied());
        }
        Segments::at(reader, made, cuts, introductions)
    }

    /// Whether the trace of `reader` has checkpoints that this program can begin at.
    pub fn have_checkpoints(reader: &Reader) -> bool {
        reader.checkpoint_ticks().next_back().is_some_and(|ticks| Restart::at(reader, ticks).is_some())
    }

    /// What lies between these cuts.
    fn at(
        reader: &Reader,
        mut made: Vec<Packed>,
        cuts: Vec<Cut>,
        introductions: Vec<ThreadIntroduction>,
    ) -> Option<Segments> {
        let events = cuts.last()?.events;
        made.retain(|packed| cuts.iter().any(|cut| cut.ticks == packed.ticks()));
        reader.is_sound().then(|| Segments {
            cuts: cuts.into_iter().map(|cut| cut.ticks).collect(),
            events,
            made,
            introductions,
            texts: Arc::new(Texts::of(reader)),
        })
    }

    /// How many there are: two or more.
    pub fn count(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The begin of segment `number`. The first has none: it begins where the trace does.
    pub(crate) fn begin(&self, number: usize) -> Option<u64> {
        self.cuts.get(number.checked_sub(1)?).copied()
    }

    /// The checkpoint at which segment `number` begins; none for the first.
    pub(crate) fn restart(&self, reader: &Reader, number: usize) -> Option<Restart> {
        let ticks = self.begin(number)?;
        restart_at(reader, &self.made, ticks)
    }

    /// The begin of the segment behind `number`; `u64::MAX` behind the last.
    pub(crate) fn end(&self, number: usize) -> u64 {
        self.cuts.get(number).copied().unwrap_or(u64::MAX)
    }

    /// All segments in order, together those that one thread interprets in one go. There are as many goes as `workers`. There are more
    /// where one would have more than `max_events`, about.
    pub fn goes(&self, workers: usize, max_events: u64) -> Vec<Range<usize>> {
        let count = self.count();
        let by_size = usize::try_from(self.events / max_events.max(1)).unwrap_or(usize::MAX);
        let goes = by_size.saturating_add(1).max(workers).clamp(1, count);
        let begin = |go: usize| (go as u128 * count as u128 / goes as u128) as usize;
        (0..goes).map(|go| begin(go)..begin(go + 1)).collect()
    }
}

/// The moment between two parallel regions at which a segment may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// When the last parallel region before it began.
    pub region_began: Ns,
    /// When that region ended, which is the last event before the segment.
    pub time: Ns,
}

impl Boundary {
    /// The boundaries at which [`Segments::between_regions`] can divide the process, in chronological order.
    pub fn all(reader: &Reader) -> Vec<Boundary> {
        let Some(roles) = roles_with_one_initial(reader, &introductions(reader)) else {
            return Vec::new();
        };
        if !may_have_checkpoints(reader.metadata()) {
            return Vec::new();
        }
        let restarts = reader.checkpoint_ticks().filter_map(|ticks| Restart::at(reader, ticks));
        let between = restarts.filter(|restart| restart.is_between_regions(&roles));
        between.filter_map(|restart| Boundary::of(reader, &restart)).collect()
    }

    fn of(reader: &Reader, restart: &Restart) -> Option<Boundary> {
        let (began, ended) = restart.last_region()?;
        let clock = SessionClock { map: reader.clock(), start: 0 };
        Some(Boundary { region_began: clock.time(began), time: clock.time(ended) })
    }
}

/// The roles of all threads; `None` if there are several initial threads, or if it is not known when regions end.
fn roles_with_one_initial(reader: &Reader, threads: &[ThreadIntroduction]) -> Option<Vec<ThreadRole>> {
    let is_known = Reports::of(reader.metadata()).members && !is_overwritten(reader.diagnostics());
    let roles: Vec<ThreadRole> = threads.iter().map(ThreadIntroduction::role).collect();
    let goes_alone = |role: &&ThreadRole| !matches!(role, ThreadRole::Worker | ThreadRole::Helper);
    (is_known && roles.iter().filter(goes_alone).count() == 1).then_some(roles)
}

/// Where a segment may begin.
#[derive(Clone, Copy)]
struct Cut {
    ticks: u64,
    /// The events before it.
    events: u64,
}

/// The checkpoints that are `wanted`, each `min_events` behind the one before: those that were `made`, or those of `reader` where
/// there are none.
fn cuts(reader: &Reader, made: &[Packed], min_events: u64, wanted: impl Fn(&Restart) -> bool) -> Vec<Cut> {
    if !may_have_checkpoints(reader.metadata()) {
        return Vec::new();
    }
    let all: Vec<u64> = match made {
        [] => reader.checkpoint_ticks().collect(),
        made => made.iter().map(Packed::ticks).collect(),
    };
    let mut cuts: Vec<Cut> = Vec::new();
    for ticks in all {
        let Some(restart) = restart_at(reader, made, ticks).filter(&wanted) else {
            continue;
        };
        let events = restart.events_before();
        let before = cuts.last().map_or((0, 0), |cut| (cut.events, cut.ticks));
        if events.saturating_sub(before.0) >= min_events && before.1 < ticks {
            cuts.push(Cut { ticks, events });
        }
    }
    cuts
}

/// The checkpoint at `ticks`: one of those that were `made`, which are in order, or of `reader`.
fn restart_at(reader: &Reader, made: &[Packed], ticks: u64) -> Option<Restart> {
    match made.binary_search_by_key(&ticks, Packed::ticks) {
        Ok(index) => Restart::of(reader, made[index].unpack()?),
        Err(_) => Restart::at(reader, ticks),
    }
}

/// Passes definitions on, and all that comes from [`Item::Segment`] on: what is open when a segment begins was shown before.
pub struct FromSegment<'s> {
    sink: &'s mut dyn Sink,
    has_begun: bool,
}

impl<'s> FromSegment<'s> {
    /// For segments from that number on: all of the first comes from it.
    pub fn of(number: usize, sink: &'s mut dyn Sink) -> FromSegment<'s> {
        FromSegment { sink, has_begun: number == 0 }
    }
}

impl Sink for FromSegment<'_> {
    fn wants(&self) -> Wants {
        self.sink.wants()
    }

    #[inline]
    fn item(&mut self, item: &Item<'_>) {
        let is_definition = matches!(
            item,
            Item::Start { .. }
                | Item::Process(_)
                | Item::Location(_)
                | Item::Region(_)
                | Item::Counter(_)
                | Item::Function(_)
        );
        self.has_begun |= matches!(item, Item::Segment);
        if self.has_begun || is_definition {
            self.sink.item(item);
        }
    }

    fn failed(&self) -> bool {
        self.sink.failed()
    }
}

impl std::fmt::Debug for FromSegment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromSegment").finish_non_exhaustive()
    }
}
