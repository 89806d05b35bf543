//! The progress of a conversion by several threads.

use parking_lot::Mutex;

/// The number of events that all parts have processed, and the function that reports it: under one lock, because
/// otherwise the reported sum might decrease.
pub(crate) type Progress<'p> = Mutex<(u64, &'p mut (dyn FnMut(u64) + Send))>;

/// The progress of a part whose count starts at `reported`; if that is `None`, at its first reported count.
pub(crate) fn of_part<'p>(progress: &'p Progress<'_>, mut reported: Option<u64>) -> impl FnMut(u64) + 'p {
    move |events| {
        let more = events - reported.replace(events).unwrap_or(events);
        let (done, progress) = &mut *progress.lock();
        *done += more;
        progress(*done);
    }
}
