//! Checkpoints at which a parallel region has just ended, and only the initial thread goes on.
//!
//! Workers may report only later that they have left the region. That is known by the region's end.

use std::collections::BTreeSet;

use omptrace_trace_format::event::Event;

/// Whether the events of a checkpoint say so: in order, each with whether its thread is no worker.
///
/// The last of them is the end of a region that the initial thread began. All other regions have ended. Nothing but these, the
/// threads' implicit tasks, the barriers that these are in, and ranges that the initial thread named is open.
pub(super) fn is_after<'e>(events: impl Iterator<Item = (bool, &'e Event<'static>)>) -> bool {
    let (mut open, mut is_last) = (BTreeSet::new(), false);
    let mut initial_tasks = 0;
    for (is_main, event) in events {
        is_last = false;
        match event {
            Event::Module(_) | Event::LockInit(_) | Event::ImplicitTaskEnd(_) => {}
            // Ranges go on behind it.
            Event::AnnotationBegin(_) if is_main => {}
            Event::ParallelBegin(e) if is_main => {
                open.insert(e.parallel_data.0);
            }
            Event::ParallelEnd(e) if is_main => {
                open.remove(&e.parallel_data.0);
                is_last = true;
            }
            Event::ImplicitTaskBegin(e) if !open.contains(&e.parallel_data.0) => {
                // The initial thread's own, once.
                initial_tasks += 1;
                if !is_main || initial_tasks > 1 {
                    return false;
                }
            }
            Event::ImplicitTaskBegin(_) => {}
            Event::SyncRegion(_) | Event::SyncRegionWait(_) if !is_main => {}
            _ => return false,
        }
    }
    is_last && open.is_empty()
}

#[cfg(test)]
mod tests {
    use ompt_sys as ompt;
    use omptrace_trace_format::event::{
        ImplicitTaskBegin, ImplicitTaskEnd, MutexAcquired, ParallelBegin, ParallelEnd, SyncRegion,
    };
    use omptrace_trace_format::field::{Address, Id};

    use super::*;

    const NOWHERE: Address = Address(0);
    const INITIAL: u64 = 0;
    const REGION: u64 = 7;

    type Seen = (bool, Event<'static>);

    fn begin(region: u64) -> Seen {
        let event = ParallelBegin {
            encountering_task_data: Id(1),
            exit_frame: NOWHERE,
            enter_frame: NOWHERE,
            exit_frame_flags: ompt::ompt_frame_flag_t(0),
            enter_frame_flags: ompt::ompt_frame_flag_t(0),
            parallel_data: Id(region),
            requested_parallelism: 2,
            flags: ompt::ompt_parallel_flag_t(0),
            codeptr_ra: NOWHERE,
        };
        (true, event.into())
    }

    fn end(region: u64) -> Seen {
        let event = ParallelEnd {
            parallel_data: Id(region),
            encountering_task_data: Id(1),
            flags: ompt::ompt_parallel_flag_t(0),
            codeptr_ra: NOWHERE,
        };
        (true, event.into())
    }

    fn task(is_main: bool, region: u64) -> Seen {
        let event = ImplicitTaskBegin {
            endpoint: ompt::ompt_scope_begin,
            parallel_data: Id(region),
            task_data: Id(1),
            actual_parallelism: 2,
            index: 0,
            flags: ompt::ompt_task_flag_t(0),
        };
        (is_main, event.into())
    }

    fn task_end() -> Seen {
        let event = ImplicitTaskEnd {
            endpoint: ompt::ompt_scope_end,
            parallel_data: Id(0),
            task_data: Id(1),
            actual_parallelism: 2,
            index: 0,
            flags: ompt::ompt_task_flag_t(0),
        };
        (true, event.into())
    }

    fn barrier(is_main: bool) -> Seen {
        let event = SyncRegion {
            endpoint: ompt::ompt_scope_begin,
            kind: ompt::ompt_sync_region_barrier_implicit_parallel,
            parallel_data: Id(REGION),
            task_data: Id(1),
            codeptr_ra: NOWHERE,
        };
        (is_main, event.into())
    }

    fn mutex() -> Seen {
        let event = MutexAcquired { kind: ompt::ompt_mutex_lock, wait_id: Address(1), codeptr_ra: NOWHERE };
        (true, event.into())
    }

    fn is_between(events: &[Seen]) -> bool {
        is_after(events.iter().map(|(is_main, event)| (*is_main, event)))
    }

    #[test]
    fn a_region_has_ended_though_workers_report_it_late() {
        let events = [
            task(true, INITIAL),
            begin(REGION),
            task(true, REGION),
            task(false, REGION),
            barrier(false),
            task_end(),
            end(REGION),
        ];
        assert!(is_between(&events));
        // What came last is something else.
        assert!(!is_between(&events[..6]));
        assert!(!is_between(&[]));
    }

    #[test]
    fn what_goes_on_is_seen() {
        let (begins, ends) = (begin(REGION), end(REGION));
        let cases = [
            vec![begin(REGION - 1), begins.clone(), ends.clone()],
            vec![begins.clone(), mutex(), ends.clone()],
            vec![begins.clone(), barrier(true), ends.clone()],
            vec![task(true, INITIAL), task(true, INITIAL), begins.clone(), ends.clone()],
            vec![task(false, INITIAL), begins, ends],
        ];
        for events in cases {
            assert!(!is_between(&events), "{events:?}");
        }
    }
}
