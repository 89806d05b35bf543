//! What a thread does on the job's critical path, in sums: a path is as long as the job, and its spans may be many.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::Ns;

use crate::model::cause::Cause;
use crate::model::sum::Sum as _;

/// The sums of a thread. `S`: a place.
#[derive(Debug)]
pub(super) struct PathSums<S> {
    /// When the thread is on the path, in chronological order.
    times: Vec<(Ns, Ns)>,
    pub(super) sums: FastMap<(Cause, Option<S>), u64>,
    /// The sums of serial code that has not ended yet.
    serial: Vec<(Cause, u64)>,
}

impl<S: Copy + Eq + std::hash::Hash> PathSums<S> {
    pub(super) fn of(times: Vec<(Ns, Ns)>) -> PathSums<S> {
        PathSums { times, sums: FastMap::default(), serial: Vec::new() }
    }

    /// Serial code ends here.
    pub(super) fn end_serial(&mut self, site: Option<S>) {
        for (cause, ns) in self.serial.drain(..) {
            self.sums.entry((cause, site)).or_default().grow_by(ns);
        }
    }

    /// Adds a state of the thread; without a site, it is in serial code.
    pub(super) fn add(&mut self, (begin, end): (Ns, Ns), cause: Cause, site: Option<S>) {
        let first = self.times.partition_point(|(_, until)| *until <= begin);
        let inside = self.times[first..].iter().take_while(|(from, _)| *from < end);
        let ns: u64 = inside.map(|(from, until)| begin.max(*from).abs_diff(end.min(*until))).sum();
        if ns == 0 {
            return;
        }
        if site.is_some() {
            self.sums.entry((cause, site)).or_default().grow_by(ns);
            return;
        }
        match self.serial.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => sum.grow_by(ns),
            None => self.serial.push((cause, ns)),
        }
    }
}
