//! Which end of a region an event reports.

use ompt_sys as ompt;
use omptrace_trace_format::event::Event;

/// The endpoint of an event that reports both ends of a region of a thread's, each by its own event; `None` for other events.
pub(crate) fn endpoint(event: &Event<'_>) -> Option<ompt::ompt_scope_endpoint_t> {
    match event {
        Event::SyncRegionWait(e) => Some(e.endpoint),
        Event::SyncRegion(e) => Some(e.endpoint),
        Event::Work(e) => Some(e.endpoint),
        Event::Masked(e) => Some(e.endpoint),
        Event::Reduction(e) => Some(e.endpoint),
        Event::Idle(e) => Some(e.endpoint),
        Event::ExternalWait(e) => Some(e.endpoint),
        _ => None,
    }
}
