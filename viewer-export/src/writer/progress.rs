//! How far a conversion has come, of which several threads do a part each.

use parking_lot::Mutex;

/// The events that all parts have done, and who wants to know: under one lock, or that one would see the sum go back.
pub(crate) type Progress<'p> = Mutex<(u64, &'p mut (dyn FnMut(u64) + Send))>;

/// The progress of a part that counts from `reported` on; where that is `None`, from what it reports first.
pub(crate) fn of_part<'p>(progress: &'p Progress<'_>, mut reported: Option<u64>) -> impl FnMut(u64) + 'p {
    move |events| {
        let more = events - reported.replace(events).unwrap_or(events);
        let (done, progress) = &mut *progress.lock();
        *done += more;
        progress(*done);
    }
}
