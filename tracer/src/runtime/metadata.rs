//! Metadata about the runtime.

use std::collections::BTreeMap;

use omptrace_trace_format::metadata::{Clock, Metadata, OfLibgomp, Processors, Registration, Runtime};

use crate::runtime::lookup::Lookup;

/// The second metadata block, written before the first event: the runtime, the registered callbacks, and the clock.
pub(crate) fn runtime(runtime: Runtime, callbacks: BTreeMap<String, Registration>, clock: Clock) -> Metadata {
    Metadata { runtime: Some(runtime), callbacks, clock: Some(clock), ..Metadata::default() }
}

/// The third metadata block: facts that runtimes know only on a thread that has begun.
pub(crate) fn processors(lookup: Lookup, of_libgomp: Option<OfLibgomp>) -> Metadata {
    let processors = Processors {
        max_threads: of_libgomp.as_ref().and_then(|_| lookup.max_threads()),
        of_libgomp,
        num_procs: lookup.num_procs(),
        num_devices: lookup.num_devices(),
        places: lookup.places(),
    };
    Metadata { processors: Some(processors), ..Metadata::default() }
}
