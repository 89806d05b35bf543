//! Progress on stderr, where that is a terminal. The bars disappear when they are finished.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::output::message;

/// A bar for chunks, whose number is added when it is known.
pub(crate) fn chunks(doing: &'static str) -> ProgressBar {
    bar(doing, 0, "{msg} [{bar:30}] {percent}%, {eta} left")
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
