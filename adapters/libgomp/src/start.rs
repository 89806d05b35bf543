//! The symbols in the global scope when the process starts, before the program's own code runs. At this time no thread
//! waits for the loader, and these libraries are never unloaded.

use core::ffi::CStr;
use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use interpose::elf::Symbols;

use crate::which_libgomp::functions::Candidate;
use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::passed_on::PassedOn;

/// The global scope when the process starts.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The libgomp that follows this library in the search order.
    pub(crate) libgomp: Option<Candidate>,
    /// The symbols of all libraries that follow this one in the search order.
    pub(crate) behind: Vec<Symbols>,
    /// Address of the first `ompt_start_tool`.
    pub(crate) tool: Option<usize>,
    /// Number of libraries.
    libraries: usize,
    /// This is the copy that the loader informs of bindings ([`crate::which_libgomp::audit`]), in a namespace without a
    /// program.
    pub(crate) is_auditor: bool,
}

/// The function by which a tool is started (OpenMP 5.2, 19.3.1).
pub(crate) const START_TOOL: &CStr = c"ompt_start_tool";

static START: AtomicPtr<Start> = AtomicPtr::new(ptr::null_mut());

/// The global scope, which the first caller determines.
pub(crate) fn get() -> &'static Start {
    // SAFETY: NULL, or leaked below. Acquire: pairs with the release below.
    if let Some(start) = unsafe { START.load(Ordering::Acquire).as_ref() } {
        return start;
    }
    let found = Box::into_raw(Box::new(look()));
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    let found = match START.compare_exchange(ptr::null_mut(), found, success, failure) {
        Ok(_) => found,
        // Another thread was first; this thread's value stays unused.
        Err(other) => other,
    };
    // SAFETY: never freed.
    unsafe { &*found }
}

fn look() -> Start {
    let mut start = Start::default();
    if !loaded_libraries::prepare() {
        start.is_auditor = true;
        return start;
    }
    // Functions that the program may replace must not be called here, such as `memcpy`, which is called when a vector
    // grows.
    let mut behind = Vec::with_capacity(64);
    let mut is_behind = false;
    let mut runtimes = Vec::with_capacity(16);
    loaded_libraries::each(|module, headers| {
        start.libraries += 1;
        if module.library.is_own() {
            is_behind = true;
            return;
        }
        let Some(symbols) = module.library.symbols() else {
            return;
        };
        if start.tool.is_none() {
            start.tool = symbols.function(START_TOOL);
        }
        if is_behind {
            behind.push(symbols);
            let Some(found) = Candidate::of(module, headers) else {
                return;
            };
            if runtimes.len() < runtimes.capacity() {
                runtimes.push(found.clone());
            }
            // A complete libgomp has priority over a library that defines only a few functions.
            let best = start.libgomp.as_ref();
            if best.is_none_or(|best| !best.is_whole() && found.is_whole()) {
                start.libgomp = Some(found);
            }
        }
    });
    pass_on(&runtimes);
    start.behind = behind;
    start
}

/// Forwards OpenMP API functions to the first runtime that defines them, if that runtime has OMPT itself. Without a
/// libgomp, this library has nothing to report for other runtimes.
fn pass_on(runtimes: &[Candidate]) {
    // SAFETY: libraries that are loaded when the process starts stay loaded.
    let has_ompt = |runtime: &Candidate| unsafe { runtime.has_ompt() };
    let is_gnu = |runtime: &Candidate| runtime.is_whole() && !has_ompt(runtime);
    let has_libgomp = runtimes.iter().any(is_gnu);
    for entry in PassedOn::all() {
        let mut defining =
            runtimes.iter().filter_map(|runtime| Some((runtime, runtime.function(entry.name())?)));
        if let Some((runtime, function)) = defining.next()
            && (!has_libgomp || has_ompt(runtime))
        {
            entry.set(function);
        }
    }
}

impl Start {
    /// Whether libraries that were loaded later define this function at addresses other than the `known` ones.
    pub(crate) fn is_defined_later(&self, name: &CStr, known: &[usize]) -> bool {
        let (mut count, mut is_defined) = (0, false);
        loaded_libraries::each(|module, _| {
            count += 1;
            let found = module.library.function(name).filter(|_| count > self.libraries);
            is_defined |= found.is_some_and(|found| !known.contains(&found));
        });
        is_defined
    }
}
