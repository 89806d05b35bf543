//! Who provides a device's entry points: one row each.
//!
//! The runtime's own tracing is the first. A vendor's library (CUPTI, rocprofiler-sdk) becomes a provider by a row here: a
//! lookup of its own, under the specification's names, for devices whose runtime traces nothing.

use ompt_sys::ompt_function_lookup_t;

use crate::entry_points::EntryPoints;

/// A row of the table.
struct Provider {
    name: &'static str,
    /// A device's lookup, from that which the runtime passed.
    lookup: fn(Option<ompt_function_lookup_t>) -> Option<ompt_function_lookup_t>,
}

/// In the order in which they are asked.
const PROVIDERS: &[Provider] = &[Provider {
    name: "runtime",
    lookup: |of_runtime| of_runtime,
}];

/// The entry points of the first provider that can start tracing, else those of the first, and its name.
///
/// # Safety
/// As [`EntryPoints::bind`].
pub(crate) unsafe fn bind(
    of_runtime: Option<ompt_function_lookup_t>,
) -> (&'static str, EntryPoints) {
    let bound = PROVIDERS.iter().map(|provider| {
        // SAFETY: by this function's contract; a provider's lookup answers by the same names.
        let entry_points = unsafe { EntryPoints::bind((provider.lookup)(of_runtime)) };
        (provider.name, entry_points)
    });
    // Of equals the first.
    bound
        .min_by_key(|(_, offered)| offered.start_trace.is_none())
        .unwrap_or_default()
}
