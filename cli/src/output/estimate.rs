//! Statistics of a part of a run, from which those of the whole run are estimated.

use omptrace_analysis::{BasedOn, Stats};
use omptrace_report::{time, useful_percent};

/// An estimate of a run.
#[derive(Debug)]
pub(crate) struct Estimate<'a> {
    /// The statistics of the part.
    pub(crate) stats: &'a Stats,
    based_on: BasedOn,
    /// The duration of the run, in nanoseconds.
    wall_ns: u64,
}

impl<'a> Estimate<'a> {
    /// `None` if the statistics are those of the whole run, or if they contain no time.
    pub(crate) fn of(stats: &'a Stats, wall_ns: u64) -> Option<Estimate<'a>> {
        let based_on = stats.based_on.filter(|_| stats.answers.has_time())?;
        Some(Estimate { stats, based_on, wall_ns })
    }

    /// What the estimate is based on. The command that analyses the whole run is to follow.
    pub(crate) fn words(&self) -> String {
        let answers = &self.stats.answers;
        let BasedOn { share, windows } = self.based_on;
        match windows {
            Some(windows) => format!(
                "About {} % of the threads' time was useful, as estimated from {windows} random parts that cover {} of the run. To analyse the whole run, which takes longer, run:",
                useful_percent(answers).unwrap_or(0),
                share_words(share)
            ),
            None => format!(
                "Only the first {} of the run ({} in total) were analysed. They contain {:.0} % of the events; the rest of the run may differ. To analyse the whole run, run:",
                time(answers.duration_ns),
                time(self.wall_ns),
                share * 100.0
            ),
        }
    }

    /// The part of the run that was analysed, if it is its beginning, in words.
    pub(crate) fn beginning(&self) -> Option<String> {
        let is_beginning = self.based_on.windows.is_none();
        is_beginning.then(|| format!("In the first {} of the run:", time(self.stats.answers.duration_ns)))
    }
}

/// A share in percent, with one digit after the point if it is small.
fn share_words(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}
