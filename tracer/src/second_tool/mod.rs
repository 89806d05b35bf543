//! The next OMPT tool: a runtime has room for one tool, which is this one, and passes on to another.
//!
//! The second tool runs as if it were alone. It gets its own data words, callbacks and results of registrations, and entry points
//! that know its words. What is registered then are functions that call both tools ([`callbacks`]). Without a second tool nothing of
//! this is registered, and the hot path is what it is.
//!
//! ```text
//! runtime -- callback --> both: splits each data word --> the tracer's function
//!                                                     --> the second tool's function
//! second tool -- entry point --> lookup: its own callbacks and data words --> runtime
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | this one | the second tool's begin |
//! | [`active_tool`] | the second tool, and its end |
//! | [`next_tool`] | where the second tool comes from |
//! | [`callbacks`] | the functions that call both tools |
//! | [`data_words`] | two data words for each thing that the runtime has one for |
//! | [`lookup`] | the entry points that the second tool gets |
//!
//! Two things are not as if alone. Only the tracer gets a device's lookup, since a device has one owner of its trace buffers. And
//! the drafts of OpenMP 5.0 and older interfaces are not passed on.

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

/// What the runtime said when it started the tracer.
#[derive(Debug)]
pub(crate) struct Runtime<'a> {
    pub(crate) set_callback: ompt_set_callback_t,
    pub(crate) omp_version: c_uint,
    pub(crate) version: &'a str,
    pub(crate) initial_device: c_int,
}

/// Finds the second tool and starts it. True where there is one that wants to work: from now on the tracer registers by
/// [`set_ours`]. `named` is its library, where the user names one. `is_global` says whether the loader looks for symbols in this
/// library.
pub(crate) fn begin(runtime: &Runtime<'_>, named: Option<&OsStr>, is_global: bool) -> bool {
    let Ok(version) = CString::new(runtime.version) else {
        return false;
    };
    let Some(tool) = next_tool::find(named, is_global, runtime.omp_version, &version) else {
        return false;
    };
    callbacks::begin(runtime.set_callback, Fault::WantsTaskwaitDataEmpty.is_of(runtime.version));
    // SAFETY: what `ompt_start_tool` returned is valid until the tool is finalized (OpenMP 5.2, 19.2.1).
    let result = unsafe { &mut *tool.result };
    // Release; pairs with Acquire in `end`.
    SECOND.store(tool.result, Ordering::Release);
    let is_active = result.initialize.is_some_and(|initialize| {
        // SAFETY: as the runtime would call it: a lookup, a device's number, the structure's own word.
        unsafe { initialize(lookup::find, runtime.initial_device, &mut result.tool_data) != 0 }
    });
    if is_active {
        callbacks::register_ends();
        info!("{} runs as the second tool", tool.name);
    } else {
        // Release; pairs with Acquire in `end`.
        SECOND.store(std::ptr::null_mut(), Ordering::Release);
        callbacks::forget_theirs();
    }
    is_active
}
