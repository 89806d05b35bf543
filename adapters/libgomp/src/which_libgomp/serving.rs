//! The libgomp that serves a caller.
//!
//! A process may have several libgomps: a Python wheel brings a renamed copy of its own in addition to the system's. A
//! caller must get the libgomp to which the loader would have bound it. This is the same for all call sites of a
//! library, so the result is stored per library: the lookup is as fast in a program with very many call sites.

use core::ffi::{CStr, c_void};
use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use omptrace_runtimes::Vendor;

use super::functions::{Candidate, Libgomp, keep};
use super::real_dlclose;
use interpose::elf::{Library, Symbols, begins_with};

use crate::model::thread_words::Searching;
use crate::start;
use crate::which_libgomp::loaded_libraries;
use crate::which_libgomp::loaded_libraries::Module;
use crate::which_libgomp::old_locks;

/// The libgomp that serves a caller.
#[derive(Clone, Copy)]
pub(crate) enum Serving {
    /// This libgomp.
    Libgomp(&'static Libgomp),
    /// The return address is in this library: an outlined function ended with a jump to the entry point. So the call
    /// seems to come from the function of this library that called the outlined one.
    TailCall,
}

/// The libgomps found, as a list that begins with the newest one. No lock guards the list, because in a forked child it
/// could be held by a thread that the child does not have, and because a library's constructor may call libgomp while
/// its thread holds the loader's lock.
static FOUND: AtomicPtr<Libgomp> = AtomicPtr::new(ptr::null_mut());

/// The libgomp that serves the code at `return_address`.
#[inline(always)]
pub(crate) fn of_caller(return_address: *const c_void) -> Serving {
    let address = return_address as usize;
    match served::of(address) {
        Some(serving) if serving.is_sure() || serving.is_there() => serving,
        _ => find_serving(address),
    }
}

/// The most recently found libgomp that is still loaded, if any.
pub(crate) fn any() -> Option<&'static Libgomp> {
    // SAFETY: NULL, or a leaked libgomp. Acquire: pairs with the release in `add`.
    from(unsafe { FOUND.load(Ordering::Acquire).as_ref() }).next()
}

/// The libgomps in the list from `first` on that are still loaded.
fn from(first: Option<&'static Libgomp>) -> impl Iterator<Item = &'static Libgomp> {
    let all = std::iter::successors(first, |gomp| gomp.next);
    // Relaxed: a caller whose libgomp is unloaded meanwhile runs code that is unloaded, too.
    all.filter(|gomp| gomp.is_there())
}

/// The libgomp in the list from `first` on whose library this is.
fn of_library(library: Library, first: Option<&'static Libgomp>) -> Option<&'static Libgomp> {
    from(first).find(|gomp| gomp.is_of(library))
}

/// Pins all libgomps until the process ends. The calling thread is about to unload a library, whose destructor may be
/// the first code to call a libgomp. Then it would be too late to pin it, and its threads would continue in unloaded
/// code.
pub(crate) fn keep_all() {
    from(any()).for_each(Libgomp::keep);
    let mut others = Vec::new();
    loaded_libraries::each(|module, headers| {
        let is_known = module.library.is_own() || of_library(module.library, any()).is_some();
        let is_of_llvm = || module.library.function(c"__kmpc_fork_call").is_some();
        if !is_known && !is_of_llvm() {
            others.extend(Candidate::of(module, headers));
        }
    });
    others.iter().for_each(|library| keep(library.module.name));
}

/// The program may hold a lock of its own during this call, and its replacements for functions of the C library may
/// take the same lock. So no function of the C library is called here, except if several libgomps may serve the call.
#[cold]
#[inline(never)]
fn find_serving(address: usize) -> Serving {
    if served::of(address).is_some() {
        // The program has unloaded the libgomp and its caller without being noticed, and another library is at this
        // address now.
        forget_unloaded();
    }
    let Some(_searching) = Searching::begin() else {
        // Called by a function of the program that the search below has called.
        return Serving::Libgomp(any().unwrap_or_else(|| search(address, None)));
    };
    let module = Module::of_code(address);
    let serving = match &module {
        Some(module) if module.library.is_own() => Serving::TailCall,
        Some(module) => Serving::Libgomp(match of_library(module.library, any()) {
            // A tail call of a function that libgomp itself runs.
            Some(gomp) => gomp,
            None => {
                let gomp = search(address, Some(module));
                match old_locks::are_called_by(module.library) {
                    true => gomp.with_old_locks(),
                    false => gomp,
                }
            }
        }),
        None => Serving::Libgomp(search(address, None)),
    };
    // Code of a just-in-time compiler is in no library, and no library is in the same page.
    let page = address & !(PAGE - 1);
    served::remember(module.map_or(page..page + PAGE, |module| module.place), serving);
    serving
}

impl Serving {
    fn of(gomp: *const Libgomp) -> Serving {
        // SAFETY: NULL, or a leaked libgomp.
        unsafe { gomp.as_ref() }.map_or(Serving::TailCall, Serving::Libgomp)
    }

    /// Whether the libgomp cannot have been unloaded since the last check.
    #[inline(always)]
    fn is_sure(self) -> bool {
        match self {
            Serving::Libgomp(gomp) => gomp.is_as_seen(),
            Serving::TailCall => true,
        }
    }

    #[cold]
    fn is_there(self) -> bool {
        match self {
            Serving::Libgomp(gomp) => gomp.is_there(),
            Serving::TailCall => true,
        }
    }

    fn libgomp(self) -> *mut Libgomp {
        match self {
            Serving::Libgomp(gomp) => ptr::from_ref(gomp).cast_mut(),
            Serving::TailCall => ptr::null_mut(),
        }
    }
}

/// The smallest page size of all CPUs.
const PAGE: usize = 4096;

/// The libraries that have called, and the libgomp that serves each. All call sites of a library have the same libgomp.
mod served {
    use core::ops::Range;
    use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicUsize, Ordering};

    use super::{Libgomp, Serving};

    struct Caller {
        begin: AtomicUsize,
        end: AtomicUsize,
        /// NULL: [`Serving::TailCall`].
        serving: AtomicPtr<Libgomp>,
    }

    /// Number of callers that are stored, for the whole life of the process. The libgomp for further callers is
    /// searched for at each call.
    const CALLERS: usize = 1024;

    static CALLERS_KNOWN: [Caller; CALLERS] = [const {
        Caller {
            begin: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            serving: AtomicPtr::new(core::ptr::null_mut()),
        }
    }; CALLERS];

    /// Special values of a caller's start address. `FORGOTTEN`: an entry that was removed; searches continue after it.
    const FORGOTTEN: usize = 1;
    /// An entry that a thread is filling.
    const TAKEN: usize = 2;

    /// For each part of the address space, the index of the library that last called from there, which is tried first.
    static GUESSES: [AtomicU16; 256] = [const { AtomicU16::new(0) }; 256];
    /// Size of such a part in bytes, as a power of two.
    const PART_BITS: usize = 16;

    impl Caller {
        #[inline(always)]
        fn has(&self, address: usize) -> bool {
            // Acquire: pairs with the release in `remember`. The next loads are also acquire, so that the last check
            // comes last.
            let begin = self.begin.load(Ordering::Acquire);
            begin > TAKEN && (begin..self.end.load(Ordering::Acquire)).contains(&address)
        }
    }

    /// The library that contains `address`.
    #[inline(always)]
    fn caller_of(address: usize) -> Option<&'static Caller> {
        // Relaxed: any value will do, because the caller at this index is checked.
        let guess = &GUESSES[(address >> PART_BITS) % GUESSES.len()];
        let guessed = &CALLERS_KNOWN[usize::from(guess.load(Ordering::Relaxed)) % CALLERS];
        if guessed.has(address) { Some(guessed) } else { caller_among_all(address, guess) }
    }

    #[inline(never)]
    fn caller_among_all(address: usize, guess: &AtomicU16) -> Option<&'static Caller> {
        let used = CALLERS_KNOWN.iter().take_while(|caller| caller.begin.load(Ordering::Acquire) != 0);
        let (place, caller) = used.enumerate().find(|(_, caller)| caller.has(address))?;
        guess.store(place as u16, Ordering::Relaxed);
        Some(caller)
    }

    #[inline(always)]
    pub(super) fn of(address: usize) -> Option<Serving> {
        let caller = caller_of(address)?;
        let begin = caller.begin.load(Ordering::Acquire);
        let serving = caller.serving.load(Ordering::Acquire);
        // Relaxed: follows the acquire above. Another library may have taken the entry meanwhile.
        let is_same = begin > TAKEN && caller.begin.load(Ordering::Relaxed) == begin;
        is_same.then(|| Serving::of(serving))
    }

    pub(super) fn remember(place: Range<usize>, serving: Serving) {
        for caller in &CALLERS_KNOWN {
            let known = caller.begin.load(Ordering::Relaxed);
            // Relaxed: no data are read after it, and the data written are released below.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if (known == 0 || known == FORGOTTEN)
                && caller.begin.compare_exchange(known, TAKEN, success, failure).is_ok()
            {
                // Release: pairs with the acquire in `of`; likewise the next stores.
                caller.end.store(place.end, Ordering::Release);
                caller.serving.store(serving.libgomp(), Ordering::Release);
                caller.begin.store(place.start, Ordering::Release);
                return;
            }
        }
    }

    /// Removes the libraries for which `is_gone` says that they are no longer loaded, and those that are served by an
    /// unloaded libgomp.
    pub(super) fn forget(is_gone: impl Fn(usize) -> bool) {
        for caller in &CALLERS_KNOWN {
            let begin = caller.begin.load(Ordering::Acquire);
            let is_served = || Serving::of(caller.serving.load(Ordering::Acquire)).is_there();
            if begin > TAKEN && (is_gone(begin) || !is_served()) {
                // Relaxed: an entry that is stored here later has its own release.
                let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = caller.begin.compare_exchange(begin, FORGOTTEN, success, failure);
            }
        }
    }
}

/// Removes libraries that are no longer loaded.
///
/// None of them calls meanwhile, because its code is unloaded.
pub(crate) fn forget_unloaded() {
    // SAFETY: NULL, or a leaked libgomp. Acquire: pairs with the release in `add`.
    let Some(last) = (unsafe { FOUND.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let is_gone = |address: usize| Module::of_code(address).is_none();
    for gomp in std::iter::successors(Some(last), |gomp| gomp.next) {
        if !gomp.is_there() || gomp.mark.is_none() && is_gone(gomp.library.module.place.start) {
            gomp.is_gone.store(true, Ordering::Relaxed);
        }
    }
    served::forget(is_gone);
}

/// The libgomp to which the loader would have bound the caller: that of the global scope, otherwise that of the
/// caller's own module.
fn search(address: usize, caller: Option<&Module>) -> &'static Libgomp {
    let start = start::get();
    if let Some(library) = &start.libgomp {
        let known = of_library(library.module.library, any());
        return known.unwrap_or_else(|| add(Libgomp::of(library.clone(), &start.behind, true)));
    }
    let mut candidates = Vec::new();
    loaded_libraries::each(|module, headers| {
        if !module.library.is_own() {
            candidates.extend(Candidate::of(module, headers));
        }
    });
    let found = match candidates.as_slice() {
        [] => None,
        [only] => Some(only),
        several => caller.and_then(|caller| bound_to(caller, several)).or_else(|| by_default(several)),
    };
    if let Some(found) = found {
        let known = of_library(found.module.library, any());
        return known.unwrap_or_else(|| {
            let scope: Vec<Symbols> = found.module.library.symbols().into_iter().collect();
            add(Libgomp::of(found.clone(), scope.leak(), false))
        });
    }
    // No loaded library can serve the call.
    eprintln!("libomptgomp: no libgomp is loaded that can execute the call at {address:#x}");
    std::process::abort();
}

/// The candidate to which the loader has bound the caller, or would bind it.
fn bound_to<'a>(caller: &Module, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
    let at = |address: usize| {
        let mut candidates = candidates.iter();
        candidates.find(|candidate| candidate.module.place.contains(&address))
    };
    // Functions that this library does not define are bound to the caller's libgomp directly.
    let is_openmp = |name: &CStr| {
        let name = name.to_bytes();
        begins_with(name, b"omp_") || begins_with(name, b"GOMP_")
    };
    if let Some(bound) = caller.library.bindings(is_openmp).find_map(at) {
        return Some(bound);
    }
    // Only the loader knows which libraries were opened with RTLD_GLOBAL.
    let find = |handle| {
        // SAFETY: `RTLD_NEXT` or a handle of `dlopen`, and a string.
        at(unsafe { interpose::symbol(handle, c"GOMP_parallel") } as usize)
    };
    find(libc::RTLD_NEXT).or_else(|| {
        // SAFETY: the loader's own name of a loaded library.
        unsafe { real_dlclose::with(caller.name, find) }.flatten()
    })
}

/// The candidate for code that is bound to none: code of a just-in-time compiler, or of modules that got the address by
/// `dlsym`.
fn by_default(candidates: &[Candidate]) -> Option<&Candidate> {
    let is_known = |candidate: &&Candidate| any().is_some_and(|gomp| gomp.is_of(candidate.module.library));
    let is_gnu = |candidate: &&Candidate| Vendor::Gnu.makes(candidate.module.name().to_bytes());
    let mut all = candidates.iter();
    let found = all.clone().find(is_known).or_else(|| all.clone().find(is_gnu));
    found.or_else(|| all.next())
}

/// Adds a libgomp to the list. Another thread may have added the same library meanwhile: then that entry is used, and
/// the list has no duplicates.
fn add(gomp: Box<Libgomp>) -> &'static Libgomp {
    let gomp = Box::into_raw(gomp);
    let mut last = FOUND.load(Ordering::Acquire);
    loop {
        // SAFETY: NULL, or a leaked libgomp.
        let known = unsafe { last.as_ref() };
        // SAFETY: from `into_raw`, and nothing else uses it yet.
        unsafe {
            if let Some(other) = of_library((*gomp).library.module.library, known) {
                drop(Box::from_raw(gomp));
                return other;
            }
            (*gomp).next = known;
        }
        // Release: pairs with the acquire in `any`. Acquire: the entry that another thread has added is read.
        match FOUND.compare_exchange_weak(last, gomp, Ordering::Release, Ordering::Acquire) {
            // SAFETY: the libgomp is in the list now and never freed.
            Ok(_) => return unsafe { &*gomp },
            Err(other) => last = other,
        }
    }
}
