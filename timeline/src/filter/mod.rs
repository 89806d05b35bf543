//! Filters: adapters between interpretation and format, which reduce a timeline. They work with all formats.
//!
//! ```text
//! timeline -> tracks -> threads -> duration -> window -> arguments -> format
//! ```
//!
//! Durations are those of the whole timeline, so a long slice is kept even if only a short piece of it is in the
//! window. Teams, tasks and locks ([`ThreadEvent`](crate::model::ThreadEvent)) and [causes](crate::model::Wants::CAUSES)
//! are reported only for complete timelines: in a part, starts would lack their ends.

mod arguments;
mod duration;
mod filtered;
mod kept;
mod threads;
mod tracks;
mod window;

pub use arguments::ArgumentChoice;
pub use filtered::{Filter, Filtered};
pub use kept::{KeptArguments, OwnedValue};
pub use threads::{ThreadName, threads};
pub use tracks::{ExtraInterval, ExtraTrack};
pub use window::Window;

use crate::model::{Ns, ProcessId, Sink};
use arguments::ChosenArguments;
use duration::MinDuration;
use threads::Threads;
use tracks::ExtraTracks;

/// The part of a timeline that is exported; by default, all of it.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Which arguments are exported.
    pub arguments: ArgumentChoice,
    /// Exports only this half-open interval. Slices that reach beyond it are cut.
    pub window: Option<(Ns, Ns)>,
    /// Exports only these threads, given by name or number (see [`ThreadName::is_meant_by`]); all threads if empty.
    /// Other tracks are kept.
    pub threads: Vec<String>,
    /// The shortest slice that is kept; instants are always kept.
    pub min_duration_ns: u64,
    /// Tracks that are added to the timeline.
    pub extra_tracks: Vec<ExtraTrack>,
}

impl Selection {
    /// Whether the whole timeline is selected, and nothing is added.
    pub fn is_all(&self) -> bool {
        let Selection { arguments, window, threads, min_duration_ns, extra_tracks } = self;
        *arguments == ArgumentChoice::All
            && window.is_none()
            && threads.is_empty()
            && *min_duration_ns == 0
            && extra_tracks.is_empty()
    }

    /// A sink that passes the selected items on to `sink`.
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

    /// The selection for every `step`-th process, starting with number `first`. In the result, these processes are
    /// numbered from 0.
    pub fn of_processes(&self, first: usize, step: usize) -> Selection {
        let tracks = self.extra_tracks.iter().filter_map(|track| {
            let later = (track.process.0 as usize).checked_sub(first)?;
            let process = ProcessId((later / step) as u32);
            (later % step == 0).then(|| ExtraTrack { process, ..track.clone() })
        });
        Selection { extra_tracks: tracks.collect(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Item, Wants};

    /// A sink that wants all items.
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
            let of_parts = of_parts.and(Wants::MPI);
            assert_eq!(wants(part), of_parts);
        }
    }
}
