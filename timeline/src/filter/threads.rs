//! Removes threads.

use omptrace_trace_format::Reader;

use crate::filter::filtered::{Filter, OF_WHOLE_TIMELINES, relocated};
use crate::model::{Item, Location, LocationId, LocationKind, Sink, Wants};
use crate::{display_order, introductions};

/// A thread of a trace, as its timeline shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// The displayed name.
    pub name: String,
    /// The thread's index in its process; the main thread has 0.
    pub place: u32,
    /// The thread's id in the operating system; 0 if unknown.
    pub os_tid: u32,
}

impl ThreadName {
    /// Whether `wanted` selects this thread: a number is its index or its operating system id; other text is a part of
    /// its name, ignoring case.
    pub fn is_meant_by(&self, wanted: &str) -> bool {
        match wanted.parse::<u32>() {
            Ok(number) => number == self.place || number == self.os_tid,
            Err(_) => self.name.to_lowercase().contains(&wanted.to_lowercase()),
        }
    }
}

/// The threads of a trace, in the order of its timeline.
pub fn threads(reader: &Reader) -> Vec<ThreadName> {
    let threads = introductions(reader);
    let named = |(index, place): (usize, u32)| ThreadName {
        name: threads[index].name.clone(),
        place,
        os_tid: threads[index].os_tid,
    };
    display_order(&threads)
        .into_iter()
        .filter(|index| threads[*index].device_num.is_none())
        .zip(0..)
        .map(named)
        .collect()
}

/// Passes on the selected threads, and all other tracks.
pub(super) struct Threads {
    wanted: Vec<String>,
    /// The number of each location behind this filter, if it is passed on.
    locations: Vec<Option<LocationId>>,
    next: u32,
    /// Number of threads of the process so far.
    place: u32,
}

impl Threads {
    pub(super) fn new(wanted: Vec<String>) -> Threads {
        Threads { wanted, locations: Vec::new(), next: 0, place: 0 }
    }

    fn is_wanted(&mut self, location: &Location) -> bool {
        let LocationKind::Thread { os_tid, .. } = location.kind else {
            return true;
        };
        let thread = ThreadName { name: location.name.clone(), place: self.place, os_tid };
        self.place += 1;
        self.wanted.iter().any(|wanted| thread.is_meant_by(wanted))
    }

    fn location(&mut self, location: &Location, out: &mut dyn Sink) {
        if !self.is_wanted(location) {
            return self.locations.push(None);
        }
        let id = LocationId(self.next);
        self.next += 1;
        self.locations.push(Some(id));
        out.item(&Item::Location(&Location { id, ..location.clone() }));
    }
}

impl Filter for Threads {
    const LEAVES_OUT: Wants = OF_WHOLE_TIMELINES;

    fn item(&mut self, item: &Item<'_>, out: &mut dyn Sink) {
        match item {
            Item::Location(location) => return self.location(location, out),
            Item::ThreadEvent(..) => return,
            Item::Process(_) => self.place = 0,
            _ => {}
        }
        if let Some(passed) = relocated(item, |id| self.locations[id.0 as usize]) {
            out.item(&passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_meant_by_number_or_name() {
        let worker = ThreadName { name: "OpenMP worker 1".to_owned(), place: 2, os_tid: 4712 };
        for wanted in ["2", "4712", "worker 1", "OpenMP"] {
            assert!(worker.is_meant_by(wanted), "{wanted}");
        }
        for wanted in ["1", "main", "worker 2"] {
            assert!(!worker.is_meant_by(wanted), "{wanted}");
        }
    }
}
