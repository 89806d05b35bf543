//! The next OMPT tool: a runtime supports one tool, which is the tracer, and the tracer forwards to another.
//!
//! The second tool runs as if it were the only one. It has its own data words, callbacks and results of registrations,
//! and gets entry points that return its words. The registered functions then call both tools ([`callbacks`]). Without
//! a second tool, none of this is registered, so the hot path is not affected.
//!
//! ```text
//! runtime -- callback --> both: splits each data word --> the tracer's function
//!                                                     --> the second tool's function
//! second tool -- entry point --> lookup: its own callbacks and data words --> runtime
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | starts the second tool |
//! | [`active_tool`] | the second tool, and its end |
//! | [`next_tool`] | finds the second tool |
//! | [`callbacks`] | the functions that call both tools |
//! | [`data_words`] | two data words for each object for which the runtime has one |
//! | [`lookup`] | the entry points for the second tool |
//!
//! There are two differences from running alone. Only the tracer gets a device's lookup function, because a device's
//! trace buffers have one owner. And the drafts of OpenMP 5.0 and older interfaces are not forwarded.

mod active_tool;
mod callbacks;
mod data_words;
mod lookup;
mod next_tool;

use std::ffi::{CString, OsStr, c_int, c_uint};
use std::sync::atomic::Ordering;

use ompt_sys::ompt_set_callback_t;
use omptrace_runtimes::Fault;

use crate::os::log::info;
use crate::second_tool::active_tool::SECOND;

pub(crate) use crate::second_tool::active_tool::end;
pub(crate) use crate::second_tool::callbacks::set_ours;
pub(crate) use crate::second_tool::lookup::our_lookup;

/// What the runtime passed when it started the tracer.
#[derive(Debug)]
pub(crate) struct Runtime<'a> {
    pub(crate) set_callback: ompt_set_callback_t,
    pub(crate) omp_version: c_uint,
    pub(crate) version: &'a str,
    pub(crate) initial_device: c_int,
}

/// Finds the second tool and starts it. Returns true if there is one that wants to be active; from then on, the tracer
/// registers with [`set_ours`]. `named` is its library, if the user names one. `is_global` tells whether the loader
/// finds this library's symbols.
pub(crate) fn begin(runtime: &Runtime<'_>, named: Option<&OsStr>, is_global: bool) -> bool {
    let Ok(version) = CString::new(runtime.version) else {
        return false;
    };
    let Some(tool) = next_tool::find(named, is_global, runtime.omp_version, &version) else {
        return false;
    };
    callbacks::begin(runtime.set_callback, Fault::WantsTaskwaitDataEmpty.is_of(runtime.version));
    // SAFETY: the result of `ompt_start_tool` is valid until the tool is finalized (OpenMP 5.2, 19.2.1).
    let result = unsafe { &mut *tool.result };
    // Release; pairs with Acquire in `end`.
    SECOND.store(tool.result, Ordering::Release);
    let is_active = result.initialize.is_some_and(|initialize| {
        // SAFETY: called like by the runtime: a lookup function, a device's number, the structure's own word.
        unsafe { initialize(lookup::find, runtime.initial_device, &mut result.tool_data) != 0 }
    });
    if is_active {
        callbacks::register_ends();
        info!("{} runs as the second OMPT tool", tool.name);
    } else {
        // Release; pairs with Acquire in `end`.
        SECOND.store(std::ptr::null_mut(), Ordering::Release);
        callbacks::forget_theirs();
    }
    is_active
}
