//! The generations of the tools interface that the tracer serves: how each is distinguished, and what is registered.
//!
//! Registering by another generation's numbers, or with its signatures, crashes the program. So the generation must be known
//! before anything else is done. The arguments of `initialize` show it: each generation passes the address of a member of
//! the structure that `ompt_start_tool` returned, each of another one.
//!
//! | generation | second argument | third argument |
//! | --- | --- | --- |
//! | OpenMP 5.0 and later | a device's number | the address of `tool_data` |
//! | TR6, TR7 | the address of `tool_data` | none |
//! | TR4 | the address of the structure | none |
//!
//! A callback that only TR7 has distinguishes TR7 from TR6. The number of `idle` distinguishes early runtimes of TR4 from
//! later ones. A runtime answers the registration of a number that it does not have with an error.

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
    /// Samples, which need the stacks of regions' creators.
    pub(crate) samples: bool,
    /// The stacks of those who create tasks.
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
    /// TR4 as the first runtimes have it, of the spring of 2017: other numbers of `idle`, of states and of types of tasks.
    EarlyTr4,
}

impl Dialect {
    /// The generation whose runtime calls `initialize` with these arguments behind the first; `result` is what
    /// `ompt_start_tool` returned.
    ///
    /// `None` for a generation that the tracer does not know.
    pub(crate) fn of_initialize(
        result: &ompt_start_tool_result_t,
        second: usize,
        third: usize,
    ) -> Option<Dialect> {
        let structure = std::ptr::from_ref(result) as usize;
        let tool_data = &raw const result.tool_data as usize;
        // The second argument first: where there is no third, its register holds anything.
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

    /// Returns it, or the generation beside it that starts tools in the same way. The runtime is asked by registrations,
    /// which are taken back.
    ///
    /// # Safety
    /// `set_callback` is the entry point of a runtime of this generation, in `initialize`.
    pub(crate) unsafe fn refined(self, set_callback: ompt_set_callback_t) -> Dialect {
        let has = |number: u32| {
            // SAFETY: by this function's contract; without a function, the call only asks.
            let result = unsafe { set_callback(ompt_callbacks_t(number), None) };
            result.0 != tr6::ompt_set_error.0
        };
        match self {
            Dialect::Tr6 if has(tr7::ompt_callback_dispatch.0) => Dialect::Tr7,
            Dialect::Tr4 if !has(tr4::ompt_callback_idle.0) => Dialect::EarlyTr4,
            same => same,
        }
    }

    /// Its name in the metadata.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::V5 => "5.x",
            Dialect::Tr7 => "TR7",
            Dialect::Tr6 => "TR6",
            Dialect::Tr4 | Dialect::EarlyTr4 => "TR4",
        }
    }

    /// The callbacks that it has, for a runtime of this `version`; those that record what else is `wanted`.
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

/// All callbacks, whichever generation has them.
pub(crate) fn every_callback() -> impl Iterator<Item = &'static Callback> {
    CALLBACKS.iter().chain([&IDLE])
}

/// What a list of events can name: each callback with its group, and the states of threads.
pub(crate) fn recordable() -> Vec<Recordable> {
    let callbacks = every_callback().map(|callback| (callback.name, callback.group));
    callbacks.chain([(STATE, STATE)]).collect()
}

/// The callbacks of a draft, by its names and numbers. Target regions and devices are left out: no runtime of these
/// generations reports them, and the drafts' arguments are not today's.
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
        // The caller's register still holds what a wrapper of another generation left there.
        assert_eq!(of(tool_data, tool_data), Some(Dialect::Tr6));
        assert_eq!(of(structure, tool_data), Some(Dialect::Tr4));
        assert_eq!(of(0, 0), None);
    }

    #[test]
    fn drafts_have_each_number_once_and_each_function_has_its_callback() {
        const OF_THE_HOST: usize = 23;

        // TR7 has `reduction` and `dispatch` in the place of `idle`.
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
