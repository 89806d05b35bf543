//! The user's choice of events to record. If two callbacks report the two ends of something, it is shown only if both
//! were selected.

use omptrace_trace_format::metadata::Metadata;

/// The setting that lists the callbacks.
const EVENTS: &str = "OMPTRACE_EVENTS";

/// Turns a row `name: callback callback => "what is not shown without one of them";` into a field of [`Selection`].
macro_rules! selection {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)* => $what:literal;)*) => {
        /// What can be shown with this selection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Selection { $($(#[$doc])* pub(crate) $name: bool,)* }

        impl Selection {
            /// The selection in the settings of `metadata`; everything if there are no settings.
            pub(crate) fn of(metadata: &Metadata) -> Selection {
                let is_chosen = |callback: &str| is_chosen(metadata, callback);
                Selection { $($name: [$(stringify!($callback)),*].into_iter().all(is_chosen),)* }
            }
        }

        /// The callbacks that report the two ends of something, and what is not shown if only some of them are
        /// selected.
        const ROWS: &[(&[&str], &str)] = &[$((&[$(stringify!($callback)),*], $what)),*];
    };
}

fn is_chosen(metadata: &Metadata, callback: &str) -> bool {
    let events = metadata.settings.get(EVENTS);
    events.is_none_or(|events| events.split(',').any(|event| event == callback))
}

/// A text for each pair of which the settings in `metadata` select only one end.
pub fn halves(metadata: &Metadata) -> Vec<String> {
    let half = |&(callbacks, what): &(&[&str], &str)| {
        let is_chosen = |callback: &&str| is_chosen(metadata, callback);
        let (chosen, left_out): (Vec<&str>, Vec<&str>) = callbacks.iter().copied().partition(is_chosen);
        let (chosen, left_out) = (chosen.first()?, left_out.first()?);
        Some(format!("{chosen} was recorded without {left_out}, so {what} are not shown"))
    };
    ROWS.iter().filter_map(half).collect()
}

selection! {
    /// Parallel regions and their teams.
    regions: parallel_begin parallel_end => "parallel regions";
    /// The creations of executed tasks.
    tasks: task_create task_schedule => "the creations of executed tasks";
    /// Implicit and initial tasks; if these are not reported, an unknown task is one of them.
    implicit_tasks: implicit_task => "implicit tasks";
    /// Waits for mutexes.
    mutex_waits: mutex_acquire mutex_acquired => "waits for mutexes";
    /// Holds of mutexes.
    mutex_holds: mutex_acquired mutex_released => "intervals in which mutexes are held";
}
