//! What the global scope holds when the process begins, before the program's own code runs. No thread waits for the loader then.
//! Nothing of it is ever unloaded.

use core::ffi::CStr;
use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use interpose::elf::Symbols;

use crate::which_libgomp::functions::Candidate;
use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::passed_on::PassedOn;

/// The global scope, as it is at the begin.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The libgomp behind this library.
    pub(crate) libgomp: Option<Candidate>,
    /// The symbols of all libraries behind this one.
    pub(crate) behind: Vec<Symbols>,
    /// The first `ompt_start_tool`.
    pub(crate) tool: Option<usize>,
    /// How many libraries there are.
    libraries: usize,
    /// This is the copy that the loader asks about bindings ([`crate::which_libgomp::audit`]), in a namespace without a program.
    pub(crate) is_auditor: bool,
}

/// The function by which a tool begins (OpenMP 5.2, 19.3.1).
pub(crate) const START_TOOL: &CStr = c"ompt_start_tool";

static START: AtomicPtr<Start> = AtomicPtr::new(ptr::null_mut());

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
    if !loaded_libraries::prepare() {
        start.is_auditor = true;
        return start;
    }
    // What is called here must be nothing that the program may replace, such as `memcpy`, by which a list grows.
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
            // One that is whole goes before one that has a few functions.
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

/// Lets functions of OpenMP's go on in the runtime that is the first to define them, if that reports itself. Without a libgomp, another
/// one has nothing that could be reported here.
fn pass_on(runtimes: &[Candidate]) {
    // SAFETY: libraries that are there when the process begins stay loaded.
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
    /// Whether libraries that were loaded later define this function, at other addresses than the `known` ones.
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
