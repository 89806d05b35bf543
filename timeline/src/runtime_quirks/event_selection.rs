//! The user's choice of events to record: where two callbacks report the ends of one thing, it shows if both were wanted.

use omptrace_trace_format::metadata::Metadata;

/// The setting that lists the callbacks.
const EVENTS: &str = "OMPTRACE_EVENTS";

/// Turns a row `name: callback callback => "what is not shown without one of them";` into a field of [`Selection`].
macro_rules! selection {
    ($($(#[$doc:meta])* $name:ident: $($callback:ident)* => $what:literal;)*) => {
        /// The things that can be shown, as far as the selection goes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Selection { $($(#[$doc])* pub(crate) $name: bool,)* }

        impl Selection {
            /// The choice of the settings in `metadata`; all where there are none.
            pub(crate) fn of(metadata: &Metadata) -> Selection {
                let is_chosen = |callback: &str| is_chosen(metadata, callback);
                Selection { $($name: [$(stringify!($callback)),*].into_iter().all(is_chosen),)* }
            }
        }

        /// The callbacks that report the ends of one thing, and what is not shown where only some are there.
        const ROWS: &[(&[&str], &str)] = &[$((&[$(stringify!($callback)),*], $what)),*];
    };
}

fn is_chosen(metadata: &Metadata, callback: &str) -> bool {
    let events = metadata.settings.get(EVENTS);
    events.is_none_or(|events| events.split(',').any(|event| event == callback))
}

/// Words about each thing of which the settings in `metadata` chose one end and not the other.
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
    /// Parallel regions and the teams that they have.
    regions: parallel_begin parallel_end => "parallel regions";
    /// How tasks that run came to be.
    tasks: task_create task_schedule => "the creations of executed tasks";
    /// Implicit and initial tasks; where they are not, an unknown task is one of them.
    implicit_tasks: implicit_task => "implicit tasks";
    /// Waits for mutexes.
    mutex_waits: mutex_acquire mutex_acquired => "waits for mutexes";
    /// Holds of mutexes.
    mutex_holds: mutex_acquired mutex_released => "intervals in which mutexes are held";
}
