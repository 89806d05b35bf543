//! Callbacks that are not registered, because if they were, the runtime would crash before it calls the tool. If the
//! user names one explicitly, it is registered. The trace states which callbacks are missing, and why.

use std::collections::BTreeMap;

use omptrace_runtimes::Fault;

/// Faults, the callback affected by each, and the reason stored in the trace.
const CALLBACKS: &[(Fault, &str, &str)] = &[(
    // `__ompt_error` computes the message's length before it calls the tool: `strlen(NULL)`.
    Fault::WantsMessageOfError,
    "error",
    "not recorded, because this OpenMP runtime crashes at an error directive without a message clause if a tool requests this callback; to record this callback anyway, use --events default,error",
)];

/// The callbacks that should not be registered for a runtime with this `version`, unless the user insists on them; with
/// the reason.
pub(crate) fn callbacks(version: &str, insisted: &[&str]) -> BTreeMap<String, String> {
    let withheld =
        CALLBACKS.iter().filter(|(fault, callback, _)| fault.is_of(version) && !insisted.contains(callback));
    withheld.map(|(_, callback, why)| ((*callback).to_owned(), (*why).to_owned())).collect()
}
