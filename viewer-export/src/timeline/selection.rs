//! What the user chose to record: where two callbacks tell the ends of one thing, it shows if both were wanted.

use omptrace_trace_format::metadata::Metadata;

/// The setting that lists the callbacks.
const EVENTS: &str = "OMPTRACE_EVENTS";

/// Turns a row `name: callback callback;` into a field of [`Selection`].
macro_rules! selection {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)*;)*) => {
        /// What can be shown, as far as the selection goes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Selection { $($(#[$doc])* pub(crate) $name: bool,)* }

        impl Selection {
            /// What the settings in `metadata` chose; all where there are none.
            pub(crate) fn of(metadata: &Metadata) -> Selection {
                let events = metadata.settings.get(EVENTS);
                let chosen = |callback: &str| {
                    events.is_none_or(|events| events.split(',').any(|event| event == callback))
                };
                Selection { $($name: [$(stringify!($callback)),*].into_iter().all(chosen),)* }
            }
        }
    };
}

selection! {
    /// Parallel regions and the teams that they have.
    regions: parallel_begin parallel_end;
    /// How tasks that run came to be.
    tasks: task_create task_schedule;
    /// Implicit and initial tasks; where they are not, an unknown task is one of them.
    implicit_tasks: implicit_task;
    /// Waits for mutexes.
    mutex_waits: mutex_acquire mutex_acquired;
    /// Holds of mutexes.
    mutex_holds: mutex_acquired mutex_released;
}
