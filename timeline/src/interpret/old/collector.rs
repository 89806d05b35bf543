//! Events that runtimes with the Collector API report repeatedly, or only at the end.

use omptrace_trace_format::reader::{Reader, Record};

use crate::interpret::*;

/// Repeated starts of parallel regions, by thread and region.
pub(crate) type RepeatedForks = FastMap<(usize, u64), u32>;

/// The forks of a thread that do not start a region. OpenUH reports FORK again if it adds threads to the team. Nested
/// regions have the same id, so only the number of ends tells how many of the forks are regions.
pub(crate) fn repeated_forks(reader: &Reader) -> RepeatedForks {
    let mut repeated = RepeatedForks::default();
    if !Dialect::of(reader.metadata()).joins_without_region {
        return repeated;
    }
    for (thread, stream) in reader.streams().iter().enumerate() {
        let mut counts: FastMap<u64, (u32, u32)> = FastMap::default();
        for Record { event, .. } in reader.events(stream) {
            match event {
                Event::ParallelBegin(e) => counts.entry(e.parallel_data.0).or_default().0 += 1,
                Event::ParallelEnd(e) => counts.entry(e.parallel_data.0).or_default().1 += 1,
                _ => {}
            }
        }
        for (region, (forks, joins)) in counts {
            // A region that is open at the end of the trace has one fork, too.
            let more = forks.saturating_sub(joins.max(1));
            if more > 0 {
                repeated.insert((thread, region), more);
            }
        }
    }
    repeated
}

impl Interpreter<'_, '_> {
    /// The start of the thread's current region is reported again.
    pub(crate) fn is_reported_again(&mut self, thread: usize, time: Ns, region: u64) -> bool {
        let top = self.threads[thread].stack().last();
        if !top.is_some_and(|top| top.construct == Construct::Parallel && top.key == region) {
            return false;
        }
        match self.repeated_forks.get_mut(&(thread, region)) {
            Some(more @ 1..) => {
                *more -= 1;
                self.repair(thread, time, Cause::ReportedAgain);
                true
            }
            _ => false,
        }
    }

    /// Starts or ends something that does not nest on a thread: idle time, a wait, or an ordered region of a parallel
    /// region.
    pub(in crate::interpret) fn flat_scope(
        &mut self,
        thread: usize,
        time: Ns,
        scope: Scope,
        arguments: &[Argument<'_>],
    ) {
        let stack = self.threads[thread].stack().iter().rev();
        let mut inside = stack.take_while(|frame| frame.construct != Construct::Parallel);
        let is_open = inside.any(|frame| frame.construct == scope.construct);
        let begins = scope.endpoint == ompt::ompt_scope_begin;
        if !self.dialect.joins_without_region || is_open != begins {
            self.scope(thread, time, scope, arguments);
        } else if begins {
            self.repair(thread, time, Cause::ReportedAgain);
        } else {
            self.repair(thread, time, Cause::EndAlone);
        }
    }
}
