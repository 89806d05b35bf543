//! The endpoint that an event reports.

use ompt_sys as ompt;
use omptrace_trace_format::event::Event;

/// The endpoint, for events that report the start and the end of a thread's region separately; `None` for other events.
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
