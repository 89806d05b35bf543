//! Callbacks that are not registered: with them the runtime does what crashes, before it calls the tool. A user who names
//! one gets it all the same. The trace says which are missing, and why.

use std::collections::BTreeMap;

use omptrace_runtimes::Fault;

/// Faults, the callback that each is about, and the reason in the trace.
const CALLBACKS: &[(Fault, &str, &str)] = &[(
    // `__ompt_error` takes the message's length before it calls the tool: `strlen(NULL)`.
    Fault::WantsMessageOfError,
    "error",
    "not recorded: this OpenMP runtime crashes at an error directive without a message if a tool requests this callback; to record it anyway, use --events default,error",
)];

/// The callbacks that a runtime of this `version` must not be asked for, unless the user insists on them; and why.
pub(crate) fn callbacks(version: &str, insisted: &[&str]) -> BTreeMap<String, String> {
    let withheld =
        CALLBACKS.iter().filter(|(fault, callback, _)| fault.is_of(version) && !insisted.contains(callback));
    withheld.map(|(_, callback, why)| ((*callback).to_owned(), (*why).to_owned())).collect()
}
