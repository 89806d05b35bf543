//! What the global scope holds when the process begins, before the program's own code runs: no thread waits for the loader then,
//! and nothing of it is ever unloaded.

use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::Library;
use crate::libgomp::{self, Candidate};
use crate::{loaded, tool};

/// The global scope, as it is at the begin.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// This library.
    own: Option<Library>,
    /// The libraries behind this one that are a libgomp, or have parts of one.
    pub(crate) libgomp: Vec<Candidate>,
    /// The first `ompt_start_tool`.
    pub(crate) tool: Option<usize>,
    /// How many libraries there are.
    libraries: usize,
    /// This is the copy that the loader asks about bindings ([`crate::audit`]), in a namespace without a program.
    is_auditor: bool,
}

static START: AtomicPtr<Start> = AtomicPtr::new(ptr::null_mut());

/// The loader calls it before the program begins, as a rule before all other constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn construct() {
        if !get().is_auditor {
            tool::load();
        }
    }
    construct
};

/// The global scope, which is looked at by the first caller.
pub(crate) fn get() -> &'static Start {
    // SAFETY: NULL, or leaked below. Acquire: pairs with the release below.
    if let Some(start) = unsafe { START.load(Ordering::Acquire).as_ref() } {
        return start;
    }
    let found = Box::into_raw(Box::new(look()));
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    let found = match START.compare_exchange(ptr::null_mut(), found, success, failure) {
        Ok(_) => found,
        // Another thread's; ours stays unused.
        Err(other) => other,
    };
    // SAFETY: never freed.
    unsafe { &*found }
}

fn look() -> Start {
    let mut start = Start::default();
    let mut candidates = Vec::new();
    let here = look as *const () as usize;
    loaded::each(|module, headers| {
        // The program itself comes first, and has no name here.
        start.is_auditor |= start.libraries == 0 && !module.name().is_empty();
        start.libraries += 1;
        if module.place.contains(&here) {
            start.own = Some(module.library);
            return;
        }
        let Some(symbols) = module.library.symbols() else {
            return;
        };
        loaded::note_find_object(&symbols);
        if start.tool.is_none() {
            start.tool = symbols.function(tool::START);
        }
        if start.own.is_some() {
            candidates.extend(Candidate::of(module, headers));
        }
    });
    start.libgomp = libgomp::in_order(candidates);
    start
}

impl Start {
    /// Whether it is this library.
    pub(crate) fn is_own(&self, library: Library) -> bool {
        self.own == Some(library)
    }

    /// Whether libraries that were loaded later define this function.
    pub(crate) fn is_defined_later(&self, name: &core::ffi::CStr) -> bool {
        let (mut count, mut is_defined) = (0, false);
        loaded::each(|module, _| {
            count += 1;
            is_defined |= count > self.libraries && module.library.function(name).is_some();
        });
        is_defined
    }
}
