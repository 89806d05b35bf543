//! The supported generations of the tools interface: OpenMP 5.x and its drafts TR7, TR6 and TR4. All start a tool with
//! `ompt_start_tool`; their differences are implemented only here.
//!
//! The numbers are copied from the specifications, independently of the tracer's, which are checked against them.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU8, Ordering};

use ompt_sys::*;
use serde::{Deserialize, Serialize};

use super::argument::Line;

/// A generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// OpenMP 5.0 to 6.0.
    #[default]
    #[serde(rename = "5.x")]
    V5 = 0,
    /// A draft of November 2017.
    #[serde(rename = "TR6")]
    Tr6 = 1,
    /// A draft of November 2016.
    #[serde(rename = "TR4")]
    Tr4 = 2,
    /// A fictitious generation: OpenMP 5.x with a different third argument of `initialize`.
    #[serde(rename = "unknown")]
    Unknown = 3,
    /// The draft of July 2018, as implemented by LLVM's development version from September to December of that year.
    #[serde(rename = "TR7")]
    Tr7 = 4,
    /// TR4 as in the branch `tr4-stable` of the OMPT group, of April 2017.
    #[serde(rename = "early TR4")]
    EarlyTr4 = 5,
}

/// The script's choice; set before a tool is searched.
static CURRENT: AtomicU8 = AtomicU8::new(Dialect::V5 as u8);

impl Dialect {
    /// The generation used in this process.
    pub(super) fn current() -> Dialect {
        match CURRENT.load(Ordering::Relaxed) {
            1 => Dialect::Tr6,
            2 => Dialect::Tr4,
            3 => Dialect::Unknown,
            4 => Dialect::Tr7,
            5 => Dialect::EarlyTr4,
            _ => Dialect::V5,
        }
    }

    /// Makes this process use the generation.
    pub(super) fn speak(self) {
        CURRENT.store(self as u8, Ordering::Relaxed);
    }

    /// The number with which a tool registers the callback with this name (without `ompt_callback_`).
    pub(super) fn number(self, name: &str) -> Option<u32> {
        const LAST_OF_DRAFTS: u32 = 30;
        const LAST_OF_TR7: u32 = 32;
        /// The two callbacks that TR4 does not have yet.
        const DEVICE_LOAD: u32 = 14;
        const DEVICE_UNLOAD: u32 = 15;

        let mut of_today = ompt_callbacks_t::VALUES.iter().map(|(_, number)| *number);
        let today = of_today.find(|&number| ompt_callbacks_t(number).name() == Some(name));
        match (self, today) {
            (Dialect::V5 | Dialect::Unknown, today) => today,
            (Dialect::Tr7, None) => None,
            (Dialect::Tr6, None) => (name == "idle").then_some(31),
            (Dialect::Tr4, None) => (name == "idle").then_some(29),
            (Dialect::EarlyTr4, None) => (name == "idle").then_some(13),
            (Dialect::Tr7, Some(number)) => (number <= LAST_OF_TR7).then_some(number),
            (_, Some(number)) if number > LAST_OF_DRAFTS => None,
            (Dialect::Tr6, Some(number)) => Some(number),
            // No callbacks for target regions and devices.
            (Dialect::EarlyTr4, Some(8..=10 | 12..=15 | 22)) => None,
            (Dialect::Tr4, Some(DEVICE_LOAD | DEVICE_UNLOAD)) => None,
            (Dialect::Tr4 | Dialect::EarlyTr4, Some(number)) if number > DEVICE_UNLOAD => Some(number - 2),
            (Dialect::Tr4 | Dialect::EarlyTr4, Some(number)) => Some(number),
        }
    }

    /// The default result of `ompt_set_callback`, and the lowest result that promises calls: `always` and `sometimes`.
    pub(super) fn set_results(self) -> (u32, u32) {
        match self {
            Dialect::V5 | Dialect::Unknown => (ompt_set_always.0, ompt_set_sometimes.0),
            _ => (4, 2),
        }
    }

    /// Whether the lookup function finds the entry point.
    pub(super) fn has_entry_point(self, name: &CStr) -> bool {
        let later: &[&CStr] = match self {
            Dialect::V5 | Dialect::Unknown | Dialect::Tr7 => &[],
            Dialect::Tr6 => &[c"ompt_finalize_tool", c"ompt_get_task_memory"],
            Dialect::Tr4 | Dialect::EarlyTr4 => {
                &[c"ompt_finalize_tool", c"ompt_get_task_memory", c"ompt_get_num_procs"]
            }
        };
        !later.contains(&name)
    }

    /// Calls a tool's `initialize` with the arguments of this generation.
    ///
    /// # Safety
    /// `initialize` belongs to `result`, which was returned by `ompt_start_tool`.
    pub(super) unsafe fn initialize(
        self,
        initialize: ompt_initialize_t,
        lookup: ompt_function_lookup_t,
        result: *mut ompt_start_tool_result_t,
    ) -> c_int {
        const INITIAL_DEVICE: c_int = 0;

        // SAFETY: a tool that supports several generations has one function, with any of their types; the arguments are
        // those of this generation.
        unsafe {
            match self {
                Dialect::V5 => initialize(lookup, INITIAL_DEVICE, &raw mut (*result).tool_data),
                Dialect::Unknown => initialize(lookup, INITIAL_DEVICE, std::ptr::null_mut()),
                Dialect::Tr6 | Dialect::Tr7 => {
                    let initialize: tr6::ompt_initialize_t = transmute(initialize);
                    initialize(lookup, &raw mut (*result).tool_data)
                }
                Dialect::Tr4 | Dialect::EarlyTr4 => {
                    let initialize: tr4::ompt_initialize_t = transmute(initialize);
                    initialize(lookup, result.cast())
                }
            }
        }
    }

    /// Calls a tool's `finalize` with the argument of this generation.
    ///
    /// # Safety
    /// `finalize` belongs to `result`, which was returned by `ompt_start_tool`.
    pub(super) unsafe fn finalize(self, finalize: ompt_finalize_t, result: *mut ompt_start_tool_result_t) {
        // SAFETY: as in `initialize`.
        unsafe {
            match self {
                Dialect::V5 | Dialect::Unknown | Dialect::Tr6 | Dialect::Tr7 => {
                    finalize(&raw mut (*result).tool_data)
                }
                Dialect::Tr4 | Dialect::EarlyTr4 => {
                    let finalize =
                        transmute::<*const c_void, tr4::ompt_finalize_t>(finalize as *const c_void);
                    finalize(result.cast());
                }
            }
        }
    }

    /// The number in OpenMP 5.x for `number` of the C type `type_name`. Bit 31 is set if this generation does not have
    /// this number.
    pub(super) fn number_of_today(self, type_name: &str, number: u32) -> u32 {
        const UNKNOWN: u32 = 1 << 31;

        let numbers: &[(u32, u32)] = match type_name {
            _ if !self.is_draft() => return number,
            // Initial, implicit, explicit, target.
            "ompt_task_flag_t" if self == Dialect::EarlyTr4 => &[(1, 1), (2, 2), (3, 4), (4, 8)],
            "ompt_mutex_t" if self == Dialect::Tr7 => &[(1, 1), (2, 3), (3, 5), (4, 6), (5, 7)],
            "ompt_sync_region_t" | "ompt_dependence_type_t" if self == Dialect::Tr7 => {
                return number;
            }
            // Barrier, taskwait, taskgroup.
            "ompt_sync_region_t" => &[(1, 1), (2, 5), (3, 6)],
            // Lock, nest lock, critical, atomic, ordered.
            "ompt_mutex_t" => &[(0x11, 1), (0x12, 3), (0x13, 5), (0x14, 6), (0x20, 7)],
            // Complete, yield, cancel, others.
            "ompt_task_status_t" => &[(1, 1), (2, 2), (3, 3), (4, 7)],
            // Out, in, inout.
            "ompt_dependence_type_t" => &[(1, 2), (2, 1), (3, 3)],
            _ => return number,
        };
        numbers.iter().find(|(draft, _)| *draft == number).map_or(number | UNKNOWN, |(_, today)| *today)
    }

    fn is_draft(self) -> bool {
        !matches!(self, Dialect::V5 | Dialect::Unknown)
    }

    /// Removes from a call's line what this generation does not pass. The value is still in memory or in a register,
    /// where a tool must not read it.
    pub(super) fn forget_what_is_not_passed(self, line: &mut Line) {
        if !self.is_draft() {
            return;
        }
        let flags_of_implicit_task = (line["event"] == "implicit_task").then_some("flags");
        let flags = ["exit_frame_flags", "enter_frame_flags"];
        for name in flags.into_iter().chain(flags_of_implicit_task) {
            if line.contains_key(name) {
                line.insert(name.into(), "0x0".into());
            }
        }
    }
}
