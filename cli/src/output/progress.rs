//! Progress on stderr, where that is a terminal. The bars disappear when they are finished.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use omptrace_trace_format::Reader;

use crate::output::{message, streams};

/// How often an analysis reads all events.
const PASSES: u64 = 2;

/// How often the bar of an analysis goes on, and how long that may take without one.
const MOMENT: Duration = Duration::from_millis(250);

/// A bar for chunks, whose number is added when it is known.
pub(crate) fn chunks(doing: &'static str) -> ProgressBar {
    bar(doing, 0, "{msg} [{bar:30}] {percent}%, {eta} left")
}

/// Shows on a bar of [`chunks`], which several files share, how many chunks of one file are done, of all that it has.
pub(crate) fn of_file(bar: &ProgressBar) -> impl FnMut(u64, u64) {
    let (mut done, mut total) = (0, 0);
    move |now, of| {
        bar.inc_length(of.saturating_sub(total));
        bar.inc(now.saturating_sub(done));
        (done, total) = (now, of);
    }
}

/// A bar for an analysis of so many bytes of events.
pub(crate) fn analysis(event_bytes: u64) -> ProgressBar {
    let total = event_bytes.saturating_mul(PASSES);
    bar("analysing", total, "{msg} [{bar:30}] {percent}%, {eta} left")
}

/// What `analyse` gives, with a bar for the events that it reads of `readers`. Only what takes longer than a moment has one.
pub(crate) fn while_analysing<T>(readers: &[&Reader], analyse: impl FnOnce() -> T) -> T {
    if !streams::stderr().is_terminal() {
        return analyse();
    }
    let all: u64 = readers.iter().map(|reader| reader.summary().event_bytes).sum();
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(MOMENT) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = analysis(all);
            while is_done.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
                let read: u64 = readers.iter().map(|reader| reader.event_bytes_read()).sum();
                bar.set_position(read);
            }
            bar.finish_and_clear();
        });
        let result = analyse();
        drop(done);
        result
    })
}

/// A bar for about `total` events.
pub(crate) fn events(doing: &'static str, total: u64) -> ProgressBar {
    bar(doing, total, "{msg} [{bar:30}] {human_pos} events, {rate}, {eta} left")
}

fn bar(doing: &'static str, total: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .expect("the templates are constant and were tried")
        .progress_chars("=> ")
        .with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            // Nothing is to be done where it cannot be written.
            let _ = write!(out, "{}/s", message::number(state.per_sec() as u64));
        });
    let bar = ProgressBar::new(total).with_message(doing).with_style(style);
    // Drawn by a thread of its own: steps may take long, and none is on a terminal that is not there.
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}
