//! Progress on stderr, where that is a terminal. The bars disappear when they are finished.

use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use omptrace_trace_format::Reader;

use crate::output::{message, streams};

/// How often an analysis reads all events.
const PASSES: u64 = 2;

/// How long work takes before it has a bar, and how often the bar of an analysis moves.
const MOMENT: Duration = Duration::from_millis(250);

/// How often a bar is drawn.
const TICK: Duration = Duration::from_millis(200);

/// The length of a bar for [`Work`].
const WHOLE: u64 = 1_000_000;

/// A bar for work in one step or in two. It appears if the work takes longer than a moment, never moves back, and
/// disappears at the end of the work.
#[derive(Debug)]
pub(crate) struct Work {
    bar: ProgressBar,
    /// Where the step begins and ends on the bar.
    step: Range<u64>,
}

impl Work {
    /// Work in a single step.
    pub(crate) fn one_step(doing: &'static str) -> Self {
        Self::beginning(doing, WHOLE)
    }

    /// The first of two steps, which takes about this percentage of the time of both.
    pub(crate) fn first_step(doing: &'static str, percentage: u64) -> Self {
        Self::beginning(doing, WHOLE * percentage / 100)
    }

    fn beginning(doing: &'static str, end: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::hidden());
        let style = style("{msg} [{bar:30}] {percent}%{left}");
        Self { bar: bar.with_message(doing).with_style(style), step: 0..end }
    }

    /// The second step.
    pub(crate) fn next_step(self, doing: &'static str) -> Self {
        self.set(1, 1);
        self.bar.set_message(doing);
        Self { bar: self.bar, step: self.step.end..WHOLE }
    }

    /// Shows how much of the step is done.
    pub(crate) fn set(&self, done: u64, of: u64) {
        let position = self.step.start + self.units(done, of);
        self.bar.set_position(position.max(self.bar.position()));
        self.appear();
    }

    /// Shows how much of one of `files` files is done, which share the step.
    pub(crate) fn of_file(&self, files: usize) -> impl FnMut(u64, u64) {
        let mut shown = 0;
        move |done, of| {
            let position = self.units(done, of) / files.max(1) as u64;
            self.bar.inc(position.saturating_sub(shown));
            shown = shown.max(position);
            self.appear();
        }
    }

    /// So much of the step, in units of the bar.
    fn units(&self, done: u64, of: u64) -> u64 {
        let length = self.step.end - self.step.start;
        (u128::from(length) * u128::from(done.min(of)) / u128::from(of.max(1))) as u64
    }

    fn appear(&self) {
        if self.bar.is_hidden() && self.bar.elapsed() >= MOMENT && streams::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// What `analyse` gives, with a bar for the events that it reads of `readers`. Only what takes longer than a moment has one.
pub(crate) fn while_analysing<T>(readers: &[&Reader], analyse: impl FnOnce() -> T) -> T {
    let work = Work::one_step("analysing");
    let result = watched(readers, work.of_file(1), analyse);
    work.finish();
    result
}

/// What `analyse` gives. Meanwhile, `show` gets how much of the events of `readers` has been read, of how much.
pub(crate) fn watched<T>(
    readers: &[&Reader],
    mut show: impl FnMut(u64, u64) + Send,
    analyse: impl FnOnce() -> T,
) -> T {
    if !streams::stderr().is_terminal() {
        return analyse();
    }
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
                let (read, all) = read_of(readers);
                show(read, all);
            }
            show(1, 1);
        });
        let result = analyse();
        drop(done);
        result
    })
}

/// The bytes of events that an analysis of these traces has read so far, and those that it will have read at its end.
pub(crate) fn read_of(readers: &[&Reader]) -> (u64, u64) {
    let all: u64 = readers.iter().map(|reader| reader.summary().event_bytes).sum();
    let read = readers.iter().map(|reader| reader.event_bytes_read()).sum();
    (read, all.saturating_mul(PASSES))
}

/// A bar for about `total` events.
pub(crate) fn events(doing: &'static str, total: u64) -> ProgressBar {
    let style = style("{msg} [{bar:30}] {human_pos} events, {rate}{left}");
    let bar = ProgressBar::new(total).with_message(doing).with_style(style);
    // Drawn by a thread of its own: steps may take long, and none is on a terminal that is not there.
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}

fn style(template: &str) -> ProgressStyle {
    // Nothing is to be done where a bar cannot be written.
    ProgressStyle::with_template(template)
        .expect("the templates are constant and were tried")
        .progress_chars("=> ")
        .with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{}/s", message::number(state.per_sec() as u64));
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn Write| {
            let left = time_left(state.elapsed(), state.pos(), state.len());
            let _ = left.map(|left| write!(out, ", {} left", HumanDuration(left)));
        })
}

/// The time that the rest takes at the average speed so far; `None` if this speed is not known.
fn time_left(elapsed: Duration, done: u64, all: Option<u64>) -> Option<Duration> {
    let rest = all?.saturating_sub(done);
    let seconds = elapsed.as_secs_f64() * rest as f64 / done as f64;
    // Infinite if nothing is done yet. The first steps are not yet typical of the others.
    (elapsed >= MOMENT).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_known_once_something_is_done() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(second, 0, Some(8)), None);
        assert_eq!(time_left(second, 2, None), None);
        assert_eq!(time_left(second, 2, Some(8)), Some(3 * second));
        assert_eq!(time_left(second, 9, Some(8)), Some(Duration::ZERO));
        assert_eq!(time_left(second / 10, 2, Some(8)), None);
    }

    #[test]
    fn a_bar_never_moves_back() {
        let work = Work::first_step("completing", 20);
        assert_eq!(work.bar.position(), 0);
        let (mut first, mut second) = (work.of_file(2), work.of_file(2));
        first(1, 2);
        assert_eq!(work.bar.position(), 50_000);
        second(3, 3);
        assert_eq!(work.bar.position(), 150_000);
        // Files without chunks are done at once.
        first(0, 0);
        assert_eq!(work.bar.position(), 150_000);
        drop((first, second));
        let work = work.next_step("analysing");
        assert_eq!(work.bar.position(), 200_000);
        work.set(3, 4);
        work.set(1, 4);
        assert_eq!(work.bar.position(), 800_000);
        work.set(9, 4);
        assert_eq!(work.bar.position(), WHOLE);
    }
}
