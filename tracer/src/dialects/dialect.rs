//! The generations of the tools interface that the tracer supports: how they are distinguished, and which callbacks are
//! registered.
//!
//! Registering callbacks with the numbers or signatures of another generation crashes the program, so the generation
//! must be determined first. The arguments of `initialize` show it: generations pass addresses of different members of
//! the structure that `ompt_start_tool` returned.
//!
//! | generation | second argument | third argument |
//! | --- | --- | --- |
//! | OpenMP 5.0 and later | a device's number | the address of `tool_data` |
//! | TR6, TR7 | the address of `tool_data` | none |
//! | TR4 | the address of the structure | none |
//!
//! TR6 and TR7 are distinguished by a callback that only TR7 has, and early TR4 runtimes from later ones by the number
//! of `idle`: registering an unknown number returns an error.

use ompt_sys::tr6;
use ompt_sys::tr7;
use ompt_sys::{ompt_callbacks_t, ompt_set_callback_t, ompt_set_result_t, ompt_start_tool_result_t, tr4};
use omptrace_runtimes::Fault;

use crate::callbacks::CALLBACKS;
use crate::config::{Recordable, STATE};
use crate::counters;
use crate::dialects::join_barrier_callbacks;
use crate::dialects::old::drafts::{IDLE, WITH_OTHER_ARGUMENTS, name_of_today};
use crate::dialects::thread_state;
use crate::recorder::callback::Callback;
use crate::samples;

/// What is recorded besides callbacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// The states of threads.
    pub(crate) states: bool,
    /// Samples, which need the call stacks that create parallel regions.
    pub(crate) samples: bool,
    /// The call stacks that create tasks.
    pub(crate) task_stacks: bool,
    /// Counters of threads.
    pub(crate) counters: bool,
}

/// A generation of the tools interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenMP 5.0 and later.
    V5,
    /// The draft of OpenMP 5.0 called TR7.
    Tr7,
    /// The draft of OpenMP 5.0 called TR6.
    Tr6,
    /// The draft of OpenMP 5.0 called TR4.
    Tr4,
    /// TR4 as in the first runtimes, of spring 2017: with other numbers for `idle`, for states and for task types.
    EarlyTr4,
}

impl Dialect {
    /// The generation whose runtime calls `initialize` with these arguments after the first; `result` is what
    /// `ompt_start_tool` returned. `None` for a generation that the tracer does not support.
    pub(crate) fn of_initialize(
        result: &ompt_start_tool_result_t,
        second: usize,
        third: usize,
    ) -> Option<Dialect> {
        let structure = std::ptr::from_ref(result) as usize;
        let tool_data = &raw const result.tool_data as usize;
        // The second argument is checked first: if there is no third, its register holds anything.
        if second == tool_data {
            Some(Dialect::Tr6)
        } else if second == structure {
            Some(Dialect::Tr4)
        } else if third == tool_data {
            Some(Dialect::V5)
        } else {
            None
        }
    }

    /// Distinguishes generations that start tools in the same way. Queries the runtime by registering callbacks, which
    /// are removed again.
    ///
    /// # Safety
    /// `set_callback` is the entry point of a runtime of this generation, in `initialize`.
    pub(crate) unsafe fn refined(self, set_callback: ompt_set_callback_t) -> Dialect {
        let has = |number: u32| {
            // SAFETY: by this function's contract; a null function pointer registers nothing.
            let result = unsafe { set_callback(ompt_callbacks_t(number), None) };
            result.0 != tr6::ompt_set_error.0
        };
        match self {
            Dialect::Tr6 if has(tr7::ompt_callback_dispatch.0) => Dialect::Tr7,
            Dialect::Tr4 if !has(tr4::ompt_callback_idle.0) => Dialect::EarlyTr4,
            same => same,
        }
    }

    /// The generation's name in the metadata.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::V5 => "5.x",
            Dialect::Tr7 => "TR7",
            Dialect::Tr6 => "TR6",
            Dialect::Tr4 | Dialect::EarlyTr4 => "TR4",
        }
    }

    /// The generation's callbacks for a runtime with this `version`; includes those that record what else is `wanted`.
    pub(crate) fn callbacks(self, version: &str, wanted: Wanted) -> Vec<Callback> {
        let callbacks = match self {
            Dialect::V5 => CALLBACKS.to_vec(),
            Dialect::Tr7 => of_draft(tr7::ompt_callbacks_t::VALUES),
            Dialect::Tr6 => of_draft(tr6::ompt_callbacks_t::VALUES),
            Dialect::Tr4 => of_draft(tr4::ompt_callbacks_t::VALUES),
            Dialect::EarlyTr4 => {
                let mut callbacks = of_draft(tr4::ompt_callbacks_t::VALUES);
                let idle = callbacks.iter_mut().find(|callback| callback.name == "idle");
                if let Some(idle) = idle {
                    idle.number = ompt_callbacks_t(tr4::ompt_callback_idle_of_early_2017.0);
                }
                callbacks
            }
        };
        let own: &[_] = match self {
            Dialect::V5 if Fault::WantsTaskwaitDataEmpty.is_of(version) => join_barrier_callbacks::CALLBACKS,
            Dialect::V5 => &[],
            _ => WITH_OTHER_ARGUMENTS,
        };
        let of_states = match wanted.states {
            true => thread_state::CALLBACKS,
            false => &[],
        };
        let of_samples = match wanted.samples {
            true => samples::OF_REGIONS,
            false => &[],
        };
        let of_task_stacks = match wanted.task_stacks {
            true => samples::OF_TASKS,
            false => &[],
        };
        let mut callbacks: Vec<Callback> = callbacks
            .into_iter()
            .map(|callback| {
                let of_samples = of_samples.iter().chain(of_task_stacks);
                let mut functions = own.iter().chain(of_states).chain(of_samples);
                let function = functions.find(|(name, _)| *name == callback.name);
                Callback {
                    function: function.map_or(callback.function, |(_, function)| function.0),
                    ..callback
                }
            })
            .collect();
        if wanted.counters {
            counters::put_in_front(&mut callbacks);
        }
        callbacks
    }

    /// The name of `result`, which `ompt_set_callback` returned.
    pub(crate) fn set_result(self, result: ompt_set_result_t) -> Option<&'static str> {
        match self {
            Dialect::V5 => result.name(),
            _ => tr6::ompt_set_result_t(result.0).name(),
        }
    }
}

/// All callbacks of all generations.
pub(crate) fn every_callback() -> impl Iterator<Item = &'static Callback> {
    CALLBACKS.iter().chain([&IDLE])
}

/// Everything that a list of events can name: each callback with its group, and the states of threads.
pub(crate) fn recordable() -> Vec<Recordable> {
    let callbacks = every_callback().map(|callback| (callback.name, callback.group));
    callbacks.chain([(STATE, STATE)]).collect()
}

/// The callbacks of a draft, given its names and numbers. Callbacks for target regions and devices are left out: no
/// runtime of these generations reports them, and their arguments differ from today's.
fn of_draft(numbers: &[(&'static str, u32)]) -> Vec<Callback> {
    let is_served = |callback: &&Callback| !["target", "device"].contains(&callback.group);
    let registered = |&(name, number): &(&'static str, u32)| {
        let name = name_of_today(name.trim_start_matches("ompt_callback_"));
        let callback = every_callback().filter(is_served).find(|callback| callback.name == name)?;
        Some(Callback { number: ompt_callbacks_t(number), ..*callback })
    };
    numbers.iter().filter_map(registered).collect()
}

#[cfg(test)]
mod tests {
    use ompt_sys::ompt_data_t;

    use super::*;
    use crate::recorder::callback::Function;

    fn result() -> ompt_start_tool_result_t {
        ompt_start_tool_result_t { initialize: None, finalize: None, tool_data: ompt_data_t { value: 0 } }
    }

    #[test]
    fn generations_are_distinguished_by_where_an_address_is_passed() {
        let result = result();
        let structure = &raw const result as usize;
        let tool_data = &raw const result.tool_data as usize;
        let of = |second, third| Dialect::of_initialize(&result, second, third);
        assert_eq!(of(0, tool_data), Some(Dialect::V5));
        assert_eq!(of(tool_data, 0), Some(Dialect::Tr6));
        assert_eq!(of(structure, 0), Some(Dialect::Tr4));
        // The caller's register still holds the value that a wrapper of another generation left there.
        assert_eq!(of(tool_data, tool_data), Some(Dialect::Tr6));
        assert_eq!(of(structure, tool_data), Some(Dialect::Tr4));
        assert_eq!(of(0, 0), None);
    }

    #[test]
    fn drafts_have_each_number_once_and_each_function_has_its_callback() {
        const OF_THE_HOST: usize = 23;

        // TR7 has `reduction` and `dispatch` instead of `idle`.
        let of_tr7 = OF_THE_HOST + 1;
        for (dialect, count, idle) in [
            (Dialect::Tr7, of_tr7, None),
            (Dialect::Tr6, OF_THE_HOST, Some(31)),
            (Dialect::Tr4, OF_THE_HOST, Some(29)),
            (Dialect::EarlyTr4, OF_THE_HOST, Some(13)),
        ] {
            let callbacks = dialect.callbacks("", Wanted::default());
            assert_eq!(callbacks.len(), count);
            let mut numbers: Vec<u32> = callbacks.iter().map(|callback| callback.number.0).collect();
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|two| two[0] < two[1]));
            let found = callbacks.iter().find(|callback| callback.name == "idle");
            assert_eq!(found.map(|callback| callback.number.0), idle);
            let exists = |(name, _): &(&str, Function)| callbacks.iter().any(|c| c.name == *name);
            assert!(WITH_OTHER_ARGUMENTS.iter().all(exists));
        }
    }
}
