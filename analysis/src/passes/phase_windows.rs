//! The windows of phases and time steps.

use super::{Phase, Run};
use crate::constructs::phases::{PhaseCollector, Phases};
use crate::constructs::ranges::Ranges;
use crate::constructs::steps::Steps;
use crate::passes::options::NoAnswer;
use crate::passes::window::Windows;

/// Maximum number of phases that are analysed; the longest are chosen.
const MAX_PHASES: usize = 16;

impl Run<'_> {
    /// The analysed windows; `None` if the whole run is analysed.
    pub(super) fn windows(&self) -> Result<Option<Windows>, NoAnswer> {
        let window = self.options.window.map(|window| Windows::of(vec![window]));
        if self.options.steps.is_none() && self.options.phase.is_none() {
            return Ok(window);
        }
        let (phases, ranges) = self.all_phases();
        let window = match self.options.steps {
            Some(steps) => Some(window_of_steps(steps, &phases, &ranges)?),
            None => window,
        };
        let Some(wanted) = &self.options.phase else {
            return Ok(window);
        };
        match phases.selected(wanted) {
            Some(windows) => {
                let both = window.map(|window| windows.and(&window));
                Ok(Some(both.unwrap_or(windows)))
            }
            None => Err(NoAnswer::Phase { known: phases.names().cloned().collect() }),
        }
    }

    /// The phases of all processes.
    fn all_phases(&self) -> (Phases, Ranges) {
        let segments = self.segments_within(None, false);
        let (mut phases, mut ranges) = (Phases::default(), Ranges::default());
        for (of_process, its_ranges) in self.each(|number| {
            let in_segments = self.of_segments(segments.as_ref(), self.manner, PhaseCollector::default);
            let collector = in_segments.map(|(collector, _)| collector).unwrap_or_else(|| {
                let mut collector = PhaseCollector::default();
                self.replay(number, vec![&mut collector]);
                collector
            });
            collector.finish()
        }) {
            phases.merge(of_process);
            ranges.merge(its_ranges);
        }
        (phases, ranges)
    }

    /// The phases that are analysed, restricted to `windows`, and the number of phases that are left out.
    pub(super) fn phases(&self, phases: Phases, windows: Option<&Windows>) -> (Vec<Phase>, usize) {
        if self.options.phase.is_some() {
            return (Vec::new(), 0);
        }
        let mut phases: Vec<Phase> = phases
            .windows()
            .map(|(name, count, when)| match windows {
                Some(windows) => (name, count, when.and(windows)),
                None => (name, count, when),
            })
            .filter(|(_, _, when)| !when.is_empty())
            .collect();
        phases.sort_by_key(|(_, _, when)| std::cmp::Reverse(when.duration()));
        let more = phases.len().saturating_sub(MAX_PHASES);
        phases.truncate(MAX_PHASES);
        (phases, more)
    }
}

/// The time from the start of a step to the end of another.
fn window_of_steps((first, last): (u64, u64), phases: &Phases, ranges: &Ranges) -> Result<Windows, NoAnswer> {
    let (_, instances) = Steps::choose(ranges, phases.instances()).ok_or(NoAnswer::Steps { count: 0 })?;
    let at = |number: u64| {
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| instances.get(place))
    };
    match (at(first), at(last)) {
        (Some((begin, _)), Some((_, end))) if first <= last => Ok(Windows::of(vec![(*begin, *end)])),
        _ => Err(NoAnswer::Steps { count: instances.len() as u64 }),
    }
}
