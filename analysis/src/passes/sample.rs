//! Estimates the shares of a run from short windows, which `record` does if the whole analysis would take too long.
//!
//! The run is divided into strata of equal length, and a window lies at a random place in each of them. Evenly spaced
//! windows would fall in step with a program that repeats the same steps.

use omptrace_timeline::Excerpts;
use omptrace_trace_format::Reader;

use super::*;

/// The numbers of windows that are tried. If regions are long, many windows would read most of the trace.
const WINDOWS: [u64; 3] = [60, 24, 12];
/// How many times more than the windows themselves may be read, because reading begins and ends between regions.
const MAX_READ: u64 = 3;

/// The windows, and the parts of the trace that contain them.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) windows: Windows,
    pub(super) excerpts: Excerpts,
}

impl Stats {
    /// Statistics of random windows of a trace that contain about this many bytes of events, without a replay.
    /// Durations are those of the windows, so only shares say something about the run. There are no findings, because
    /// findings of few instances come and go with the windows. `None` if the program's regions are too long, or if their
    /// begins cannot be found.
    pub fn of_sample(reader: &Reader, event_bytes: u64) -> Option<Stats> {
        let share = event_bytes as f64 / reader.summary().event_bytes.max(1) as f64;
        let (begin, end) = recorded_ticks(reader);
        let (sample, windows) = WINDOWS.iter().find_map(|count| {
            let windows = random_windows((begin, end), *count, share, reader.header().session);
            let ticks: u64 = windows.iter().map(|(begin, end)| end - begin).sum();
            let excerpts = Excerpts::around(reader, &windows)?;
            let is_short = excerpts.ticks(begin, end) <= ticks.saturating_mul(MAX_READ);
            let clock = reader.clock();
            let of = |(begin, end): &(u64, u64)| (clock.ns(*begin), clock.ns(*end));
            let windows = Windows::of(windows.iter().map(of).collect());
            is_short.then_some((Sample { windows, excerpts }, *count))
        })?;
        let options = Options::default();
        let run = Run {
            replays: false,
            is_summarised: true,
            sample: Some(sample),
            ..Run::of(&Input::traces(&[reader]), &options)
        };
        let (stats, ..) = run.answers().ok()?;
        Some(stats.estimated_from(BasedOn { share, windows: Some(windows) }))
    }
}

impl Stats {
    /// Marks the statistics as those of a part of the run.
    pub(super) fn estimated_from(mut self, part: BasedOn) -> Stats {
        self.answers.findings.clear();
        // Nobody selected a part.
        Stats { based_on: Some(part), analysed: None, ..self }
    }
}

/// The times between which the streams have events, in raw ticks.
fn recorded_ticks(reader: &Reader) -> (u64, u64) {
    let begins = reader.streams().iter().map(|stream| reader.events(stream).begin());
    (begins.min().unwrap_or(0), reader.last_ticks())
}

/// `count` windows that cover this share of the time, each at a random place within its stratum.
fn random_windows((begin, end): (u64, u64), count: u64, share: f64, seed: u64) -> Vec<(u64, u64)> {
    let stratum = end.saturating_sub(begin) / count;
    let length = (stratum as f64 * share.clamp(0.0, 1.0)) as u64;
    let mut random = seed;
    let windows = (0..count).map(|number| {
        let first = begin + number * stratum;
        let at = first + next_random(&mut random) % (stratum - length).max(1);
        (at, at + length)
    });
    windows.collect()
}

/// The next number of the SplitMix64 generator.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_window_in_each_stratum() {
        for seed in 0..50 {
            let windows = random_windows((100, 1100), 10, 0.3, seed);
            for (number, (begin, end)) in windows.iter().enumerate() {
                let stratum = 100 + 100 * number as u64;
                assert!(*begin >= stratum && *end <= stratum + 100, "{seed}: {windows:?}");
                assert_eq!(end - begin, 30);
            }
        }
        let places = |seed| random_windows((0, 1000), 10, 0.3, seed);
        assert_ne!(places(1), places(2));
        assert_eq!(random_windows((5, 5), 10, 0.3, 1), vec![(5, 5); 10]);
    }
}
